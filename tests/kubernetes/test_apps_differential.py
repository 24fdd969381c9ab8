"""The same Deployments, ReplicaSets, StatefulSets, DaemonSets on real kube-controller-manager and on our controllers.

After every step statuses, conditions, owned objects, revisions, claims and reasons of events are equal; hashes, times
and random ends of names aside. `KOHORT_SEED` chooses other lives by chance, `KOHORT_LIVES` how many, `KOHORT_STORY`
(names, with commas, or all) plays these instead of the usual ones.
"""

import asyncio
import os
from dataclasses import replace

import pytest
from tests.kubernetes import apps_lives
from tests.kubernetes.apps_side import CALM, AppsSide, Life, Player, embedded, furnish
from tests.kubernetes.job_look import apart
from tests.kubernetes.job_side import Told

from kohort.kube.client import Client
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import require_binaries, wanted_minors
from kohort.testing.virtual import VirtualLoop

MINOR = "1.37"
SEED = os.environ.get("KOHORT_SEED", "1")
LIVES = int(os.environ.get("KOHORT_LIVES", "6"))
ONLY = [name for name in os.environ.get("KOHORT_STORY", "").split(",") if name]
# What is played in a minute beside other tests; the others take a few.
USUAL = (
    "rs-life", "rs-gone", "d-zero", "d-note", "d-undo", "d-share", "s-order", "s-claims", "s-broken", "s-low",
    "s-mixed", "s-max", "s-partition", "ds-roll", "g00", "g01",
)  # fmt: skip


def lives() -> list[Life]:
    found = [*apps_lives.told(), *apps_lives.generated(SEED, LIVES)]
    return [one for one in found if ONLY == ["all"] or one.name in (ONLY or USUAL)]


async def _played(side: AppsSide, chosen: list[Life], calm: float) -> dict[str, Told]:
    told = await asyncio.gather(*(Player(side, one, calm).play() for one in chosen))
    return {one.name: what for one, what in zip(chosen, told, strict=True)}


async def _on_real(env: Environment, chosen: list[Life], calm: float) -> dict[str, Told]:
    async with Client.connect(env.kubeconfig, manager="user") as client:
        side = AppsSide(client, MINOR)
        async with side.watched():
            return await _played(side, chosen, calm)


async def _on_ours(chosen: list[Life], calm: float) -> dict[str, Told]:
    async with embedded(MINOR) as side:
        return await _played(side, chosen, calm)


def _differences(real: Told, ours: Told) -> list[str]:
    """Of the first step that differs."""
    if real.problem or ours.problem:
        return [f"real: {real.problem or 'rests'}; ours: {ours.problem or 'rests'}"]
    for one, other in zip(real.looks, ours.looks, strict=True):
        lines = apart(one, other, "")
        if lines:
            return [f"after {one['step']}", *lines]
    return []


def _compared(env: Environment, chosen: list[Life], calm: float) -> dict[str, list[str]]:
    real = asyncio.run(_on_real(env, chosen, calm))
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(threads=False)) as runner:
        ours = runner.run(_on_ours(chosen, calm))
    found = {one.name: _differences(real[one.name], ours[one.name]) for one in chosen}
    return {name: lines for name, lines in found.items() if lines}


async def _furnished(env: Environment) -> None:
    async with Client.connect(env.kubeconfig, manager="user") as client:
        await furnish(client)


@pytest.mark.timeout(600)
def test_the_same_objects_live_the_same_lives() -> None:
    if MINOR not in wanted_minors():
        pytest.skip(f'another version was asked for; K8S="{MINOR}" runs it')
    require_binaries(MINOR)
    chosen = lives()
    with Environment(MINOR, ("kcm",)) as env:
        asyncio.run(_furnished(env))
        left, wrong = chosen, dict[str, list[str]]()
        # A busy machine may split what belongs together: what differs has to differ again, in ever more peace.
        for turn, calm in enumerate((CALM, 4 * CALM, 8 * CALM)):
            wrong = _compared(env, left, calm)
            left = [replace(one, name=f"{one.name}-{turn}") for one in left if one.name in wrong]
            if not left:
                break
    texts = ["\n    ".join([name, *lines[:12]]) for name, lines in wrong.items()]
    assert not texts, f"KOHORT_SEED={SEED}, {len(wrong)} of {len(chosen)} differ\n" + "\n\n".join(texts)
