"""The process is killed before and after every single write; what comes out is the same as if it had not been."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.controllers.cluster import job_of
from tests.controllers.driver import KilledError
from tests.controllers.world import GANG, World
from tests.support.sampling import points

from kohort.controllers.reconcile import Answer, Write

Life = Callable[[World], None]


def gang_to_the_end(world: World) -> None:
    world.gang("solver", 3)
    yield_to(world, 3)
    settle(world, lambda: world.pods_do("bind", "run"))
    settle(world, lambda: world.pods_do("succeed"))


def failure_and_retry(world: World) -> None:
    world.gang("retry", 2, backoffLimit=5)
    yield_to(world, 2)
    settle(world, lambda: world.pod_does(world.active()[0], "fail", exit=1), 15)
    settle(world, lambda: world.pods_do("succeed"))


def failure_for_good(world: World) -> None:
    world.job("brittle", parallelism=3, completions=3, backoffLimit=0)
    yield_to(world, 3)
    settle(world, lambda: world.pod_does(world.active()[0], "fail", exit=1))


def per_index(world: World) -> None:
    world.job("each", parallelism=3, completions=3, completionMode="Indexed", backoffLimitPerIndex=0)
    yield_to(world, 3)
    settle(world, lambda: world.pod_does(by_index(world, "1"), "fail", exit=1))
    settle(world, lambda: world.pods_do("succeed"))


def suspend_resume_grow(world: World) -> None:
    world.gang("nap", 3)
    yield_to(world, 3)
    settle(world, lambda: world.patch("Job", "nap", {"spec": {"suspend": True}}))
    settle(world, lambda: world.patch("Job", "nap", {"spec": {"suspend": False}}))
    yield_to(world, 3)
    settle(world, lambda: world.patch("Job", "nap", {"spec": {"parallelism": 5, "completions": 5}}))
    settle(world, lambda: world.patch("Job", "nap", {"spec": {"parallelism": 2, "completions": 2}}))


def success_policy(world: World) -> None:
    policy = {"rules": [{"succeededIndexes": "1"}]}
    world.job("few", parallelism=3, completions=3, completionMode="Indexed", successPolicy=policy)
    yield_to(world, 3)
    settle(world, lambda: world.pod_does(by_index(world, "1"), "succeed"))


def time_to_live(world: World) -> None:
    world.gang("brief", 2, ttlSecondsAfterFinished=5)
    yield_to(world, 2)
    settle(world, lambda: world.pods_do("succeed"), 12)


def cronjob(world: World) -> None:
    spec = job_of("x", parallelism=1, completions=1, scheduling=GANG)["spec"]
    body = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}, "successfulJobsHistoryLimit": 1}
    world.make({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": body})
    for _ in range(2):
        settle(world, lambda: None, 60)
        settle(world, lambda: world.pods_do("succeed"), 3)
    world.patch("CronJob", "tick", {"spec": {"suspend": True}})
    settle(world, lambda: None)


LIVES: list[Life] = [
    gang_to_the_end,
    failure_and_retry,
    failure_for_good,
    per_index,
    suspend_resume_grow,
    success_policy,
    time_to_live,
    cronjob,
]


def by_index(world: World, index: str) -> Any:
    label = "batch.kubernetes.io/job-completion-index"
    return next(pod for pod in world.active() if pod["metadata"]["labels"][label] == index)


def yield_to(world: World, count: int) -> None:
    settle(world, lambda: None)
    assert len(world.active()) == count


def settle(world: World, change: Callable[[], None], seconds: float = 8) -> None:
    """Something happens, and time passes; a controller that is killed meanwhile is started again a moment later."""
    change()
    end = world.api.clock.seconds + seconds
    while world.api.clock.seconds < end:
        try:
            world.run(end - world.api.clock.seconds)
        except KilledError:
            end += 2
            world.run(0.5)
            world.start()


class Killer:
    """Ends the process at the write of that number: before it is sent, or before its answer is read."""

    def __init__(self, world: World, number: int, *, sent: bool) -> None:
        self.world, self.left, self.sent = world, number, sent
        self.count = 0
        world.driver.before_write = self.before

    def before(self, write: Write) -> None:
        self.count += 1
        self.left -= 1
        if self.left == 0:
            if self.sent:
                answer: Answer = self.world.api.do(write)
                assert answer is not None
            raise KilledError


def ended(world: World) -> str:
    """Everything but what is random (names, uids, times) or tells how it came about (versions)."""
    pods = sorted(
        json.dumps(
            [
                pod["status"]["phase"],
                (pod["metadata"].get("annotations") or {}),
                bool(pod["metadata"].get("finalizers")),
                bool(pod["metadata"].get("deletionTimestamp")),
                bool(world.group_of(pod)),
            ],
            sort_keys=True,
        )
        for pod in world.every("Pod")
    )
    jobs = []
    for job in world.every("Job"):
        status = {name: value for name, value in job["status"].items() if not name.endswith("Time")}
        status["conditions"] = [[one["type"], one["status"], one["reason"]] for one in status.get("conditions") or ()]
        jobs.append([job["metadata"]["name"], status])
    made = [one for kind in ("Workload", "PodGroup") for one in world.every(kind)]
    groups = [[one["kind"], one["metadata"]["name"], one["spec"]] for one in made]
    runs = [one["status"] for one in world.every("CronJob")]
    crons = [[len(one.get("active") or []), one.get("lastScheduleTime")] for one in runs]
    return json.dumps([pods, jobs, groups, crons], sort_keys=True, indent=1)


def lived(life: Life, number: int = 0, *, sent: bool = False) -> tuple[str, int]:
    world = World()
    killer = Killer(world, number, sent=sent)
    life(world)
    return ended(world), killer.count


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_killed_between_any_two_writes(life: Life) -> None:
    expected, writes = lived(life)
    assert writes > 5
    # Before a write is after the one before it: nothing is remembered either way.
    for number, sent in [(1, False), *((number, True) for number in points(writes, life.__name__))]:
        found, _ = lived(life, number, sent=sent)
        assert found == expected, f"killed at write {number} ({'after' if sent else 'before'} it)"


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_refused_at_any_write(life: Life) -> None:
    """A 500 or a conflict at any write: the same end."""
    expected, writes = lived(life)
    for number in points(writes, life.__name__):
        world = World()
        count = 0

        def before(write: Write, world: World = world, number: int = number) -> None:
            nonlocal count
            count += 1
            if count == number:
                world.api.refusals.append((write.verb, write.kind, 1))

        world.driver.before_write = before
        life(world)
        assert ended(world) == expected, f"refused at write {number}"
