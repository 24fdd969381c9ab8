"""The DaemonSet controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import controller_of, controller_uid, is_deleting, meta_of, uid_of
from kohort.controllermanager.claims import loose, owner_key
from kohort.controllermanager.daemonset.plan import FailureBackoff
from kohort.controllermanager.daemonset.reconcile import View, reconcile
from kohort.controllermanager.podcontrol import BASE_DELAY, BATCH, nothing
from kohort.controllermanager.pods import is_terminal
from kohort.controllers.controller import (
    Controller,
    Enqueue,
    Key,
    Reader,
    Watch,
    enqueue_itself,
    enqueue_nothing,
    key_of,
)
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import Adopters

_SLOW: Final = 0.5  # seconds: a reconcile looks at all nodes, and most changes of pods only count
_ALL: Final = "all"


def daemonset_controller() -> Controller:
    adopters, known = Adopters(), dict[Key, FailureBackoff]()

    def of_set(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        adopters.see(old, new)
        if new is not None:
            known.setdefault(key_of(new), FailureBackoff())
        elif old is not None:
            known.pop(key_of(old), None)
        return enqueue_itself(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        found = {key for pod in (old, new) if pod is not None for key in _set_of(pod)}
        if new is not None and controller_of(new) is None:
            found.update(adopters.of(new))
        counts_only = old is not None and new is not None and not is_deleting(new) and not is_terminal(new)
        return [Enqueue(key, _SLOW if counts_only else BATCH) for key in sorted(found)]

    def of_node(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        """A node that only says that it lives changes nothing here."""
        changed = old is None or new is None or _judged(old) != _judged(new)
        return [Enqueue(key, BATCH) for key in sorted(known)] if changed else []

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return _reconcile_key(key, reader, now, known.get(key) or FailureBackoff())

    watches = (
        Watch("apps/v1", "DaemonSet", of_set),
        Watch("v1", "Pod", of_pod, {"owner": _set_of, "loose": loose}, controllers=("DaemonSet", "")),
        Watch("apps/v1", "ControllerRevision", enqueue_nothing, {"owner": _set_of, "loose": loose}),
        Watch("v1", "Node", of_node, {_ALL: lambda _: (_ALL,)}),
    )
    return Controller(name="daemonset", watches=watches, reconcile=reconcile_key, base_delay=BASE_DELAY)


def _judged(node: Object) -> tuple[Any, Any]:
    return meta_of(node).get("labels"), (node.get("spec") or {}).get("taints")


def _reconcile_key(key: Key, reader: Reader, now: datetime, backoff: FailureBackoff) -> Reconcile:
    ds = reader.get("DaemonSet", key)
    if ds is None:
        return nothing()

    def own(kind: str) -> list[Object]:
        found = [*reader.indexed(kind, "owner", key), *reader.indexed(kind, "loose", key.namespace)]
        return [obj for obj in found if controller_uid(obj) in ("", uid_of(ds))]

    return reconcile(
        View(
            ds,
            reader.indexed("Node", _ALL, _ALL),
            own("Pod"),
            own("ControllerRevision"),
            lambda name: reader.get("ControllerRevision", Key(key.namespace, name)),
            now,
            backoff,
        )
    )


def _set_of(obj: Object) -> Iterable[Key]:
    return owner_key(obj, "DaemonSet", "apps")
