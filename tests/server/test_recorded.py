"""Every recorded request, sent to our own server: it answers as real Kubernetes 1.35, 1.36 and 1.37 did.

Same code, reason, details, causes (kind and field, in order), warnings, object or table. Texts of messages are ours.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.talk import Talk
from tests.support.recorder import Player

RECORDED = Path(__file__).parents[1] / "recorded"
MINORS = ("1.35", "1.36", "1.37")

# Cases that are another part's to answer, and why.
ELSEWHERE: dict[str, dict[str, str]] = {
    "a controller manager runs": {
        "1.36": "final-01 final-02 final-03",
        "1.37": "final-31 final-32 final-33 final-34 final-35 final-36 final-37",
    },
}


def _cases(minor: str) -> list[dict[str, Any]]:
    return list(json.loads((RECORDED / f"validation-{minor}.json").read_text())["cases"])


def _left_out(minor: str) -> set[str]:
    return {name for group in ELSEWHERE.values() for name in group.get(minor, "").split()}


CASES = [
    pytest.param(minor, case, id=f"{minor}-{case['id']}")
    for minor in MINORS
    for case in _cases(minor)
    if case["id"] not in _left_out(minor)
]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Talk]]:
    made: dict[str, Talk] = {}
    yield made
    for one in made.values():
        one.close()


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


@pytest.mark.parametrize(("minor", "case"), CASES)
def test_recorded(servers: dict[str, Talk], minor: str, case: dict[str, Any]) -> None:
    if minor not in servers:
        servers[minor] = Talk(minor, ())
    server = servers[minor]
    player = Player(json.loads(json.dumps(case)), server)  # type: ignore[arg-type]
    server.switch(case.get("gatesDuringPrior", case["gates"]))
    player.prepare()
    if "gatesDuringPrior" in case:
        server.switch(case["gates"])
    answer = player.ask()
    player.clean()
    _compare(case["answer"], answer)


def _compare(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    if wanted["code"] == 500:
        # A mistake of the client's is not a fault of the server's (docs/differences.md).
        assert found["code"] in {400, 422}, found
        return
    assert (found["code"], found.get("reason", "")) == (wanted["code"], wanted.get("reason", "")), found
    causes = [(cause.get("reason"), cause.get("field")) for cause in found.get("causes", [])]
    assert causes == [(cause.get("reason"), cause.get("field")) for cause in wanted.get("causes", [])], found
    assert found.get("details") == wanted.get("details")
    assert found.get("warnings", []) == wanted.get("warnings", [])
    assert found.get("object") == wanted.get("object")
    assert found.get("table") == wanted.get("table")


@pytest.mark.parametrize("minor", MINORS)
def test_every_left_out_case_exists(minor: str) -> None:
    assert _left_out(minor) <= {case["id"] for case in _cases(minor)}
