"""A gang whose pods do not all fit into a ResourceQuota gets none: two gangs cannot hold each other up."""

from __future__ import annotations

from typing import Any

from tests.controllers.world import NS, World

from kohort.api.kind import Object
from kohort.controllers.conditions import condition


def quota(hard: int, used: int | None = 0) -> Object:
    status = {} if used is None else {"status": {"hard": {"pods": str(hard)}, "used": {"pods": str(used)}}}
    meta = {"name": "q", "namespace": NS}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta,
        "spec": {"hard": {"pods": str(hard)}},
        **status,
    }


def counted(world: World, hard: int, used: int) -> None:
    world.patch("ResourceQuota", "q", {"spec": {"hard": {"pods": str(hard)}}, "status": quota(hard, used)["status"]})


def waits(world: World, name: str) -> Any:
    job = next(one for one in world.every("Job") if one["metadata"]["name"] == name)
    return condition(job.get("status") or {}, "WaitingForQuota")


def pods_of(world: World, name: str) -> int:
    return sum(1 for pod in world.active() if pod["metadata"]["generateName"].startswith(f"{name}-"))


def test_the_second_of_two_gangs_gets_no_pod_and_says_why() -> None:
    world = World()
    world.make(quota(6))
    world.gang("one", 4)
    world.gang("two", 4)
    world.run(3)
    first, second = ("one", "two") if pods_of(world, "one") else ("two", "one")
    assert (pods_of(world, first), pods_of(world, second)) == (4, 0)
    found = waits(world, second)
    assert (found["status"], found["reason"]) == ("True", "QuotaExceeded")
    assert "before all 4 fit: ResourceQuota q leaves" in found["message"]
    assert "raise pods of ResourceQuota q to 8" in found["message"]
    told = [one for one in world.driver.events if one.reason == "QuotaExceeded"]
    assert [one.regarding["metadata"]["name"] for one in told if one.regarding["kind"] == "Job"] == [second]
    counted(world, 6, 4)
    world.run(20)
    assert pods_of(world, second) == 0
    counted(world, 8, 4)
    world.run(10)
    assert pods_of(world, second) == 4
    assert waits(world, second)["status"] == "False"
    available = [one.regarding["kind"] for one in world.driver.events if one.reason == "QuotaAvailable"]
    assert available == ["Job", "PodGroup"]
    assert waits(world, first) is None


def test_a_gang_waits_for_a_new_quota_to_be_counted() -> None:
    """Before that nobody knows what it leaves: half of the gang's pods might be refused."""
    world = World()
    world.make(quota(6, used=None))
    world.gang("one", 4)
    world.run(3)
    assert pods_of(world, "one") == 0
    assert waits(world, "one") is None
    assert "QuotaExceeded" not in world.reasons()
    counted(world, 6, 5)
    world.run(3)
    assert pods_of(world, "one") == 0
    assert "ResourceQuota q leaves 1 of 6 pods" in waits(world, "one")["message"]
    counted(world, 6, 2)
    world.run(10)
    assert pods_of(world, "one") == 4


def test_a_quota_that_nobody_counts_says_nothing() -> None:
    world = World()
    world.make(quota(100, used=None))
    world.gang("one", 4)
    world.run(15)
    assert pods_of(world, "one") == 4
    assert waits(world, "one") is None


def test_a_quota_that_was_lowered_and_not_counted_since_counts_as_it_is_now() -> None:
    world = World()
    world.make(quota(6))
    world.patch("ResourceQuota", "q", {"spec": {"hard": {"pods": "3"}}})
    world.gang("one", 4)
    world.run(3)
    assert pods_of(world, "one") == 0
    assert "ResourceQuota q leaves 3 of 3 pods" in waits(world, "one")["message"]


def test_pods_without_a_gang_are_the_servers_business() -> None:
    world = World()
    world.make(quota(2))
    world.job("plain", parallelism=4, completions=4)
    world.run(3)
    assert waits(world, "plain") is None
    assert len(world.active()) == 2
