"""Jobs and what surrounds them, in few words."""

from __future__ import annotations

from typing import Any

from kohort.api import admit
from kohort.api.kind import Context
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.render import render
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.api.job import JOB
from kohort.kinds.batch.compile.job import compile_object
from kohort.kinds.batch.settings import JobSettings

Object = dict[str, Any]
UID = "3f1c9a52-7d0e-4b61-8a43-0c5e2f9d1b77"
DELEGATED = "scheduling.k8s.io/group-template-name"


def job(
    name: str = "trainer",
    p: int | None = None,
    c: int | None = None,
    mode: str | None = None,
    *,
    scheduling: Object | None = None,
    group: str | None = None,
    owners: tuple[Object, ...] = (),
    annotations: Object | None = None,
    uid: str = UID,
    status: Object | None = None,
    pod: Object | None = None,
    **spec: Any,
) -> Object:
    template: Object = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "lab.example/img:1"}]}
    template |= pod or {}
    if group:
        template["schedulingGroup"] = {"podGroupName": group}
    named = {"parallelism": p, "completions": c, "completionMode": mode, "scheduling": scheduling}
    meta: Object = {"name": name, "namespace": "lab", "uid": uid}
    if owners:
        meta["ownerReferences"] = list(owners)
    if annotations is not None:
        meta["annotations"] = annotations
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {
            **{key: value for key, value in named.items() if value is not None},
            **spec,
            "template": {"spec": template},
        },
        "status": status or {},
    }


def gang(least: int | None = None, **more: Any) -> Object:
    return {"schedulingPolicy": {"gang": {} if least is None else {"minCount": least}}, **more}


def owner(
    kind: str, name: str, version: str = "lab.example/v1", *, controller: bool = True, uid: str = "u-1"
) -> Object:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": controller}


def workload(
    name: str, kind: str, ref: str, *templates: Object, group: str = "lab.example", owners: tuple[Object, ...] = ()
) -> Object:
    meta: Object = {"name": name, "namespace": "lab", "uid": f"uid-of-{name}"}
    if owners:
        meta["ownerReferences"] = list(owners)
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": meta,
        "spec": {
            "controllerRef": {"apiGroup": group, "kind": kind, "name": ref},
            "podGroupTemplates": list(templates),
        },
    }


def template(name: str, least: int | None = None) -> Object:
    policy: Object = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    return {"name": name, "schedulingPolicy": policy}


def pod_group(name: str, wl: str, tpl: str, *owners: Object, least: int | None = None) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "lab", "ownerReferences": list(owners)},
        "spec": {**template(tpl, least), "workloadRef": {"workloadName": wl, "templateName": tpl}},
    }


def job_reference(name: str = "trainer", uid: str = UID) -> Object:
    return owner("Job", name, "batch/v1", uid=uid)


def compiled(
    obj: Object,
    minor: str = "1.37",
    *others: Object,
    gates: frozenset[Any] | None = None,
    **settings: Any,
) -> Compilation:
    ctx = Context.of(minor, gates)
    context = CompileContext(
        ctx.release, ctx.gates, ctx.options, Lookup(others), SettingsByKind(JobSettings(**settings))
    )
    return compile_object(admit.defaulted(obj, JOB, ctx), context)


def objects(obj: Object, minor: str = "1.37", *others: Object, **settings: Any) -> list[Object]:
    """What is created for a Job, rendered."""
    done = compiled(obj, minor, *others, **settings)
    assert not done.errors, done.errors
    return [made for plan in done.plans for made in render(plan, minor).objects]


def minimums(made: list[Object]) -> list[int | None]:
    """Of the Workload's template, then of the PodGroup; None is basic."""
    found = []
    for obj in made:
        block = obj["spec"]["podGroupTemplates"][0] if obj["kind"] == "Workload" else obj["spec"]
        found.append((block["schedulingPolicy"].get("gang") or {}).get("minCount"))
    return found
