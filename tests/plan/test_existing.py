"""What `kubectl apply` would do to a workload that is in the cluster already, for every kind; and that plan says so."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.api.kind import Object
from kohort.api.objects import name_of
from kohort.manifest import read
from kohort.plan.existing import LAST_APPLIED, Applied, Existing, Pair, existing, merged, would_apply
from kohort.sim.cluster import Pool
from kohort.testing.cluster import cluster
from kohort.testing.virtual import VirtualLoop

EXAMPLES = Path(__file__).parents[2] / "examples"
Change = Callable[[Object], Any]
KINDS = {
    "Job": "job-gang.yaml",
    "JobSet": "jobset-gang.yaml",
    "TrainJob": "trainjob-torch.yaml",
    "PodCliqueSet": "podcliqueset-simple.yaml",
    "LeaderWorkerSet": "leaderworkerset-inference.yaml",
}


def example(kind: str) -> list[Object]:
    return [one.obj for one in read((str(EXAMPLES / KINDS[kind]),))]


def made(objects: list[Object], kind: str, change: Change = lambda _: None) -> Pair:
    """The example as it is, changed in the file, and as a cluster has it after it was created."""

    async def work() -> Pair:
        async with cluster(pools=[Pool(name="n", count=1)]) as found:
            for obj in objects:
                await found.client.of(obj).create(obj, "lab")
            wanted = copy.deepcopy(next(obj for obj in objects if obj["kind"] == kind))
            change(wanted)
            (pair,) = await existing(found.client, [wanted], "lab")
            return pair

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


def applied(pair: Pair) -> Existing:
    (found,) = would_apply("1.37", [pair])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_file_again_changes_nothing(kind: str) -> None:
    found = applied(made(example(kind), kind))
    assert (found.applied, found.fields, found.message) == (Applied.UNCHANGED, (), "")


def test_it_has_ended() -> None:
    wanted, there = made(example("JobSet"), "JobSet")
    there["status"] = {**there.get("status", {}), "conditions": [{"type": "Completed", "status": "True"}]}
    found = applied((wanted, there))
    assert (found.applied, found.ended) == (Applied.UNCHANGED, "Completed")


def _job(obj: Object) -> Object:
    found: Object = obj["spec"] if obj["kind"] == "Job" else obj["spec"]["replicatedJobs"][0]["template"]["spec"]
    return found


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
def test_what_cannot_be_changed_is_refused(kind: str) -> None:
    def other(obj: Object) -> None:
        _job(obj)["template"]["spec"]["containers"][0]["image"] = "another"

    found = applied(made(example(kind), kind, other))
    assert found.applied is Applied.REFUSED
    assert "field is immutable" in found.message


def test_what_can_be_changed_is_named() -> None:
    def more(obj: Object) -> None:
        obj["spec"]["replicas"] = 5

    found = applied(made(example("LeaderWorkerSet"), "LeaderWorkerSet", more))
    assert (found.applied, found.fields) == (Applied.CONFIGURED, ("spec.replicas",))


def test_what_an_earlier_apply_said_and_the_file_says_no_more_goes() -> None:
    there: Object = {
        "metadata": {"name": "x", "resourceVersion": "1", "annotations": {LAST_APPLIED: '{"spec": {"a": 1, "b": 2}}'}},
        "spec": {"a": 1, "b": 2, "filled": 3},
    }
    assert merged(there, {"metadata": {"name": "x"}, "spec": {"a": 1}})["spec"] == {"a": 1, "filled": 3}


def test_what_is_not_there_is_new() -> None:
    async def work() -> list[Pair]:
        async with cluster(pools=[Pool(name="n", count=1)]) as found:
            return await existing(found.client, example("JobSet"), "lab")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(work()) == []
    assert name_of(example("JobSet")[-1])
