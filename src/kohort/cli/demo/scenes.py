"""Scenes of several steps: a gang that takes the room of another, and a node that dies under one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import uid_of
from kohort.cli.common import count
from kohort.cli.demo.screen import Act, Screen
from kohort.kube.client import Client
from kohort.sim.nodelife import STATE, UNREACHABLE

LIMIT: Final = 180.0
JOBSET: Final = "jobset.x-k8s.io/v1alpha2"
_LOOK: Final = 0.05
_NEVER: Final = {"sim.kohort.dev/run-seconds": "600"}


class LateError(Exception):
    """Something that was promised did not happen in time."""


def jobset(name: str, pods: int, cpu: int, *, annotations: Mapping[str, str] | None = None, **pod: Any) -> Object:
    """A gang that is disrupted as a whole or not at all, and starts anew when it has lost a pod."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": str(cpu)}}}
    template = {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {"restartPolicy": "Never", "containers": [container], **pod},
    }
    job = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": template}
    return {
        "apiVersion": JOBSET,
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "scheduling": {"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}},
            "failurePolicy": {"maxRestarts": 3, "restartStrategy": "BlockingRecreate"},
            "replicatedJobs": [{"name": "w", "template": {"spec": job}}],
        },
    }


@dataclass(slots=True)
class Stage:
    """A namespace of its own, and a watch on what happens there."""

    screen: Screen
    client: Client
    namespace: str
    limit: float = LIMIT
    began: float = field(default_factory=time.monotonic)

    async def open(self) -> None:
        await self.client.kind("v1", "Namespace").create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        )

    def tell(self, name: str, text: str, style: str = "") -> None:
        self.screen.line(time.monotonic() - self.began, name, text, style)

    async def create(self, *objects: Object) -> None:
        for obj in objects:
            await self.client.of(obj).create(obj, self.namespace)

    async def pods(self, name: str) -> list[Object]:
        return (
            await self.client.kind("v1", "Pod").list(self.namespace, labels=f"jobset.sigs.k8s.io/jobset-name={name}")
        ).items

    async def until(self, what: str, look: Callable[[], Awaitable[Any]]) -> Any:
        end = time.monotonic() + self.limit
        while not (found := await look()):
            if time.monotonic() > end:
                raise LateError(f"{what}: not within {self.limit:.0f} s")
            await asyncio.sleep(_LOOK)
        return found

    async def running(self, name: str, number: int, *, without: str = "") -> list[Object]:
        """So many pods of a JobSet, none of them on its way out, none on the node `without`."""

        async def look() -> list[Object]:
            found = [pod for pod in await self.pods(name) if _runs(pod) and pod["spec"]["nodeName"] != without]
            return found if len(found) == number else []

        found: list[Object] = await self.until(f"{number} pods of {name} run", look)
        return found

    async def ended(self, name: str) -> None:
        async def look() -> bool:
            found = await self.client.kind(JOBSET, "JobSet").get(name, self.namespace)
            conditions = (found.get("status") or {}).get("conditions") or ()
            return any(one["type"] == "Completed" and one["status"] == "True" for one in conditions)

        await self.until(f"{name} completes", look)


def _runs(pod: Object) -> bool:
    return pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


async def preempts(stage: Stage) -> Act:
    act = Act("preempts", "made room as a whole, came back", pods=14, groups=2)
    await stage.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        },
        jobset("low", 8, 6, annotations=_NEVER),
    )
    before = {uid_of(pod) for pod in await stage.running("low", 8)}
    stage.tell("low", "8 pods run, with 48 of 64 cpu, at priority 0")
    await stage.create(jobset("urgent", 6, 6, priorityClassName="urgent"))
    stage.tell("urgent", "6 pods of 6 cpu come, priority 1000; no node has so much free")
    await stage.running("urgent", 6)
    left = before & {uid_of(pod) for pod in await stage.pods("low") if _runs(pod)}
    stage.tell("urgent", "all 6 run; low made room as a whole: half a gang is of no use")
    if left:
        act.faults.append(f"{count(len(left), 'pod')} of low went on running beside the others' end")
    await stage.ended("urgent")
    await stage.running("low", 8)
    stage.tell("low", "urgent is done: all 8 pods of low run again", "green")
    await stage.client.kind(JOBSET, "JobSet").delete("low", stage.namespace, propagation="Foreground")
    return act


async def heals(stage: Stage) -> Act:
    act = Act("heals", "whole again elsewhere", pods=8, groups=1)
    quickly = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    await stage.create(jobset("train", 4, 4, annotations=_NEVER, tolerations=[quickly]))
    pods = await stage.running("train", 4)
    node, lost = str(pods[0]["spec"]["nodeName"]), {uid_of(pod) for pod in pods}
    stage.tell("train", f"4 pods run; {node} has one of them")
    nodes = stage.client.kind("v1", "Node")
    await nodes.patch(node, {"metadata": {"annotations": {STATE: "failed"}}})
    stage.tell(node, "dies: its kubelet says nothing any more", "yellow")
    healed = await stage.running("train", 4, without=node)
    where = ", ".join(sorted({str(pod["spec"]["nodeName"]) for pod in healed}))
    stage.tell("train", f"runs anew, all 4 together, on {where}", "green")
    if lost & {uid_of(pod) for pod in healed}:
        act.faults.append("pods of the first attempt went on beside those of the second")
    await nodes.patch(node, {"metadata": {"annotations": {STATE: None}}})
    await stage.client.kind(JOBSET, "JobSet").delete("train", stage.namespace, propagation="Foreground")
    return act


async def play(screen: Screen, client: Client, scene: Callable[[Stage], Awaitable[Act]], limit: float = LIMIT) -> None:
    """One scene; what it promises and does not keep is a fault, not an end of the demo."""
    stage = Stage(screen, client, scene.__name__, limit)
    await stage.open()
    try:
        act = await scene(stage)
    except LateError as error:
        act = Act(scene.__name__, "", pods=0, groups=0, faults=[str(error)])
    act.over = time.monotonic() - stage.began
    screen.acts.append(act)
