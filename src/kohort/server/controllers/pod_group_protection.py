"""A terminating PodGroup keeps its finalizer until none of its pods can still run (spec workload-api 3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.api.scheduling.constants import PROTECTION_FINALIZER
from kohort.server.controllers.controller import Controller
from kohort.server.controllers.partial_objects import meta_of, pod_of
from kohort.server.controllers.writes import change
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.store import Event, Item

_OVER: Final = frozenset({"Succeeded", "Failed"})
_TABLE: Final = "scheduling.k8s.io/podgroups"
Group = tuple[str, str]  # namespace, name


class PodGroupProtection(Controller[Group]):
    name = "podgroup-protection-controller"
    tables = frozenset({"pods", _TABLE})

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self._group_of: dict[tuple[str, str], Group] = {}  # pods that may still run
        self._members: dict[Group, set[str]] = {}
        self._terminating: set[Group] = set()

    def observe(self, table: str, item: Item, event: Event | None) -> None:
        gone = event is not None and event.change is Change.DELETE
        if table == "pods":
            self._observe_pod(item, gone)
        elif table == _TABLE:
            meta = meta_of(item)
            if not gone and meta.deletionTimestamp is not None and PROTECTION_FINALIZER in (meta.finalizers or ()):
                self._terminating.add(item.key)
                self.enqueue(item.key)
            else:
                self._terminating.discard(item.key)

    def _observe_pod(self, item: Item, gone: bool) -> None:
        before = self._group_of.pop(item.key, None)
        after: Group | None = None
        if not gone and b'"schedulingGroup"' in item.value:
            pod = pod_of(item)
            name = pod.spec.schedulingGroup.podGroupName if pod.spec.schedulingGroup is not None else None
            if name and pod.status.phase not in _OVER:
                after = (item.namespace, name)
        if after is not None:
            self._group_of[item.key] = after
            self._members.setdefault(after, set()).add(item.name)
        if before is not None and before != after:
            self._members[before].discard(item.name)
            if not self._members[before]:
                del self._members[before]
            if before in self._terminating:
                self.enqueue(before)

    async def reconcile(self, key: Group) -> bool:
        resource = self.api.resources.of_plural("scheduling.k8s.io", "podgroups")
        if resource is None or key not in self._terminating or self._members.get(key):
            return True
        await change(self.core, resource, *key, released)
        return True


def released(group: Object) -> Object | None:
    meta = group["metadata"]
    if not meta.get("deletionTimestamp"):
        return None
    meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != PROTECTION_FINALIZER]
    return group
