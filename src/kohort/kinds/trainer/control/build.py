"""What a TrainJob needs, made in the order of spec trainjob 3.5: snapshot, groups, what is mounted, the JobSet."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import yaml

from kohort.api.bundle import Listener
from kohort.api.kind import Object
from kohort.api.objects import is_controlled_by, is_deleting, namespace_of, uid_of
from kohort.controllers.reconcile import Event, Part, Write, emit, one
from kohort.controllers.writes import apply, create
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.kinds.trainer.api import builtin_runtime
from kohort.kinds.trainer.api.constants import CLUSTER_RUNTIME
from kohort.kinds.trainer.api.fitting import missing_runtime, ml_policy
from kohort.kinds.trainer.compile.lookup import runtime_in, snapshot_name
from kohort.kinds.trainer.compile.trainjob import compile_object
from kohort.kinds.trainer.control import groups
from kohort.kinds.trainer.control.keys import Keys, names, secret
from kohort.kinds.trainer.control.status import is_idle
from kohort.kinds.trainer.control.view import BuildError, TrainJobView, WaitError, is_suspended, owned_by

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def build(view: TrainJobView, job: Object, ctx: CompileContext, keys: Keys, listener: Listener | None = None) -> Part:
    """-> the JobSet, or None while it is on its way out. What stands in the way is raised."""
    snapshot = yield from _snapshot(view, job)
    if view.jobset is not None and not is_controlled_by(view.jobset, job):
        raise BuildError(_taken(view.jobset))
    lookup = Lookup([snapshot, *view.groups])
    done = compile_object(job, replace(ctx, lookup=lookup), listener)
    if done.errors:
        raise BuildError("; ".join(map(str, done.errors)))
    running = view.jobset is not None and not is_suspended(job) and not is_suspended(view.jobset)
    *companions, wanted = done.objects
    yield from _groups(view, job, done, ctx, running=running)
    for obj in companions:
        yield from _companion(view, job, obj, running=running)
    for name in names(ml_policy(runtime_in(snapshot)), job["metadata"]["name"]):
        yield from _secret(view, job, name, keys)
    jobset = view.jobset if running else (yield from _jobset(view, job, wanted, done))
    if is_suspended(job) and not done.plans and jobset is not None and is_idle(jobset):
        yield from groups.remove(job, view.groups)
    return jobset


def metadata(job: Object, name: str) -> Object:
    owner = {"apiVersion": job["apiVersion"], "kind": "TrainJob", "name": job["metadata"]["name"], "uid": uid_of(job)}
    references = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    return {"name": name, "namespace": namespace_of(job), "ownerReferences": references}


def _taken(obj: Object) -> str:
    name = f"{obj['kind']} {obj['metadata']['name']}"
    return f"{name} exists and is not of this TrainJob: it belongs to {owned_by(obj)}"


def _must(write: Write) -> Part:
    answer = yield from one(write)
    if answer.refusal is not None:
        raise BuildError(f"{write.kind} {write.name}: {answer.refusal.message}")
    return answer.object or write.body


# ---- the runtime, as it was when the job began


def _snapshot(view: TrainJobView, job: Object) -> Part:
    """-> the ConfigMap. Whose it is, and whether it holds the right runtime, is asked when it is read."""
    meta = metadata(job, snapshot_name(job))
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    found = view.found(made)
    if found is not None:
        return found
    ref = job["spec"]["runtimeRef"]
    runtime = view.runtime
    if runtime is None and ref.get("kind", CLUSTER_RUNTIME) == CLUSTER_RUNTIME:
        runtime = builtin_runtime(ref["name"])
    if runtime is None:
        raise BuildError(str(missing_runtime(job)))
    data = {"runtime": yaml.dump(runtime, Dumper=_DUMPER)}
    return (yield from _must(create({**made, "data": data})))


# ---- groups


def _groups(view: TrainJobView, job: Object, done: Compilation, ctx: CompileContext, *, running: bool) -> Part:
    if not done.plans:
        return
    if not running:
        yield from groups.ensure(job, done.plans[0], view.groups, ctx)
    elif _is_linked(view.jobset, ctx):
        yield from emit(*groups.missing(job, done.plans[0], view.groups, ctx))


def _is_linked(jobset: Object | None, ctx: CompileContext) -> bool:
    """Whether its pods name groups: one that was made without them runs on without."""
    jobs = ((jobset or {}).get("spec") or {}).get("replicatedJobs") or ()
    return any(ctx.release.pod_field in found["template"]["spec"]["template"].get("spec", {}) for found in jobs)


# ---- what stands beside the JobSet


def _companion(view: TrainJobView, job: Object, wanted: Object, *, running: bool) -> Part:
    """ConfigMaps are put right whenever they are not; PodGroups of other schedulers only before pods exist."""
    found = view.found(wanted)
    if found is not None:
        if not is_controlled_by(found, job):
            raise BuildError(_taken(found))
        if is_deleting(found):
            raise WaitError(f"{found['kind']} {found['metadata']['name']} is being deleted")
        if "data" in wanted:
            if all((found.get("data") or {}).get(key) == value for key, value in wanted["data"].items()):
                return
        elif running:
            return
    yield from _must(apply(wanted))


def _secret(view: TrainJobView, job: Object, name: str, keys: Keys) -> Part:
    """One that nobody controls was brought by a user, and is used as it is."""
    meta = metadata(job, name)
    found = view.found({"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    if found is None:
        yield from _must(create(secret(name, job, meta, keys)))
    elif owned_by(found) != "nobody" and not is_controlled_by(found, job):
        raise BuildError(_taken(found))


# ---- the JobSet


def _jobset(view: TrainJobView, job: Object, wanted: Object, done: Compilation) -> Part:
    """Applied, so that a patch that is taken back is gone, and what others wrote stays."""
    if view.jobset is not None and is_deleting(view.jobset):
        return None
    if view.jobset is None:
        yield from emit(*(Event(job, "Warning", "RuntimeWarning", str(warning)) for warning in done.warnings))
    return (yield from _must(apply(wanted)))
