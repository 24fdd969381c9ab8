"""What a scheduler would do after something is done to the cluster, played on its own knowledge of it.

Pods that go come back as their owners would make them: same labels, same group, same rank, no node. Decisions are the
scheduler's own; what it binds is bound here, and nowhere else. Time passes only where the scheduler waits for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

import msgspec

from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.grouphealing import is_owned
from kohort.scheduler.model import Node, Pod, PodStatus
from kohort.scheduler.schedulingcycle import Step
from kohort.scheduler.status import Eviction
from kohort.scheduler.trees import PodInfo

_STEPS: Final = 10_000  # decisions in a rehearsal, at the most
SECONDS: Final = 120.0  # that it lasts, unless somebody says more


class Rehearsal:
    """On a core that nobody else uses: it is not the same afterwards."""

    def __init__(self, core: SchedulerCore) -> None:
        self.core = core
        self.now = 0.0
        self.came_back: dict[str, str] = {}  # uid of a pod that went -> of the one that came back for it
        self.failed: set[str] = set()  # uids of pods that failed with their gang
        self.actions: dict[str, str] = {}  # group -> what was done to it as a whole, and why
        self._uids = itertools.count(1)
        self._left = _STEPS

    def cordon(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            spec = msgspec.structs.replace(node.spec, unschedulable=True, taints=[*(node.spec.taints or ()), taint])
            self.core.cache.set_node(msgspec.structs.replace(node, spec=spec))

    def evict(self, member: PodInfo) -> None:
        """It goes, and comes back without a node if somebody makes it anew."""
        pod = member.pod
        self.core.drop_pod(pod)
        if not is_owned(member):
            return
        uid = f"again-{next(self._uids)}"
        self.came_back[member.uid] = uid
        meta = msgspec.structs.replace(pod.metadata, uid=uid, deletion_timestamp=None)
        spec = msgspec.structs.replace(pod.spec, node_name="")
        self.core.cache.set_pod(Pod(meta, spec, PodStatus()))

    def play(self, seconds: float = SECONDS) -> None:
        """Until nothing happens any more, or so long."""
        end = self.now + seconds
        while self._left > 0:
            step = self.core.step(self.now)
            if step is not None:
                self._left -= 1
                self._carry_out(step)
                continue
            timer = self.core.next_timer()
            if timer is None or timer > end:
                break
            self.now = max(timer, self.now)
        self.now = end

    def _carry_out(self, step: Step) -> None:
        decision = step.decision
        if decision is not None and decision.assignments:
            for uid, node in self.core.confirm(decision).items():
                member = self.core.cache.members[uid]
                spec = msgspec.structs.replace(member.pod.spec, node_name=node)
                self.core.cache.set_pod(msgspec.structs.replace(member.pod, spec=spec))
        for event in step.writes.events:
            if event.action == "Healing" or event.reason == "Widened":
                self.actions.setdefault(f"{event.regarding.namespace}/{event.regarding.name}", event.text)
        for eviction in step.evictions:
            self._evicted(eviction)

    def _evicted(self, eviction: Eviction) -> None:
        member = self.core.cache.members.get(eviction.pod.uid)
        if member is None:
            return
        if eviction.failed:
            self.failed.add(member.uid)
            self.core.drop_pod(member.pod)
        else:
            self.evict(member)

    def where(self, uid: str) -> str:
        """The node of a pod, or of whoever came back for it; empty: none."""
        while uid in self.came_back:
            uid = self.came_back[uid]
        member = self.core.cache.members.get(uid)
        return member.node if member is not None else ""
