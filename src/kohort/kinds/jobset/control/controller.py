"""The JobSet controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import controller_of, meta_of
from kohort.controllers.controller import (
    Controller,
    Enqueue,
    Key,
    Reader,
    Watch,
    enqueue_itself,
    enqueue_nothing,
)
from kohort.controllers.reconcile import Reconcile
from kohort.gang.compile import CompileContext
from kohort.kinds.jobset.api import constants
from kohort.kinds.jobset.api.defaults import default
from kohort.kinds.jobset.api.reading import subdomain_of
from kohort.kinds.jobset.api.volumes import claim_names
from kohort.kinds.jobset.control import inplace
from kohort.kinds.jobset.control.event_filter import EventFilter, filtered
from kohort.kinds.jobset.control.reconcile import COUNTERS, placement_by_template, reconcile
from kohort.kinds.jobset.control.view import JobSetView

_GROUPS: Final = ("Workload", "PodGroup", "CompositePodGroup")
_BATCH: Final = 0.05  # seconds in which changes of Jobs that run are gathered
_SETTLE: Final = 5.0  # seconds after which a new pod of a gang should have been bound


def jobset_controller(ctx: CompileContext, *, grouping: bool = True) -> Controller:
    """`grouping`: whether the server has groups. Without, JobSets that ask for a gang do not start."""
    watches = [
        Watch(constants.API_VERSION, constants.KIND, enqueue_itself),
        Watch("batch/v1", "Job", _of_job, {"jobset": _owners}),
        Watch("v1", "Service", _of_owned),
        Watch("v1", "PersistentVolumeClaim", enqueue_nothing),
        Watch("v1", "Pod", _of_pod, {"pods": _jobsets_of_pod}, label=constants.JOBSET_NAME),
        *([Watch("scheduling.k8s.io/v1", "PriorityClass", enqueue_nothing)] if placement_by_template(ctx) else ()),
        *(_group_watches(ctx) if grouping else ()),
    ]
    seen_events = EventFilter()

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return filtered(reconcile(view_of(key, reader, now, ctx), ctx, grouping=grouping), seen_events)

    return Controller(name="jobset", watches=tuple(watches), reconcile=reconcile_key, workers=10, counters=COUNTERS)


def _group_watches(ctx: CompileContext) -> Iterable[Watch]:
    version = ctx.release.api_version
    yield Watch(version, "Workload", _of_group, {"jobset": _owners})
    if ctx.release.has_pod_groups:
        yield Watch(version, "PodGroup", _of_group, {"jobset": _owners})
    if ctx.release.composite_api_version:
        version = ctx.release.composite_api_version
        yield Watch(version, "CompositePodGroup", _of_group, {"jobset": _owners}, optional=True)


def view_of(key: Key, reader: Reader, now: datetime, ctx: CompileContext) -> JobSetView:
    stored = reader.get(constants.KIND, key)
    if stored is None:
        return JobSetView(None, (), (), (), (), now)
    jobset = copied(stored)
    default(jobset, ctx)  # a server that has the definition only, and no webhook, has stored what was written
    uid = jobset["metadata"].get("uid")

    def own(kind: str) -> list[Object]:
        return [obj for obj in reader.indexed(kind, "jobset", key) if (controller_of(obj) or {}).get("uid") == uid]

    service = reader.get("Service", Key(key.namespace, subdomain_of(jobset)))
    claims = [reader.get("PersistentVolumeClaim", Key(key.namespace, name)) for name in claim_names(jobset)]
    return JobSetView(
        jobset,
        own("Job"),
        [service] if service else [],
        [one for one in claims if one],
        [group for kind in _GROUPS for group in own(kind)],
        now,
        find=lambda kind, name: reader.get(kind, Key(key.namespace, name)),
        pods=lambda: reader.indexed("Pod", "pods", key),
        priority_class=lambda name: reader.get("PriorityClass", Key("", name)),
    )


def _of_owned(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    for obj in (old, new):
        if obj is not None:
            yield from (Enqueue(key) for key in _keys(obj))


def _of_job(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """Counts of pods come one Job after the other: they are gathered. How a Job ends is looked at now."""
    if old is None or new is None or _decisive(old) != _decisive(new):
        yield from _of_owned(old, new)
    else:
        yield from (Enqueue(key, _BATCH) for key in _keys(new))


def _decisive(job: Object) -> Any:
    meta, status = meta_of(job), job.get("status") or {}
    owners = [one.get("uid") for one in meta.get("ownerReferences") or ()]
    return meta.get("generation"), meta.get("deletionTimestamp"), status.get("conditions"), owners


def _of_group(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """When a stranger's group goes, a JobSet may have waited for its name (spec jobset 3.4 has no two alike)."""
    yield from _of_owned(old, new)
    if new is None and old is not None and not any(True for _ in _keys(old)):
        meta = old["metadata"]
        _, dash, rest = str(meta["name"]).partition("-")
        if dash:
            yield Enqueue(Key(str(meta.get("namespace") or ""), rest.partition(".")[0]))


def _of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """Restarts in place are read from pods; and a new pod of a gang may find too few others."""
    pod = new or old
    if pod is None:
        return
    keys = list(_jobsets_of_pod(pod))
    if not keys:
        return
    if old is None or new is None:
        grouped = any((pod.get("spec") or {}).get(member) for member in ("schedulingGroup", "workloadRef"))
        yield from (Enqueue(key, _SETTLE) for key in keys if grouped and new is not None)
    if _in_place(old) != _in_place(new):
        yield from map(Enqueue, keys)


def _in_place(pod: Object | None) -> tuple[str | None, list[int]]:
    if pod is None:
        return None, []
    note = (meta_of(pod).get("annotations") or {}).get(inplace.ATTEMPT)
    return note, [count for count in inplace.restarts(pod) if count]


def _jobsets_of_pod(pod: Object) -> list[Key]:
    meta = meta_of(pod)
    name = (meta.get("labels") or {}).get(constants.JOBSET_NAME)
    return [Key(str(meta.get("namespace") or ""), str(name))] if name else []


def _keys(obj: Object) -> Iterable[Key]:
    owner = controller_of(obj)
    if owner is not None and owner.get("kind") == constants.KIND:
        yield Key(str(obj["metadata"].get("namespace") or ""), str(owner.get("name")))


def _owners(obj: Object) -> Iterable[Hashable]:
    return _keys(obj)
