"""A fault in the reconcile of one object marks that object and stops nobody else: every controller, every step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest
from tests.e2e.grove_short import binding, clique, cliqueset, group
from tests.e2e.jobs import cronjob, job
from tests.e2e.jobsets import jobset, pod, rj
from tests.e2e.lws import lws
from tests.e2e.training import trainjob

from kohort import embedded
from kohort.api.kind import Object
from kohort.api.objects import name_of
from kohort.controllers import faults as kit
from kohort.controllers.controller import Controller, Key, Reader
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.runtime import Runtime
from kohort.kinds.controllers import Setup, make, names
from kohort.testing.cluster import Cluster, condition

pytestmark = [pytest.mark.releases("1.37"), pytest.mark.jobs]
GROVE, GANG = "grove.io/v1alpha1", "scheduler.grove.io/v1alpha1"
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}


@dataclass
class Injected:
    """Every reconcile of an object whose name begins with "bad" fails before its step `at`, or at its end."""

    controller: str = ""
    at: int = 0
    calls: list[float] = field(default_factory=list)
    runtimes: list[Runtime] = field(default_factory=list)

    def make(self, setup: Setup, wanted: Iterable[str]) -> list[Controller]:
        return [replace(one, reconcile=self.within(one)) for one in make(setup, wanted)]

    def within(self, controller: Controller) -> Callable[[Key, Reader, datetime], Reconcile]:
        def reconcile(key: Key, reader: Reader, now: datetime) -> Reconcile:
            steps = controller.reconcile(key, reader, now)
            obj = controller.object_of(key, reader)
            if controller.name != self.controller or obj is None or not name_of(obj).startswith("bad"):
                return (yield from steps)
            self.calls.append(asyncio.get_running_loop().time())
            answers: Any = None
            for _ in range(self.at):
                try:
                    answers = yield (next(steps) if answers is None else steps.send(answers))
                except StopIteration:
                    break
            steps.close()
            raise KeyError("a field that nobody thought of")

        return reconcile

    def runtime(self, *args: Any, **options: Any) -> Runtime:
        self.runtimes.append(Runtime(*args, **options))
        return self.runtimes[-1]

    def errors(self) -> float:
        return float(self.runtimes[0].metrics.errors.labels(self.controller)._value.get())


@pytest.fixture
def injected(monkeypatch: pytest.MonkeyPatch) -> Injected:
    found = Injected()
    monkeypatch.setattr(embedded, "make", found.make)
    monkeypatch.setattr(embedded, "Runtime", found.runtime)
    return found


def _trainjob(name: str) -> Object:
    return trainjob(1, name=name, of="torch-distributed", trainer={"image": "busybox", "command": ["sleep", "9999"]})


def _cliqueset(name: str) -> Object:
    return cliqueset(name, clique("a"), clique("b"), groups=[group("g", ["b"])])


def _exclusive(name: str) -> Object:
    return jobset(name, rj("a", 1, 2, runs=pod(None)), notes=EXCLUSIVE)


MADE: dict[str, tuple[Callable[[str], Object], str, str, str]] = {  # what is applied; what is marked, named how
    "job": (lambda name: job(name, 1), "batch/v1", "Job", "bad"),
    "cronjob": (lambda name: cronjob(name, "* * * * *", job("x", 1)["spec"]), "batch/v1", "CronJob", "bad"),
    "ttl-after-finished": (lambda name: job(name, 1, run="1", ttlSecondsAfterFinished=5), "batch/v1", "Job", "bad"),
    "jobset": (lambda name: jobset(name, rj("a", runs=pod(None))), "jobset.x-k8s.io/v1alpha2", "JobSet", "bad"),
    "jobset-placement": (_exclusive, "v1", "Pod", "bad-a-0-"),
    "trainjob": (_trainjob, "trainer.kubeflow.org/v1alpha1", "TrainJob", "bad"),
    "podcliqueset": (_cliqueset, GROVE, "PodCliqueSet", "bad"),
    "podcliquescalinggroup": (_cliqueset, GROVE, "PodCliqueScalingGroup", "bad-0-g"),
    "podclique": (_cliqueset, GROVE, "PodClique", "bad-0-a"),
    "podgang": (_cliqueset, GANG, "PodGang", "bad-0"),
    "leaderworkerset": (lws, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "bad"),
    "clustertopologybinding": (binding, GROVE, "ClusterTopologyBinding", "bad"),
}


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("name", sorted(names()))
async def test_a_fault_concerns_one_object(injected: Injected, cluster: Cluster, name: str, at: int) -> None:
    injected.controller, injected.at = name, at
    make_one, api_version, kind, prefix = MADE[name]
    conditions = next(one for one in injected.runtimes[0]._controllers if one.name == name).conditions
    await cluster.create(make_one("bad"), make_one("good"))

    async def event() -> list[Object]:
        found = await cluster.client.kind("v1", "Event").list()
        return [
            one
            for one in found.items
            if one["reason"] == kit.REASON
            and one["involvedObject"]["kind"] == kind
            and one["involvedObject"]["name"].startswith(prefix)
        ]

    (first, *_) = await cluster.until(event, what="the event")
    assert first["type"] == "Warning"
    assert f"controller {name}: KeyError: " in first["message"]
    assert injected.errors() >= 1

    async def marked() -> str:
        obj = await cluster.client.kind(api_version, kind).get(first["involvedObject"]["name"], _space(cluster, kind))
        return str((condition(obj, kit.CONDITION) or {}).get("status") or "")

    if conditions:
        await cluster.until(lambda: _is(marked, "True"), what="the condition")
    await _good(cluster, name)
    # It is tried again ever later: after 1, 2, 4 … seconds, and when what belongs to it changes.
    await cluster.sleep(60)
    late = [when for when in injected.calls if when > asyncio.get_running_loop().time() - 20]
    assert len(injected.calls) >= 3
    assert len(late) <= 6, injected.calls
    injected.controller = ""
    if conditions:
        await cluster.until(lambda: _is(marked, "False"), what="the end of the condition")


def _space(cluster: Cluster, kind: str) -> str:
    return "" if kind == "ClusterTopologyBinding" else cluster.namespace


async def _is(read: Any, wanted: str) -> bool:
    return bool(await read() == wanted)


async def _good(cluster: Cluster, name: str) -> None:
    """What the other object is for goes on."""
    if name == "clustertopologybinding":

        async def seen() -> Any:
            return (await cluster.client.kind(GROVE, "ClusterTopologyBinding").get("good")).get("status")

        await cluster.until(seen, what="the status of the other binding")
        return

    async def running() -> bool:
        pods = [one for one in await cluster.pods() if name_of(one).startswith("good")]
        return bool(pods) and all(one.get("status", {}).get("phase") == "Running" for one in pods)

    async def gone() -> bool:
        return await cluster.get("batch/v1", "Job", "good") is None

    await cluster.until(gone if name == "ttl-after-finished" else running, what="the other object going on")
