"""A simulated API server with one scheduler on it, in virtual time and without tasks.

Objects are real API objects (dictionaries), told to the scheduler as a watch would tell them. Bindings, evictions and
status writes of the scheduler are carried out on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kohort.place.score import Profile
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import DisruptionBudget, GroupObject, Job, Node, Pod, composite_key
from kohort.scheduler.schedulingcycle import Step
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.status import Eviction, Patch, SchedulerEvent, Writes, written

SPACE = "default"
START = datetime(2026, 1, 1, tzinfo=UTC)
Json = dict[str, Any]

SETTINGS = SchedulerSettings(
    names=frozenset({"default-scheduler", "second"}),
    profile=Profile(resources=("cpu",)),
    first_backoff=1.0,
    longest_backoff=1.0,
)


@dataclass
class Sim:
    """`objects`: by kind, then name. All in one namespace."""

    settings: SchedulerSettings = SETTINGS
    objects: dict[str, dict[str, Json]] = field(
        default_factory=lambda: {kind: {} for kind in ("node", "pod", "group", "composite", "pdb", "claim", "job")}
    )
    now: float = 0.0
    slow: bool = False  # deleted pods stay on their nodes
    running: bool = True  # the scheduler
    aside: bool = False  # hard questions wait in `core.questions` for a test to answer them
    refuse: dict[str, int] = field(default_factory=dict)  # pod -> how many bindings are refused, -1: all
    evicted: dict[str, str] = field(default_factory=dict)
    hold_evictions: bool = False  # they wait in `evictions` for a test to carry them out
    evictions: list[Eviction] = field(default_factory=list)
    events: list[SchedulerEvent] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    crash: int = 0  # the scheduler dies after so many bindings more, in the middle of a decision, and starts anew
    before_binding: Callable[[], None] | None = None
    after_step: Callable[[], None] | None = None
    on_binding: Callable[[dict[str, str]], None] | None = None

    def __post_init__(self) -> None:
        self._uids = itertools.count(1)
        self.core = SchedulerCore(self.settings, self.stamp, aside=self.aside)

    def stamp(self) -> str:
        return (START + timedelta(seconds=int(self.now))).strftime("%Y-%m-%dT%H:%M:%SZ")

    # ---- the API

    def put(self, kind: str, name: str, body: Json) -> Json:
        meta = body.setdefault("metadata", {})
        meta |= {"name": name, "uid": f"{kind}-{next(self._uids)}", "creationTimestamp": self.stamp(), "generation": 1}
        if kind != "node":
            meta["namespace"] = SPACE
        self.objects[kind][name] = body
        self.tell(kind, name)
        return body

    def tell(self, kind: str, name: str) -> None:
        """The watch brings an object as it is."""
        if not self.running:
            return
        body, cache = self.objects[kind][name], self.core.cache
        if kind == "node":
            cache.set_node(msgspec.convert(body, Node))
        elif kind == "pod":
            cache.set_pod(msgspec.convert(body, Pod))
        elif kind in {"group", "composite"}:
            cache.set_group(msgspec.convert(body, GroupObject), composite=kind == "composite")
        elif kind == "pdb":
            cache.budgets.set(msgspec.convert(body, DisruptionBudget))
        elif kind == "claim":
            cache.storage.set_claim(f"{SPACE}/{name}", body)
        elif kind == "job":
            cache.set_job(msgspec.convert(body, Job))

    def delete(self, kind: str, name: str) -> None:
        """At once."""
        body = self.objects[kind].pop(name)
        if not self.running:
            return
        cache = self.core.cache
        if kind == "node":
            cache.drop_node(name)
        elif kind == "pod":
            self.core.drop_pod(msgspec.convert(body, Pod))
        elif kind in {"group", "composite"}:
            self.core.drop_group(f"{SPACE}/{name}" if kind == "group" else composite_key(SPACE, name))
        elif kind == "pdb":
            cache.budgets.drop(f"{SPACE}/{name}")
        elif kind == "claim":
            cache.storage.set_claim(f"{SPACE}/{name}", None)
        elif kind == "job":
            cache.drop_job(body["metadata"]["uid"])

    def restart(self) -> None:
        """A new scheduler on the same API: groups and nodes are listed before pods."""
        self.core = SchedulerCore(self.settings, self.stamp, aside=self.aside)
        self.running = True
        for kind in ("node", "composite", "group", "pdb", "claim", "job", "pod"):
            for name in self.objects[kind]:
                self.tell(kind, name)

    # ---- deciding

    def settle(self, seconds: float = 0.0) -> None:
        """Until nothing happens any more, and then on for so long."""
        end = self.now + seconds
        self.drain()
        while self.running:
            timer = self.core.next_timer()
            if timer is None or timer > end:
                break
            self.now = max(timer, self.now)
            self.drain()
        self.now = end

    def drain(self) -> None:
        while self.running and (step := self.core.step(self.now)) is not None:
            self.steps.append(step)
            self.carry_out(step)
            if self.after_step is not None:
                self.after_step()

    def carry_out(self, step: Step) -> None:
        self.write(step.writes)
        if step.decision is not None:
            hook, self.before_binding = self.before_binding, None
            if hook is not None:
                hook()
        if step.decision is not None and step.decision.assignments:
            assignments = self.core.confirm(step.decision)
            if self.on_binding is not None:
                self.on_binding(assignments)
            for uid, node in assignments.items():
                self.bind(uid, node)
                if self.crash:
                    self.crash -= 1
                    if not self.crash:
                        self.restart()
                        return
        self.evictions += step.evictions
        while self.evictions and not self.hold_evictions:
            self.evict(self.evictions[0])

    def evict(self, eviction: Eviction) -> bool:
        """The server is asked, and does it, unless nobody needs it any more."""
        self.evictions.remove(eviction)
        name, uid = eviction.pod.name, eviction.pod.uid
        body = self.objects["pod"].get(name)
        if body is None or body["metadata"]["uid"] != uid:
            return False
        if not self.core.still_wanted(uid, self.now):
            self.core.not_sent(uid)
            return False
        self.evicted[name] = eviction.condition.message
        if eviction.failed:
            body["status"] |= {"phase": "Failed", "conditions": [written(eviction.condition)]}
            self.tell("pod", name)
        else:
            self.remove_pod(name)
        return True

    def refuse_eviction(self, eviction: Eviction) -> None:
        self.evictions.remove(eviction)
        self.write(self.core.not_evicted(eviction.pod.uid, "refused on purpose", self.now))

    def remove_pod(self, name: str) -> None:
        """As the kubelet does it: at once, or after its time."""
        pod = self.objects["pod"][name]
        if self.slow and pod["spec"].get("nodeName"):
            pod["metadata"]["deletionTimestamp"] = self.stamp()
            self.tell("pod", name)
        else:
            self.delete("pod", name)

    def finish_deletions(self) -> None:
        self.slow = False
        for name, pod in list(self.objects["pod"].items()):
            if pod["metadata"].get("deletionTimestamp") and pod["spec"].get("nodeName"):
                self.delete("pod", name)

    def bind(self, uid: str, node: str) -> None:
        found = [name for name, pod in self.objects["pod"].items() if pod["metadata"]["uid"] == uid]
        if not found:
            self.core.lost(uid)
            return
        name = found[0]
        if self.refuse.get(name, 0):
            self.refuse[name] -= 1
            self.write(self.core.refused(uid, node, "refused on purpose", self.now))
            return
        pod = self.objects["pod"][name]
        assert "nodeName" not in pod["spec"], "bound twice"
        pod["spec"]["nodeName"] = node
        conditions = [one for one in pod["status"].get("conditions", ()) if one["type"] != "PodScheduled"]
        pod["status"] = {"phase": "", "conditions": [*conditions, {"type": "PodScheduled", "status": "True"}]}
        self.events += self.core.bound(uid, node)
        self.tell("pod", name)

    def write(self, writes: Writes) -> None:
        self.events += writes.events
        for patch in writes.patches:
            self.patch(patch)

    def patch(self, patch: Patch) -> None:
        kind = {"Pod": "pod", "PodGroup": "group", "CompositePodGroup": "composite"}[patch.target.kind]
        body = self.objects[kind].get(patch.target.name)
        if body is None or body["metadata"]["uid"] != patch.target.uid:
            return
        status = body.setdefault("status", {})
        if patch.condition is not None:
            known = {one["type"]: one for one in status.get("conditions", ())}
            before = known.pop(patch.condition.type, {})  # merged, as a strategic merge patch is
            status["conditions"] = [*known.values(), {**before, **written(patch.condition)}]
        if patch.nominated is not None:
            status["nominatedNodeName"] = patch.nominated
        self.tell(kind, patch.target.name)

    # ---- looking

    def condition(self, kind: str, name: str, type_: str) -> Json | None:
        conditions = (self.objects[kind][name].get("status") or {}).get("conditions") or ()
        return next((one for one in conditions if one["type"] == type_), None)

    @property
    def bound(self) -> dict[str, str]:
        return {
            name: pod["spec"]["nodeName"]
            for name, pod in self.objects["pod"].items()
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in {"Succeeded", "Failed"}
        }

    @property
    def pending(self) -> dict[str, str | None]:
        """Reason of PodScheduled False; None if nothing was said."""
        found: dict[str, str | None] = {}
        for name, pod in self.objects["pod"].items():
            if not pod["spec"].get("nodeName"):
                said = self.condition("pod", name, "PodScheduled")
                found[name] = said["reason"] if said else None
        return found

    @property
    def nominated(self) -> dict[str, str]:
        pods = self.objects["pod"].items()
        return {
            name: pod["status"]["nominatedNodeName"] for name, pod in pods if pod["status"].get("nominatedNodeName")
        }

    def groups(self, kind: str = "group") -> dict[str, tuple[str, str] | None]:
        type_ = "PodGroupInitiallyScheduled" if kind == "group" else "CompositePodGroupInitiallyScheduled"
        found = {name: self.condition(kind, name, type_) for name in self.objects[kind]}
        return {name: (one["status"], one["reason"]) if one else None for name, one in found.items()}

    def counts(self) -> dict[str, int]:
        """Decisions about groups by result, as kube-scheduler counts them."""
        found: dict[str, int] = {}
        for step in self.steps:
            if step.decision is not None and not step.decision.root.startswith("pod/"):
                found[step.decision.kind.value] = found.get(step.decision.kind.value, 0) + 1
        return found
