"""The TrainJob controller as the runtime sees it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from kohort.api.bundle import Listener
from kohort.api.kind import Object
from kohort.api.objects import controller_of
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, key_of
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import ReverseIndex
from kohort.gang.compile import CompileContext
from kohort.kinds.jobset.api import constants as jobset_names
from kohort.kinds.trainer.api.constants import API_VERSION, CLUSTER_RUNTIME, GROUP, RUNTIME, RUNTIME_KINDS
from kohort.kinds.trainer.compile import flux, mpi, others, progress
from kohort.kinds.trainer.compile.lookup import snapshot_name
from kohort.kinds.trainer.control.keys import Keys
from kohort.kinds.trainer.control.reconcile import reconcile
from kohort.kinds.trainer.control.view import TrainJobView

KIND: Final = "TrainJob"
_OTHERS: Final = (others.COSCHEDULING_VERSION, others.VOLCANO_VERSION)
# How the names of ConfigMaps and Secrets end, after that of their job.
_ENDS: Final = (
    snapshot_name({"metadata": {"name": ""}}),
    *(named("") for named in (mpi.hostfile_name, mpi.secret_name, flux.scripts_name, flux.secret_name)),
    progress.config_name(""),
)
_BRANCHES_AND_LEAVES: Final = ("CompositePodGroup", "PodGroup")


def trainjob_controller(
    ctx: CompileContext, *, grouping: bool = True, keys: Keys | None = None, listener: Listener | None = None
) -> Controller:
    """`grouping`: whether the server has groups. Without, TrainJobs run, and nothing starts together.

    `listener`: who takes the trainings' reports of progress.
    """
    if not grouping:
        ctx = replace(ctx, gates=ctx.gates - {"GenericWorkload"})
    using = ReverseIndex(_runtime_of)

    def of_job(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        using.update(old, new)
        return _of_itself(old, new)

    def of_runtime(_: Object | None, new: Object | None) -> Iterable[Enqueue]:
        """Jobs that began have a copy; others may have waited for it, or for it to fit."""
        return () if new is None else using.enqueue((new["kind"], key_of(new)))

    watches = [
        Watch(API_VERSION, KIND, of_job),
        Watch(API_VERSION, RUNTIME, of_runtime),
        Watch(API_VERSION, CLUSTER_RUNTIME, of_runtime),
        Watch(jobset_names.API_VERSION, jobset_names.KIND, _of_itself),
        Watch("v1", "ConfigMap", _of_companion, contents_of=(KIND,)),
        Watch("v1", "Secret", _of_companion, contents_of=(KIND,)),
        *(Watch(version, others.KIND, _of_owned, optional=True, alias=_alias(version)) for version in _OTHERS),
    ]
    if grouping:
        watches += _group_watches(ctx)
    generated = keys or Keys()

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return reconcile(view_of(key, reader, now), ctx, generated, listener)

    return Controller(name="trainjob", watches=tuple(watches), reconcile=reconcile_key, workers=10)


def _group_watches(ctx: CompileContext) -> list[Watch]:
    version, composite = ctx.release.api_version, ctx.release.composite_api_version
    found = [Watch(version, "Workload", _of_workload, {"trainjob": _named_by_workload})]
    indexers = {"trainjob": _owners, "workload": _workloads}
    if ctx.release.has_pod_groups:
        found.append(Watch(version, "PodGroup", _of_owned, indexers))
    if composite:
        found.append(Watch(composite, "CompositePodGroup", _of_owned, indexers, optional=True))
    return found


def _alias(api_version: str) -> str:
    """What readers call the PodGroups of another project."""
    return f"{others.KIND}.{api_version.partition('/')[0]}"


# ---- what a reconcile sees


def view_of(key: Key, reader: Reader, now: datetime) -> TrainJobView:
    job = reader.get(KIND, key)
    if job is None:
        return TrainJobView(None, None, None, (), (), now)
    (named,) = _runtime_of(job)
    runtime = reader.get(*named) if named[0] in RUNTIME_KINDS else None
    jobset = reader.get(jobset_names.KIND, key)
    return TrainJobView(job, jobset, runtime, _companions(job, key, reader), _groups(key, reader), now)


def _companions(job: Object, key: Key, reader: Reader) -> list[Object]:
    wanted = [
        ("ConfigMap", snapshot_name(job)),
        ("ConfigMap", mpi.hostfile_name(key.name)),
        ("ConfigMap", flux.scripts_name(key.name)),
        ("ConfigMap", progress.config_name(key.name)),
        ("Secret", mpi.secret_name(key.name)),
        ("Secret", flux.secret_name(key.name)),
        *((_alias(version), key.name) for version in _OTHERS),
    ]
    found = [reader.get(kind, Key(key.namespace, name)) for kind, name in wanted]
    return [obj for obj in found if obj is not None]


def _groups(key: Key, reader: Reader) -> list[Object]:
    """Found by what they refer to: the Workload by its controllerRef or name, the rest by Workload or owner."""
    workloads = reader.indexed("Workload", "trainjob", key)
    named = {key.name, *(str(obj["metadata"]["name"]) for obj in workloads)}
    rest = [
        obj
        for kind in _BRANCHES_AND_LEAVES
        for obj in (
            *reader.indexed(kind, "trainjob", key),
            *(obj for name in sorted(named) for obj in reader.indexed(kind, "workload", (key.namespace, name))),
        )
    ]
    unique = {(obj["kind"], obj["metadata"]["name"]): obj for obj in (*workloads, *rest)}
    return list(unique.values())


# ---- event handlers: which keys a change enqueues


def _runtime_of(job: Object) -> tuple[tuple[str, Key]]:
    ref = job["spec"]["runtimeRef"]
    kind = str(ref.get("kind", CLUSTER_RUNTIME))
    space = "" if kind == CLUSTER_RUNTIME else str(job["metadata"].get("namespace") or "")
    return ((kind, Key(space, str(ref["name"]))),)


def _of_itself(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """A job, or its JobSet, which has the same name; also one that is gone."""
    obj = new or old
    if obj is not None:
        yield Enqueue(key_of(obj))


def _by(keys: Callable[[Object], Iterable[Hashable]]) -> Callable[[Object | None, Object | None], Iterable[Enqueue]]:
    def handler(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        for obj in (old, new):
            if obj is not None:
                yield from (Enqueue(key) for key in keys(obj) if isinstance(key, Key))

    return handler


def _owners(obj: Object) -> Iterable[Hashable]:
    owner = controller_of(obj)
    if owner is not None and owner.get("kind") == KIND:
        yield Key(str(obj["metadata"].get("namespace") or ""), str(owner.get("name")))


def _named_by_workload(obj: Object) -> Iterable[Hashable]:
    """The job that it is for, and the one whose name it takes."""
    space = str(obj["metadata"].get("namespace") or "")
    ref = (obj.get("spec") or {}).get("controllerRef") or {}
    found = {Key(space, str(obj["metadata"]["name"]))}
    if (ref.get("apiGroup"), ref.get("kind")) == (GROUP, KIND):
        found.add(Key(space, str(ref.get("name"))))
    return found


def _workloads(obj: Object) -> Iterable[Hashable]:
    spec = obj.get("spec") or {}
    ref = spec.get("workloadRef") or (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    if ref.get("workloadName"):
        yield (str(obj["metadata"].get("namespace") or ""), str(ref["workloadName"]))


def _of_companion(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """Also when a stranger's goes whose name a job needs."""
    yield from _of_owned(old, new)
    if new is None and old is not None:
        space, name = key_of(old)
        yield from (Enqueue(Key(space, name.removesuffix(end))) for end in _ENDS if name.endswith(end))


_of_owned = _by(_owners)
_of_workload = _by(_named_by_workload)
