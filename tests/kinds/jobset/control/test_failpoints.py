"""The controllers of a JobSet are killed, refused, answered late or told late at every write: the end is the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.controllers.driver import KilledError
from tests.controllers.late import LateDriver
from tests.kinds.jobset.control.world import World, replicated
from tests.support.sampling import points

from kohort.controllers.reconcile import Answer, Refusal, Write
from kohort.kinds.jobset.control.inplace import ATTEMPT

GANG: dict[str, Any] = {"gangConfig": {"gangMode": "Gang"}}
REPLICAS = {"gangConfig": {"gangMode": "ReplicatedGang"}}
Life = Callable[[World], None]


def restart_and_suspend(world: World) -> None:
    world.jobset("life", replicated("w", 2, 1), failurePolicy={"maxRestarts": 2}, **GANG)
    world.settle()
    world.pod_does(world.pods()[0], "fail", exit=1)
    world.settle()
    world.suspend("life", True)
    world.settle()
    world.suspend("life", False)
    world.settle()
    world.pods_do("succeed")
    world.settle()


def one_job_of_many(world: World) -> None:
    """RestartJob in replica gangs."""
    rules = [{"name": "one", "action": "RestartJob"}]
    world.jobset("life", replicated("s", 3, 1, **REPLICAS), failurePolicy={"maxRestarts": 2, "rules": rules})
    world.settle()
    world.pod_does(world.pods()[1], "fail", exit=1)
    world.settle()
    world.pods_do("succeed")
    world.settle()


def grown_and_shrunk(world: World) -> None:
    world.jobset("life", replicated("g", 2, 2), **GANG)
    world.settle()
    for size in (3, 1):
        at = "/spec/replicatedJobs/0/template/spec"
        sizes = [{"op": "add", "path": f"{at}/{name}", "value": size} for name in ("parallelism", "completions")]
        world.patch("life", sizes)
        world.settle()
    world.pods_do("succeed")
    world.settle()


def tree_that_expires(world: World) -> None:
    tree = {"schedulingPolicy": {"gang": {}}, "replicatedJobs": [{"targetReplicatedJobs": ["s"], "job": {}}]}
    jobs = (replicated("d", 1, 1), replicated("s", 2, 1))
    world.jobset("life", *jobs, scheduling=tree, ttlSecondsAfterFinished=5)
    world.settle()
    world.pods_do("succeed")
    world.settle(16)


def one_after_the_other(world: World) -> None:
    then = replicated("b", 1, 1, dependsOn=[{"name": "a", "status": "Complete"}], **GANG)
    world.jobset("life", replicated("a", 2, 1, **GANG), then, suspend=True)
    world.settle(4)
    world.suspend("life", False)
    world.settle()
    world.pods_do("succeed")
    world.settle()
    world.pods_do("bind", "run")
    world.settle(4)


def in_place(world: World) -> None:
    more = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed"}
    policy = {"maxRestarts": 1, "restartStrategy": "InPlaceRestart"}
    world.jobset("life", replicated("a", 1, 2, job=more), failurePolicy=policy, **GANG)
    world.settle()
    for attempt in ("0", "1"):
        for pod in world.pods():
            world.patch(pod["metadata"]["name"], {"metadata": {"annotations": {ATTEMPT: attempt}}}, "Pod")
            world.settle(4)


def claims_and_any(world: World) -> None:
    template = {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    first = replicated("a", 1, 1)
    first["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "d", "mountPath": "/d"}]
    policy = {"operator": "Any", "targetReplicatedJobs": ["a"]}
    more = {"volumeClaimPolicies": [{"templates": [template]}], "successPolicy": policy}
    world.jobset("life", first, replicated("b", 1, 2), **more)
    world.settle()
    world.pod_does(world.pods()[0], "succeed")
    world.settle()


LIVES: list[Life] = [
    restart_and_suspend,
    one_job_of_many,
    grown_and_shrunk,
    tree_that_expires,
    one_after_the_other,
    in_place,
    claims_and_any,
]
ENDS = {
    "restart_and_suspend": '"Completed=True"',
    "one_job_of_many": '"Completed=True"',
    "grown_and_shrunk": '"Completed=True"',
    "tree_that_expires": "[]",
    "one_after_the_other": '"life-b-0"',
    "in_place": '"currentInPlaceRestartAttempt": 1',
    "claims_and_any": '"Completed=True"',
}
by_life = pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)


@cache
def undisturbed(life: Life) -> tuple[str, int]:
    world = World()
    count = 0

    def before(write: Write) -> None:
        nonlocal count
        count += 1

    world.driver.before_write = before
    life(world)
    assert ENDS[life.__name__] in world.ended()
    return world.ended(), count


def disturbed(life: Life, number: int, happens: Callable[[World, Write], None]) -> str:
    world, count = World(), 0

    def before(write: Write) -> None:
        nonlocal count
        count += 1
        if count == number:
            happens(world, write)

    world.driver.before_write = before
    life(world)
    return world.ended()


def killed(world: World, write: Write) -> None:
    """After the write, before its answer is read: before a write is after the one before it."""
    world.api.do(write)
    raise KilledError


@by_life
def test_killed_between_any_two_writes(life: Life) -> None:
    expected, writes = undisturbed(life)
    for number in points(writes, life.__name__):
        assert disturbed(life, number, killed) == expected, f"killed after write {number}"


FAULTS = [
    Refusal(500, "InternalError", "no"),
    Refusal(409, "Conflict", "the object has been modified"),
    Refusal(0, "TimeoutError", "no answer"),
    Refusal(429, "TooManyRequests", "later"),
]


@by_life
def test_refused_or_unanswered_at_any_write(life: Life) -> None:
    """Each write meets one of the faults; a request without an answer has been done every other time."""
    expected, writes = undisturbed(life)
    for number in points(writes, life.__name__):
        fault = FAULTS[number % len(FAULTS)]

        def fails(world: World, write: Write, fault: Refusal = fault, number: int = number) -> None:
            if fault.code == 0 and number % 8 < 4:
                world.api.do(write)
            world.api.next_answer = Answer(refusal=fault)

        assert disturbed(life, number, fails) == expected, f"{fault.reason} at write {number}"


@by_life
@pytest.mark.parametrize("seed", range(2))
def test_watches_are_late_reordered_and_repeated(life: Life, seed: int) -> None:
    expected, _ = undisturbed(life)
    world = World(driver=lambda api: LateDriver(api, seed=seed))
    world.pace = 3
    world.driver.between = seed % 2 == 1
    life(world)
    assert world.ended() == expected


@by_life
def test_others_look_between_any_two_writes(life: Life) -> None:
    expected, _ = undisturbed(life)
    world = World()
    world.driver.between = True
    life(world)
    assert world.ended() == expected
