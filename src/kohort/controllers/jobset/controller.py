"""The JobSet controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import Final

from kohort.api.jobset import names
from kohort.api.jobset.reading import subdomain_of
from kohort.api.jobset.volumes import claim_name
from kohort.api.kind import Object
from kohort.controllers.controller import Controller, Due, Key, Reader, Watch, key_of
from kohort.controllers.jobset import children
from kohort.controllers.jobset.sync import View, sync
from kohort.controllers.script import Script
from kohort.gang.compile import CompileContext
from kohort.gang.compile.job_find import controller_of

_GROUPS: Final = ("Workload", "PodGroup", "CompositePodGroup")


def jobset_controller(ctx: CompileContext, *, grouping: bool = True) -> Controller:
    """`grouping`: whether the server has groups. Without, JobSets run, and nothing starts together."""
    watches = [
        Watch(names.API_VERSION, names.KIND, _of_jobset),
        Watch("batch/v1", "Job", _of_owned, {"jobset": _owners}),
        Watch("v1", "Service", _of_owned),
        Watch("v1", "PersistentVolumeClaim", _nothing),
    ]
    if grouping and ctx.generation.has_pod_groups:
        version = ctx.generation.api_version
        watches += [Watch(version, kind, _of_owned, {"jobset": _owners}) for kind in ("Workload", "PodGroup")]
        if ctx.generation.composite_api_version:
            composite = Watch(
                ctx.generation.composite_api_version, "CompositePodGroup", _of_owned, {"jobset": _owners}, optional=True
            )
            watches.append(composite)

    def script(key: Key, reader: Reader, now: datetime) -> Script:
        return sync(view_of(key, reader, now), ctx)

    return Controller(name="jobset", watches=tuple(watches), script=script, workers=10)


def view_of(key: Key, reader: Reader, now: datetime) -> View:
    jobset = reader.get(names.KIND, key)
    if jobset is None:
        return View(None, (), (), (), (), now)
    uid = jobset["metadata"].get("uid")
    jobs = [job for job in reader.indexed("Job", "jobset", key) if (controller_of(job) or {}).get("uid") == uid]
    service = reader.get("Service", Key(key.namespace, subdomain_of(jobset)))
    wanted = [claim_name(jobset, str(one["metadata"].get("name"))) for _, one in children.claims(jobset)]
    claims = [reader.get("PersistentVolumeClaim", Key(key.namespace, name)) for name in wanted]
    groups = [group for kind in _GROUPS for group in reader.indexed(kind, "jobset", key)]
    return View(jobset, jobs, [service] if service else [], [one for one in claims if one], groups, now)


def _nothing(_: Object | None, __: Object | None) -> Iterable[Due]:
    return ()


def _of_jobset(old: Object | None, new: Object | None) -> Iterable[Due]:
    if new is not None:
        yield Due(key_of(new))


def _of_owned(old: Object | None, new: Object | None) -> Iterable[Due]:
    for obj in (old, new):
        if obj is not None:
            yield from (Due(key) for key in _keys(obj))


def _keys(obj: Object) -> Iterable[Key]:
    owner = controller_of(obj)
    if owner is not None and owner.get("kind") == names.KIND:
        yield Key(str(obj["metadata"].get("namespace") or ""), str(owner.get("name")))


def _owners(obj: Object) -> Iterable[Hashable]:
    return _keys(obj)
