"""Puts the objects of a cluster into an embedded server as they are: with uids and statuses, and past admission."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any, Final

from kohort.plan.clustercopy import ClusterCopy, kinds
from kohort.server import storage_codec
from kohort.sim.behaviour import PREFIX
from kohort.sim.cluster import PLAYED_BY
from kohort.sim.nodelife import STATE

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.resources import Resource
    from kohort.server.server import Server

# Nobody is there who would take a finalizer away, and owners are not copied: without them nothing is garbage.
_LEFT_OUT: Final = ("ownerReferences", "finalizers", "managedFields", "selfLink")
_STATES: Final = {"Unknown": "failed", "False": "notready"}


async def load(server: Server, cluster: ClusterCopy) -> None:
    writes: list[asyncio.Future[Any]] = []
    for name, group, kind in kinds():
        resource = server.api.resources.of_kind(group, kind)
        if resource is None:
            continue
        for obj in cluster.pods() if name == "pods" else cluster.of(name):
            version = str(obj.get("apiVersion") or "").rpartition("/")[2]
            own = server.api.resources.of_kind(group, kind, version) if version else None
            writes.append(write(server, own or resource, _prepared(kind, obj)))
    if writes:
        await asyncio.gather(*writes)


def write(server: Server, resource: Resource, obj: Object) -> asyncio.Future[Any]:
    meta = obj["metadata"]
    namespace = meta.get("namespace", "") if resource.namespaced else ""
    head = server.api.core.head(resource, namespace, meta["name"])
    return server.store.write(
        resource.table,
        namespace,
        meta["name"],
        lambda revision: storage_codec.dump(resource, obj, revision),
        expect=head,
    )


def _prepared(kind: str, obj: Object) -> Object:
    made = copy.deepcopy(obj)
    meta = made["metadata"]
    for name in _LEFT_OUT:
        meta.pop(name, None)
    annotations = {key: value for key, value in (meta.pop("annotations", None) or {}).items() if _is_kept(key)}
    if kind == "Node" and (state := _STATES.get(_ready(made), "")):
        annotations[STATE] = state
    if kind == "Pod":
        spec = made.get("spec") or {}
        for number, container in enumerate((*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))):
            container.setdefault("name", f"c{number}")  # of a snapshot, which has no names
            container.pop("command", None)  # a command such as sleep would end it: what runs is to run on
            container.pop("args", None)
    if annotations:
        meta["annotations"] = annotations
    return made


def _is_kept(annotation: str) -> bool:
    return not annotation.startswith(PREFIX) and annotation != PLAYED_BY


def _ready(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((str(one.get("status")) for one in conditions if one.get("type") == "Ready"), "True")
