"""The recorded scenarios once more, end to end through a real API server: what the simulation came to, it comes to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.test_scheduler import GROUP, NAME, SETTINGS, Cluster, cluster
from tests.scheduler import short
from tests.scheduler.sim import Sim

from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.scheduler.loop import Scheduler, running
from kohort.scheduler.schedulingcycle import Step
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import require_binaries

Json = dict[str, Any]
SCENARIOS = json.loads((Path(__file__).parent.parent / "recorded" / "scheduler-1.37.json").read_text())["scenarios"]
# Only the simulation can do these: act inside a decision, refuse bindings, be a slow kubelet, bind a volume.
ONLY_SIMULATED = {"during", "refuseBinding", "kubelet"}
CLASS = re.compile(r'"priority": "(p\d+(?:-never)?)"')


def _simulated_only(scenario: Json) -> bool:
    items = [item for step in scenario["steps"] for item in step.get("create", ())]
    # V15b is about a field behind the gate PodGroupPreemptionPolicy, with which V14 comes out differently.
    return (
        scenario["id"] == "V15b"
        or any(step.keys() & ONLY_SIMULATED for step in scenario["steps"])
        or any({"claim", "deleting", "holdable"} & item.keys() for item in items)
    )


PLAYED = [scenario for scenario in SCENARIOS if not _simulated_only(scenario)]


def test_nearly_all_are_played() -> None:
    left_out = {scenario["id"] for scenario in SCENARIOS} - {scenario["id"] for scenario in PLAYED}
    timed = {"C7", "C8", "C9", "C11", "B1", "B2", "B3", "B4", "B5", "B5b", "V22", "V28", "O4", "X3", "X13", "X14"}
    assert left_out == timed | {"F13", "F13b", "F23", "X1", "V15b"}


@pytest.fixture(scope="module")
def env() -> Iterator[Environment]:
    require_binaries("1.37")
    with Environment("1.37") as made:
        client = made.client()
        for name in sorted(set(CLASS.findall(json.dumps(SCENARIOS)))):
            body: Json = {"apiVersion": f"{GROUP}/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            body["value"] = short.priority_of({"priority": name})
            if name.endswith("-never"):
                body["preemptionPolicy"] = "Never"
            client.create(f"/apis/{GROUP}/v1/priorityclasses", body)
        yield made


class Paused(Scheduler):
    """A scheduler that can be held while the objects of a step are made."""

    paused = True

    def hold(self) -> None:
        self.paused = True

    def go(self) -> None:
        self.paused = False
        self._changed.set()

    def _fresh(self, release: Any) -> None:
        super()._fresh(release)
        decide = self.core.step

        def step(now: float) -> Step | None:
            return None if self.paused else decide(now)

        self.core.step = step  # type: ignore[method-assign]


class Player:
    """One scenario on a real server."""

    def __init__(self, here: Cluster, scheduler: Paused) -> None:
        self.here = here
        self.scheduler = scheduler
        self.deleted: set[str] = set()
        self.made: list[str] = []

    async def create(self, item: Json) -> None:
        here = self.here
        if item.get("nextSecond"):
            await asyncio.sleep(1.1)
        if "pod" in item:
            self.made.append(item["pod"])
            await here.pod({**item, "schedulerName": _scheduler(item)})
            await self._status(item)
        elif "node" in item:
            await here.node(item["node"], item["cpu"], **item.get("labels", {}))
            if item.get("taints"):
                await here.nodes.patch(item["node"], {"spec": {"taints": item["taints"]}})
        elif "pdb" in item:
            body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": item["pdb"]}}
            budgets = here.client.kind("policy/v1", "PodDisruptionBudget")
            body["spec"] = {"selector": {"matchLabels": item["match"]}, "minAvailable": 1}
            made = await budgets.create(body, here.namespace)
            made["status"] = {
                "disruptionsAllowed": item["allowed"],
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
                "observedGeneration": 1,
            }
            await budgets.update(made, subresource="status")
        else:
            await here.group(item)

    async def _status(self, item: Json) -> None:
        status: Json = {}
        if "started" in item:
            status["startTime"] = f"2026-01-01T00:{59 - item['started'] // 60:02}:{59 - item['started'] % 60:02}Z"
        if "nominated" in item:
            status["nominatedNodeName"] = item["nominated"]
        if status:
            patch = {"status": status}
            await self.here.pods.patch(item["pod"], patch, self.here.namespace, subresource="status")

    async def delete(self, target: str) -> None:
        kind, name = target.split("/")
        if kind == "pod":
            self.deleted.add(name)
            await self.here.pods.delete(name, self.here.namespace, grace=0)
        elif kind == "node":
            await self.here.nodes.delete(name)
        else:
            resource = self.here.groups if kind == "group" else self.here.composites
            await resource.patch(name, {"metadata": {"finalizers": None}}, self.here.namespace)
            await resource.delete(name, self.here.namespace)

    async def change(self, target: str, what: Json) -> None:
        name, space = target.split("/")[1], self.here.namespace
        if "minCount" in what:
            await self.here.groups.patch(name, {"spec": {"schedulingPolicy": {"gang": what}}}, space)
        elif "ungate" in what:
            await self.here.pods.patch(name, {"spec": {"schedulingGates": None}}, space)
        elif "phase" in what:
            await self.here.pods.patch(name, {"status": what}, space, subresource="status")
        else:
            await self.here.pods.bind(name, what["bind"], space)

    async def play(self, step: Json) -> None:
        self.scheduler.hold()
        for item in step.get("create", ()):
            await self.create(item)
            if step.get("live"):
                await self.seen()
                self.scheduler.go()
        for target in step.get("delete", ()):
            await self.delete(target)
        for target, what in step.get("set", ()):
            await self.change(target, what)
        await self.seen()

    async def seen(self) -> None:
        """The scheduler has heard of everything."""
        mark = f"seen-{len(self.made)}-{id(object())}"
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": mark}}
        body["spec"] = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "example.org/image"}]}
        await self.here.pods.create(body, self.here.namespace)
        nodes = {one["metadata"]["name"] for one in (await self.here.nodes.list()).items}
        groups = {str(one["metadata"]["name"]) for one in (await self.here.groups.list(self.here.namespace)).items}
        versions = {
            one["metadata"]["name"]: one["metadata"]["resourceVersion"]
            for one in (await self.here.groups.list(self.here.namespace)).items
        }

        async def heard() -> bool:
            stored, space = self.scheduler.objects.objects, self.here.namespace
            known = stored.get("podgroups", {})
            return (
                f"{space}/{mark}" in stored.get("pods", {})
                and set(stored.get("nodes", {})) == nodes
                and {key.split("/")[1] for key in known if key.startswith(f"{space}/")} == groups
                and all(known[f"{space}/{n}"].metadata.resource_version == v for n, v in versions.items())
            )

        await self.here.until(heard, 10.0)
        await self.here.pods.delete(mark, self.here.namespace, grace=0)

    async def outcome(self) -> Json:
        pods = (await self.here.pods.list(self.here.namespace)).items
        names = {one["metadata"]["name"]: one for one in pods if not one["metadata"]["name"].startswith("seen-")}
        ended = {"Succeeded", "Failed"}
        return {
            "bound": sorted(
                name
                for name, one in names.items()
                if one["spec"].get("nodeName") and one["status"].get("phase") not in ended
            ),
            "pending": {
                name: _said(one, "PodScheduled") and _said(one, "PodScheduled")[1]
                for name, one in names.items()
                if not one["spec"].get("nodeName")
            },
            "evicted": sorted(set(self.made) - names.keys() - self.deleted),
            "groups": {
                one["metadata"]["name"]: _said(one, "PodGroupInitiallyScheduled")
                for one in (await self.here.groups.list(self.here.namespace)).items
            },
            "composites": {
                one["metadata"]["name"]: _said(one, "CompositePodGroupInitiallyScheduled")
                for one in (await self.here.composites.list(self.here.namespace)).items
            },
        }


def _scheduler(item: Json) -> str:
    named = item.get("schedulerName", "default-scheduler")
    return NAME if named == "default-scheduler" else str(named)


def _said(body: Json, kind: str) -> Any:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next(((one["status"], one.get("reason")) for one in conditions if one["type"] == kind), None)


def simulated(sim: Sim) -> Json:
    return {
        "bound": sorted(sim.bound),
        "pending": sim.pending,
        "evicted": sorted(sim.evicted),
        "groups": sim.groups(),
        "composites": sim.groups("composite"),
    }


@pytest.mark.parametrize("scenario", PLAYED, ids=lambda scenario: scenario["id"])
async def test_recorded_end_to_end(env: Environment, scenario: Json) -> None:
    sim = Sim()
    for node in scenario["nodes"]:
        short.create(sim, node)
    async with cluster(env, scenario["id"].lower()) as here, running(Paused(here.client, SETTINGS)) as scheduler:
        assert isinstance(scheduler, Paused)
        player = Player(here, scheduler)
        for node in scenario["nodes"]:
            await player.create(node)
        for step in scenario["steps"]:
            short.play(sim, step)
            await player.play(step)
            if "outcome" in step:
                sim.settle(6.0)
                scheduler.go()
                await _comes_to(player, simulated(sim))
    await _clear(env, scenario)


async def _comes_to(player: Player, wanted: Json) -> None:
    found: Json = {}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(12.0):
            while (found := await player.outcome()) != wanted:
                await asyncio.sleep(0.05)
    assert found == wanted


async def _clear(env: Environment, scenario: Json) -> None:
    """Groups keep their finalizer until somebody takes it."""
    async with Client.connect(env.kubeconfig) as client:
        here = Cluster(client, scenario["id"].lower())
        for resource in (here.groups, here.composites):
            for one in (await resource.list(here.namespace)).items:
                with contextlib.suppress(ApiError):
                    await resource.patch(one["metadata"]["name"], {"metadata": {"finalizers": None}}, here.namespace)
                    await resource.delete(one["metadata"]["name"], here.namespace)
