"""Builders that let the scenarios of the TrainJob page read as they stand there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.plancheck import check_plan

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.api.releases import default_gates, release
from kohort.gang import render
from kohort.gang.compile import Compilation, CompileContext, Lookup
from kohort.gang.settings import SettingsByKind
from kohort.gang.tree import Plan
from kohort.kinds.trainer.api import COMPOSITE_GATE
from kohort.kinds.trainer.api.constants import API_VERSION, STEP_LABEL
from kohort.kinds.trainer.compile.trainjob import compile_object
from kohort.kinds.trainer.settings import TrainJobSettings

UID = "11111111-2222-3333-4444-555555555555"
COMPOSITE = DEFAULT_OPTIONS | {COMPOSITE_GATE}


def rjob(
    name: str = "node",
    *,
    role: str | None = None,
    container: str = "node",
    parallelism: int | None = None,
    replicas: int | None = None,
    after: Iterable[tuple[str, str]] = (),
    **pod: Any,
) -> dict[str, Any]:
    """One ReplicatedJob of a runtime; further arguments go into the Pod spec."""
    spec: dict[str, Any] = {"template": {"spec": {"containers": [{"name": container, "image": "acme/fit:1"}], **pod}}}
    if parallelism is not None:
        spec["parallelism"] = parallelism
    made: dict[str, Any] = {"name": name, "template": {"spec": spec}}
    if role:
        made["template"]["metadata"] = {"labels": {STEP_LABEL: role}}
    if replicas is not None:
        made["replicas"] = replicas
    if after:
        made["dependsOn"] = [{"name": other, "status": status} for other, status in after]
    return made


def trainer(name: str = "node", **more: Any) -> dict[str, Any]:
    return rjob(name, role="trainer", **more)


def initializer(role: str, **more: Any) -> dict[str, Any]:
    return rjob(role, role=role, container=role, **more)


def runtime(
    *jobs: dict[str, Any],
    ml: Mapping[str, Any] | None = None,
    workload: Mapping[str, Any] | None = None,
    groups: bool = True,
    kind: str = "ClusterTrainingRuntime",
    labels: Mapping[str, str] | None = None,
    template: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """`workload` is podGroupPolicy.workload; `groups` False: none at all. `template` goes into the JobSet spec."""
    meta: dict[str, Any] = {"name": "rt", "labels": dict(labels)} if labels else {"name": "rt"}
    if kind == "TrainingRuntime":
        meta["namespace"] = "ml"
    body: dict[str, Any] = {
        "mlPolicy": {"torch": {}} if ml is None else dict(ml),
        "template": {"spec": {"replicatedJobs": list(jobs) or [trainer()], **(template or {})}},
        **spec,
    }
    if groups and "podGroupPolicy" not in spec and "scheduling" not in spec:
        body["podGroupPolicy"] = {"workload": dict(workload or {})}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": body}


def trainjob(nodes: int | None = None, *, name: str = "job", uid: str = UID, **spec: Any) -> Object:
    body: dict[str, Any] = {"runtimeRef": {"name": "rt"}, **spec}
    if nodes is not None:
        body["trainer"] = {**body.get("trainer", {}), "numNodes": nodes}
    meta = {"name": name, "namespace": "ml", "uid": uid}
    return {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": meta, "spec": body}


def context(
    *objects: Object,
    to: str = "1.37",
    options: Iterable[str] = DEFAULT_OPTIONS,
    without: Iterable[str] = (),
    **settings: Any,
) -> CompileContext:
    gates = frozenset(gate for gate in default_gates(to) if gate not in set(without))
    return CompileContext(
        release(to), gates, frozenset(options), Lookup(objects), SettingsByKind(TrainJobSettings(**settings))
    )


def compiled(job: Object, *objects: Object, **how: Any) -> Compilation:
    """The job is taken through admission first, as a server would."""
    ctx = context(*objects, **how)
    kept = {**job, "metadata": {name: value for name, value in job["metadata"].items() if name != "uid"}}
    answer = admit.create(kept, ctx)
    assert answer.object is not None, answer.message
    answer.object["metadata"]["uid"] = job["metadata"].get("uid")
    return compile_object(answer.object, ctx)


def plan(job: Object, *objects: Object, **how: Any) -> Plan:
    """The one plan of a job that must compile."""
    result = compiled(job, *objects, **how)
    assert result.errors == ()
    (found,) = result.plans
    assert check_plan(found) == []
    return found


def sizes(found: Plan) -> dict[str, int | None]:
    """Template -> minimum (None: basic), in order."""
    return {template.name: template.minimum for template in found.walk()}


def jobset(result: Compilation) -> Object:
    (found,) = [obj for obj in result.objects if obj["kind"] == "JobSet"]
    return found


def links(result: Compilation) -> dict[str, Any]:
    """ReplicatedJob -> the group its pods name."""
    found = jobset(result)["spec"]["replicatedJobs"]
    specs = {job["name"]: job["template"]["spec"]["template"]["spec"] for job in found}
    return {name: (spec.get("schedulingGroup") or {}).get("podGroupName") for name, spec in specs.items()}


def rendered(found: Plan, to: str = "1.37") -> list[Object]:
    result = render.render(found, to)
    assert result.errors == ()
    return list(result.objects)


def refused(kind: Object, ctx: Context | None = None, **how: Any) -> list[str]:
    """The fields for which admission refuses an object; empty: accepted."""
    answer = admit.create(kind, ctx or context(**how))
    return [cause.field for cause in answer.causes]
