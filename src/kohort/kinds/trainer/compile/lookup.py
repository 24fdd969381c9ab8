"""The runtime of a TrainJob: its snapshot, the live object, or one that comes with Kohort (spec trainjob 1.7, D19)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import yaml

from kohort.api import defaults
from kohort.api.errors import FieldError, invalid
from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.api.rules import Operation, check_schema
from kohort.gang.compile import CompileContext
from kohort.gang.stand_in import has_uid, uid_of
from kohort.kinds.trainer.api import builtin_runtime, runtime_validation
from kohort.kinds.trainer.api.constants import API_VERSION, CLUSTER_RUNTIME, GROUP, RUNTIME_KINDS, tidy
from kohort.kinds.trainer.api.fitting import missing_runtime
from kohort.kinds.trainer.api.runtime_schema import SCHEMA

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Found:
    """A runtime that can be used, or what is in the way."""

    runtime: Object | None = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def snapshot_name(job: Object) -> str:
    return f"{job['metadata']['name']}-runtime-snapshot"


def find_runtime(job: Object, ctx: CompileContext) -> Found:
    """The runtime with its defaults; what is wrong with it is told as errors of the TrainJob's reference."""
    ref = job["spec"]["runtimeRef"]
    kind = ref.get("kind", CLUSTER_RUNTIME)
    if ref.get("apiGroup", GROUP) != GROUP or kind not in RUNTIME_KINDS:
        accepted = ", ".join(RUNTIME_KINDS)
        return Found(errors=(invalid("spec.runtimeRef.kind", kind, f"not a runtime; accepted are {accepted}"),))
    snapshot = ctx.lookup.find("ConfigMap", snapshot_name(job), namespace_or_default(job))
    if snapshot is not None:
        return _from_snapshot(job, snapshot, ctx)
    return live_runtime(job, ctx)


def live_runtime(job: Object, ctx: CompileContext) -> Found:
    """The runtime that a reference of a known kind means now, whatever the job was made with."""
    ref = job["spec"]["runtimeRef"]
    kind, name = ref.get("kind", CLUSTER_RUNTIME), ref["name"]
    namespace = None if kind == CLUSTER_RUNTIME else namespace_or_default(job)
    runtime = ctx.lookup.find(kind, name, namespace)
    if runtime is not None:
        return _usable(job, runtime, ctx)
    runtime = builtin_runtime(name) if kind == CLUSTER_RUNTIME else None
    if runtime is None:
        return Found(errors=(missing_runtime(job),))
    text = f'spec.runtimeRef.name: {CLUSTER_RUNTIME} "{name}" was not given; the built-in one of that name is used'
    return _usable(job, runtime, ctx, (text,))


def _usable(job: Object, runtime: Object, ctx: CompileContext, warnings: tuple[str, ...] = ()) -> Found:
    """Admission may have been switched off for the runtime, so it is validated again."""
    ready = tidy(runtime)
    defaults.apply(SCHEMA, ready, ctx)
    wrong = [*check_schema(SCHEMA, ready, None, Operation(ctx, native=False)), *runtime_validation.recheck(ready, ctx)]
    return Found(ready, tuple(of_runtime(job, error) for error in wrong), warnings)


def of_runtime(job: Object, error: FieldError) -> FieldError:
    """What is wrong with the runtime, told to the writer of the TrainJob."""
    ref = job["spec"]["runtimeRef"]
    return invalid("spec.runtimeRef", ref["name"], f"{ref.get('kind', CLUSTER_RUNTIME)}: {error}")


# ---- the snapshot


def _from_snapshot(job: Object, snapshot: Object, ctx: CompileContext) -> Found:
    where, name = "spec.runtimeRef", snapshot["metadata"]["name"]
    if not _is_of(job, snapshot):
        return Found(errors=(invalid(where, name, "the ConfigMap of that name is not this TrainJob's snapshot"),))
    runtime = runtime_in(snapshot)
    ref = job["spec"]["runtimeRef"]
    wanted = (API_VERSION, ref.get("kind", CLUSTER_RUNTIME), ref["name"])
    found = (runtime.get("apiVersion"), runtime.get("kind"), (runtime.get("metadata") or {}).get("name"))
    if found != wanted:
        shown, expected = " ".join(map(str, found)), " ".join(wanted)
        return Found(errors=(invalid(where, name, f"the snapshot holds {shown}; expected is {expected}"),))
    return _usable(job, runtime, ctx)


def _is_of(job: Object, snapshot: Object) -> bool:
    owners = snapshot["metadata"].get("ownerReferences") or []
    owner: Object = next((one for one in owners if one.get("controller")), {})
    same_name = (owner.get("kind"), owner.get("name")) == ("TrainJob", job["metadata"]["name"])
    return same_name and (not has_uid(job) or owner.get("uid") == uid_of(job))


def runtime_in(snapshot: Object) -> Object:
    """The runtime that a snapshot holds, as it was stored; nothing if it holds none. It is not to be changed."""
    return _read(str((snapshot.get("data") or {}).get("runtime") or ""))


@lru_cache(maxsize=256)
def _read(text: str) -> dict[str, Any]:
    """Jobs of one runtime mostly share one text, and each is looked at many times."""
    try:
        read = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError:
        return {}
    return read if isinstance(read, dict) else {}
