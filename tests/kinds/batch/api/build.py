"""Jobs and CronJobs for the tests of their rules."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kohort.api import admit
from kohort.api.kind import Context
from kohort.api.result import WriteResult

Object = dict[str, Any]
POD: Object = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "lab.example/img:1"}]}


def job(name: str = "a", *, pod: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {**spec, "template": {"spec": {**deepcopy(POD), **(pod or {})}}},
    }


def indexed(count: int = 2, **spec: Any) -> Object:
    return job(**{"parallelism": count, "completions": count, "completionMode": "Indexed", **spec})


def cronjob(name: str = "t", schedule: str = "*/10 * * * *", *, of: Object | None = None, **spec: Any) -> Object:
    template = {"spec": (of or job(parallelism=3))["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def gang(least: int | None = None, **more: Any) -> Object:
    return {"schedulingPolicy": {"gang": {} if least is None else {"minCount": least}}, **more}


BASIC: Object = {"schedulingPolicy": {"basic": {}}}


def created(obj: Object, minor: str = "1.37", ctx: Context | None = None) -> WriteResult:
    return admit.create(obj, ctx or Context.of(minor))


def updated(
    new: Object, old: Object, minor: str = "1.37", ctx: Context | None = None, subresource: str = ""
) -> WriteResult:
    context = ctx or Context.of(minor)
    stored = admit.create(old, Context.of(minor))
    assert stored.object is not None, stored.message
    if subresource or "status" in old:
        stored.object["status"] = deepcopy(old.get("status") or {})
    return admit.update(new, stored.object, context, subresource=subresource)


def fields(answer: WriteResult) -> list[str]:
    """Where it hurts; empty if accepted."""
    assert answer.code in {200, 201, 422}, answer.message
    return sorted(cause.field for cause in answer.causes)
