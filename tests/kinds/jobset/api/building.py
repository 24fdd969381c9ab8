"""JobSets for tests, in the notation of the scenarios: rj("p", 2, 4) is p(2×4), rj("m", 3, 8, 5) is m(3×8/5)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kohort.api import admit
from kohort.api.errors import FieldError
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.kinds.jobset.api import JOBSET

CTX = Context.of("1.37", options=DEFAULT_OPTIONS)
UNSET: Any = object()


def context(minor: str = "1.37", *options: str, without: tuple[str, ...] = ()) -> Context:
    return Context.of(minor, options=(DEFAULT_OPTIONS | set(options)) - set(without))


def rj(name: str, replicas: int, parallelism: int | None, completions: int | None = UNSET, **more: Any) -> Object:
    """`gang`, `pod` (members of the pod's spec), `job` (of the Job's), `note` (annotations of the Job template)."""
    gang, pod, job, note = more.pop("gang", None), more.pop("pod", {}), more.pop("job", {}), more.pop("note", None)
    if completions is UNSET:
        completions = parallelism
    sizes = {"parallelism": parallelism, "completions": completions}
    spec = {
        **{member: size for member, size in sizes.items() if size is not None},
        "template": {"spec": {"containers": [{"name": "main", "image": "tool:1"}], **pod}},
        **job,
    }
    template: Object = {"spec": spec}
    if note:
        template["metadata"] = {"annotations": note}
    made = {"name": name, "replicas": replicas, "template": template, **more}
    return {**made, "gangConfig": {"gangMode": gang}} if gang else made


def jobset(*jobs: Object, name: str = "js", gang: str | None = None, meta: Object | None = None, **spec: Any) -> Object:
    made: Object = {"replicatedJobs": list(deepcopy(jobs)), **spec}
    if gang:
        made["gangConfig"] = {"gangMode": gang}
    metadata = {"name": name, "namespace": "ns", **(meta or {})}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": made}


def depends(*names: str, status: str = "Ready") -> list[Object]:
    return [{"name": name, "status": status} for name in names]


def errors(obj: Object, ctx: Context = CTX) -> list[FieldError]:
    return admit.check(obj, ctx)


def fields(obj: Object, ctx: Context = CTX) -> list[str]:
    return [error.field for error in errors(obj, ctx)]


def completed(obj: Object, ctx: Context = CTX) -> Object:
    return admit.defaulted(obj, JOBSET, ctx)


def warnings(obj: Object, ctx: Context = CTX) -> list[str]:
    assert errors(obj, ctx) == []
    return JOBSET.warn(completed(obj, ctx), ctx)


def changes(new: Object, old: Object, ctx: Context = CTX) -> list[FieldError]:
    """What an update is refused for."""
    before, after = deepcopy(old), deepcopy(new)
    for obj in (before, after):
        obj["metadata"]["resourceVersion"] = "1"
    return list(admit.update(after, before, ctx).causes)
