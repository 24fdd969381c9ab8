"""Admission policies: the answers that real Kubernetes 1.37 gave to the same policies and requests."""

import asyncio
import json
from functools import cache
from pathlib import Path

import pytest
from tests.server.admission.policy_cases import ASKED, NAMESPACES, REFUSED, SETUP, Object, seen
from tests.server.admission.world import Answer, World

RECORDED: Object = json.loads((Path(__file__).parents[2] / "recorded" / "policies-1.37.json").read_text())


def ours(answer: Answer) -> Object:
    return seen(answer.code, answer.body, answer.warnings)


async def _answers() -> tuple[list[Object], list[Object]]:
    world = await World.make()
    for name, labels in NAMESPACES.items():
        await world.namespace(name, **labels)
    for path, body in SETUP:
        await world.made(path, body)
    media = {"PATCH": "application/merge-patch+json"}
    asked = [
        ours(await world.ask(method, f"{path}?dryRun=All", body, media=media.get(method, "application/json")))
        for _, method, path, body in ASKED
    ]
    return asked, [ours(await world.ask("POST", path, body)) for path, body in REFUSED]


@cache
def answers() -> tuple[list[Object], list[Object]]:
    return asyncio.run(_answers())


@pytest.mark.parametrize("place", range(len(ASKED)), ids=[one[0] for one in ASKED])
def test_a_request_gets_the_answer_of_a_real_server(place: int) -> None:
    assert answers()[0][place] == RECORDED["asked"][place]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_a_policy_is_refused_in_the_words_of_a_real_server(place: int) -> None:
    assert answers()[1][place] == RECORDED["refused"][place], REFUSED[place]
