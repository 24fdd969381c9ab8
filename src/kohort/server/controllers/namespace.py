"""The end of a namespace: its content is deleted, its conditions say what is left, then its own finalizer goes."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kohort.server import timestamps
from kohort.server.controllers.controller import Controller
from kohort.server.controllers.partial_objects import PartialMetadata, meta_of
from kohort.server.controllers.writes import change, delete
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.resources import Resource
    from kohort.server.store import Event, Item

FINALIZER: Final = "kubernetes"
_FINE: Final = (200, 202, 404, 409)
# Type, reason and message when there is nothing to say, in the order in which they stand.
_WELL: Final = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


class NamespaceController(Controller[str]):
    name = "namespace-controller"

    def __init__(self, api: Api, clock: Clock) -> None:
        super().__init__(api, clock)
        self._terminating: set[str] = set()

    def observe(self, table: str, item: Item, event: Event | None) -> None:
        if table == "namespaces":
            if event is not None and event.change is Change.DELETE:
                self._terminating.discard(item.name)
            elif meta_of(item).deletionTimestamp is not None:
                self._terminating.add(item.name)
                self.enqueue(item.name)
        elif event is not None and item.namespace in self._terminating and event.change is not Change.UPDATE:
            self.enqueue(item.namespace)  # less to wait for, or something that slipped in

    async def reconcile(self, key: str) -> bool:
        resource = self.api.resources.of_plural("", "namespaces")
        if resource is None or key not in self._terminating:
            return True
        failed = await self._empty(key)
        left = await self._left(key)
        now = timestamps.stamp()
        await change(self.core, resource, "", key, lambda one: with_conditions(one, left, failed, now))
        if not left:
            await change(self.core, resource, "", key, finalized)
        return not failed

    async def _content(self, namespace: str) -> list[tuple[Resource, Item, PartialMetadata]]:
        """In turns with whoever else needs the event loop: it may be much."""
        found: list[tuple[Resource, Item, PartialMetadata]] = []
        end = await self.core.slices.turn()
        for table, resource in self.api.resources.stored().items():
            if not resource.namespaced:
                continue
            for item in self.store.table(table).items(namespace):
                found.append((resource, item, meta_of(item)))
                if time.perf_counter() >= end:
                    end = await self.core.slices.turn()
        return found

    async def _empty(self, namespace: str) -> list[str]:
        """Delete what is not terminating yet, pods first: they may need the rest. Returns what could not be deleted."""
        failed: list[str] = []
        content = await self._content(namespace)
        pods = [one for one in content if one[0].full_name == "pods"]
        for resource, item, meta in pods or content:
            if meta.deletionTimestamp is None:
                code = await delete(self.api, resource, namespace, item.name, uid=meta.uid)
                if code not in _FINE:
                    failed.append(f"{resource.full_name} {item.name}: the server answered {code}")
        return failed

    async def _left(self, namespace: str) -> list[tuple[str, tuple[str, ...]]]:
        """The resource and the finalizers of each object that is still there."""
        return [
            (f"{resource.plural}.{resource.group}", tuple(meta.finalizers or ()))
            for resource, _, meta in await self._content(namespace)
        ]


def with_conditions(
    namespace: Object, left: list[tuple[str, tuple[str, ...]]], failed: list[str], now: str
) -> Object | None:
    """The namespace with conditions about its content; None if it is not ending."""
    if not namespace["metadata"].get("deletionTimestamp"):
        return None
    wrong: dict[str, tuple[str, str]] = {}
    if failed:
        text = f"Failed to delete all resource types, {len(failed)} remaining: {', '.join(sorted(failed))}"
        wrong["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
    if left:
        kinds = Counter(kind for kind, _ in left)
        listed = ", ".join(sorted(f"{kind} has {count} resource instances" for kind, count in kinds.items()))
        wrong["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    holders = Counter(finalizer for _, finalizers in left for finalizer in finalizers)
    if holders:
        listed = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in holders.items()))
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        wrong["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
    status = namespace.setdefault("status", {})
    status["phase"] = "Terminating"
    before = {one.get("type"): one for one in status.get("conditions") or ()}
    status["conditions"] = [
        _condition(before.get(condition_type), condition_type, reason, text, wrong, now)
        for condition_type, reason, text in _WELL
    ]
    return namespace


def _condition(
    before: dict[str, Any] | None,
    condition_type: str,
    reason: str,
    text: str,
    wrong: dict[str, tuple[str, str]],
    now: str,
) -> dict[str, Any]:
    condition_status = "True" if condition_type in wrong else "False"
    reason, text = wrong.get(condition_type, (reason, text))
    since = before["lastTransitionTime"] if before is not None and before.get("status") == condition_status else now
    return {
        "type": condition_type,
        "status": condition_status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": text,
    }


def finalized(namespace: Object) -> Object | None:
    spec = namespace.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    if not namespace["metadata"].get("deletionTimestamp") or FINALIZER not in finalizers:
        return None
    left = [one for one in finalizers if one != FINALIZER]
    namespace["spec"] = {**spec, "finalizers": left} if left else {}
    return namespace
