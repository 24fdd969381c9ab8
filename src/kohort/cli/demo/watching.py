"""What happens to the workloads of the demo, as a watch sees it, and which promises held."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kohort.api.kind import Object
from kohort.cli.demo.stories import Story
from kohort.kube.client import Client
from kohort.kube.informer import Informer

TOGETHER: Final = 15.0  # seconds between the bindings of a gang's minimum: many on a machine with other work, too


@dataclass(slots=True)
class Pod:
    """Seconds since the story began; None: not yet."""

    group: str
    bound: float | None = None
    running: float | None = None
    ended: float | None = None
    node: str = ""

    @property
    def mark(self) -> str:
        if self.ended is not None:
            return "✔"
        if self.running is not None:
            return "●"
        return "◐" if self.bound is not None else "·"


@dataclass(slots=True)
class Tale:
    """One story as it goes."""

    story: Story
    began: float = field(default_factory=time.monotonic)
    pods: dict[str, Pod] = field(default_factory=dict)
    groups: dict[str, Object] = field(default_factory=dict)
    over: float | None = None
    why: str = ""

    def since(self) -> float:
        return time.monotonic() - self.began

    def gangs(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {name: [] for name in sorted(self.groups)}
        for _, pod in sorted(self.pods.items()):
            found.setdefault(pod.group, []).append(pod)
        return found

    def minimum(self, group: str) -> int | None:
        """Of a gang; None: no gang, or not seen yet."""
        return (self._policy(group).get("gang") or {}).get("minCount")

    def is_basic(self, group: str) -> bool:
        """Its pods come and go one by one, and nobody promised anything else."""
        return "basic" in self._policy(group)

    def _policy(self, group: str) -> Object:
        return ((self.groups.get(group) or {}).get("spec") or {}).get("schedulingPolicy") or {}

    @property
    def told(self) -> bool:
        """Nothing more will happen."""
        return self.over is not None or (not self.story.fits and bool(self.why) and len(self.pods) == self.story.pods)

    # ---- what the watch says

    def saw_pod(self, obj: Object) -> None:
        name, spec, phase = obj["metadata"]["name"], obj["spec"], (obj.get("status") or {}).get("phase")
        group = str((spec.get("schedulingGroup") or {}).get("podGroupName") or "")
        pod = self.pods.setdefault(name, Pod(group))
        now = self.since()
        if spec.get("nodeName") and pod.bound is None:
            pod.bound, pod.node = now, spec["nodeName"]
        if phase in {"Running", "Succeeded", "Failed"} and pod.running is None:
            pod.running = now
        if phase in {"Succeeded", "Failed"} and pod.ended is None:
            pod.ended = now
        if self.story.serves and self.over is None and all(one.running is not None for one in self._whole()):
            self.over = now

    def _whole(self) -> list[Pod | _Missing]:
        return [*self.pods.values(), *[_MISSING] * (self.story.pods - len(self.pods))]

    def saw_group(self, obj: Object) -> None:
        self.groups[obj["metadata"]["name"]] = obj
        for one in (obj.get("status") or {}).get("conditions") or ():
            if one.get("status") == "False" and one.get("message"):
                self.why = f"{one.get('reason')}: {one['message']}"

    def saw_workload(self, obj: Object) -> None:
        assert self.story.end is not None
        conditions = (obj.get("status") or {}).get("conditions") or ()
        if self.over is None and any(
            one["type"] == self.story.end[2] and one["status"] == "True" for one in conditions
        ):
            self.over = self.since()

    # ---- what was promised

    def broken(self) -> Iterator[str]:
        if len(self.pods) != self.story.pods:
            yield f"{len(self.pods)} pods were made instead of {self.story.pods}"
        if len(self.groups) != self.story.groups:
            yield f"{len(self.groups)} groups were made instead of {self.story.groups}"
        if any(not pod.group for pod in self.pods.values()):
            yield "pods were made without a group"
        if not self.story.fits:
            yield from self._waited()
            return
        for name, pods in self.gangs().items():
            yield from _ran(name, pods) if self.is_basic(name) else _started_together(name, pods, self.minimum(name))
        if self.over is None:
            yield "it did not come to its end"

    def _waited(self) -> Iterator[str]:
        bound = sum(pod.bound is not None for pod in self.pods.values())
        if bound:
            yield f"{bound} pods were bound though not all fit"
        if not self.why:
            yield "nobody said why it waits"


class _Missing:
    """A pod that has not been made."""

    running = None


_MISSING: Final = _Missing()


def _ran(name: str, pods: list[Pod]) -> Iterator[str]:
    bound = sum(pod.bound is not None for pod in pods)
    running = sum(pod.running is not None for pod in pods)
    if not pods or bound < len(pods) or running < len(pods):
        yield f"{name}: {bound} of {len(pods)} pods were bound, {running} ran"


def _started_together(name: str, pods: list[Pod], minimum: int | None) -> Iterator[str]:
    missing = list(_ran(name, pods))
    if missing:
        yield from missing
        return
    running = [pod.running for pod in pods if pod.running is not None]
    if spread(pods, minimum) > TOGETHER:
        yield f"{name}: {spread(pods, minimum):.1f} s between the first and the last binding of its minimum"
    if min(running) < _bound(pods, minimum)[-1]:
        yield f"{name}: a pod ran before the minimum was bound"


def spread(pods: list[Pod], minimum: int | None) -> float:
    """Seconds between the first and the last binding of a gang's minimum. Surplus may come later."""
    bound = _bound(pods, minimum)
    return bound[-1] - bound[0] if bound else 0.0


def _bound(pods: list[Pod], minimum: int | None) -> list[float]:
    return sorted(pod.bound for pod in pods if pod.bound is not None)[: minimum or None]


async def follow(tale: Tale, client: Client, stack: AsyncExitStack) -> None:
    """Tell the tale of everything in its namespace, until the stack is closed."""
    version = (await client.discovery.versions("scheduling.k8s.io", "PodGroup"))[0]
    watched: list[tuple[Informer[Any], Callable[[Object], None]]] = [
        (_informer(client, "v1", "Pod", tale), tale.saw_pod),
        (_informer(client, f"scheduling.k8s.io/{version}", "PodGroup", tale), tale.saw_group),
    ]
    if tale.story.end is not None:
        watched.append((_informer(client, *tale.story.end[:2], tale), tale.saw_workload))
    for informer, saw in watched:
        informer.handle(added=saw, updated=partial(_newest, saw))
        await stack.enter_async_context(informer)
        await informer.ready()


def _newest(saw: Callable[[Object], None], _: Object, new: Object) -> None:
    saw(new)


def _informer(client: Client, api_version: str, kind: str, tale: Tale) -> Informer[Any]:
    return Informer(client.kind(api_version, kind), namespace=tale.story.name)
