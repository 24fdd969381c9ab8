"""What the real controllers had made for a Job at each recorded moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kinds.batch.api.replay import PRIORITY_CLASSES, Cluster, cases, every_case, full, gates, merged

from kohort.api import admit
from kohort.api.kind import Context
from kohort.kinds.batch.api.job import JOB

Object = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """One Job at one look: its state, what it controls, and what else is there."""

    minor: str
    case: str
    at: str
    job: Object
    workloads: tuple[Object, ...]
    groups: tuple[Object, ...]
    others: tuple[Object, ...]

    @property
    def ctx(self) -> Context:
        return gates(self.minor, self.case)

    def __str__(self) -> str:
        return f"{self.minor} {self.case} {self.job['metadata']['name'][:20]} ({self.at})"


def moments() -> Iterator[Moment]:
    for minor, name in every_case():
        case = cases(minor)[name]
        cluster = Cluster(gates(minor, name), case)
        before: dict[str, list[Object]] = {}
        for look in case.get("seen", []):
            if "workloads" not in look:  # only Jobs and pods were looked at
                continue
            # "as before" stands for an unchanged list
            for member in ("workloads", "podGroups"):
                if isinstance(look.get(member), list):
                    before[member] = [cluster.real(obj) for obj in full(look, member)]
            for job_name, state in (look.get("jobs") or {}).items():
                job = _job(cluster, job_name, state)
                if job is not None:
                    yield _moment(minor, name, str(look["at"]), job, before, case)


def _job(cluster: Cluster, name: str, state: Any) -> Object | None:
    """The Job as it was: its spec follows from the requests and its generation, where the look does not show it."""
    if not isinstance(state, dict):
        return None
    number, specs = _history(cluster.case, name)
    if not specs:  # not made by a request of this case
        if "spec" not in state:
            return None
        specs = [state]
    meta = state.get("metadata") or {}
    asked = specs[min(int(meta.get("generation") or 1), len(specs)) - 1]
    status = state.get("status", {}) if "metadata" in state else state
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": asked["metadata"] | meta, "spec": asked["spec"]}
    if "spec" in state:
        job["spec"] = state["spec"]
    job["metadata"] |= {"namespace": "lab", "uid": cluster.uid(number)}
    job["status"] = _readable(status)
    return cluster.real(job)


def asked(minor: str, name: str) -> Iterator[tuple[Object, list[Object]]]:
    """Every Job of a case as it was created, with the uid that it got, and what the controller then found."""
    case = cases(minor)[name]
    cluster = Cluster(gates(minor, name), case)
    # Where the controller was started later, it found all that came in between.
    late = any("the controller is not running" in str(request.get("note")) for request in case.get("requests", []))
    earlier: list[Object] = []
    made = 0
    for request in case.get("requests", []):
        if not str(request.get("do", "")).startswith("POST ") or request["code"] != 201:
            continue
        body = request["body"]
        if body["kind"] != "Job":
            earlier.append(body)
            continue
        made += 1
        meta = {"namespace": "lab", "uid": cluster.uid(made), **body["metadata"]}
        yield cluster.real({**body, "metadata": meta}), posted(minor, name) if late else _placed(cluster, earlier)


def posted(minor: str, name: str) -> list[Object]:
    """Objects of other kinds that requests of a case created."""
    case = cases(minor)[name]
    requests = [one for one in case.get("requests", []) if str(one.get("do", "")).startswith("POST ")]
    bodies = [one["body"] for one in requests if one["code"] == 201 and one["body"]["kind"] != "Job"]
    return _placed(Cluster(gates(minor, name), case), bodies)


def _placed(cluster: Cluster, bodies: list[Object]) -> list[Object]:
    return [cluster.real({**body, "metadata": {"namespace": "lab", **body["metadata"]}}) for body in bodies]


def _history(case: Object, name: str) -> tuple[int, list[Object]]:
    """The number of the Job in its case, and the Job as each generation asked for it."""
    specs: list[Object] = []
    number = made = 0
    # T-79 goes on with the Job of T-45, before the last look at it.
    later = cases("1.37")["T-79"] if case["id"] == "T-45" and name == "flicker" else {}
    for request in (*case.get("requests", []), *later.get("requests", [])):
        what, code = str(request.get("do", "")), request.get("code", 0)
        if what.startswith("POST jobs?") and code == 201:
            made += 1
            if request["body"]["metadata"]["name"] == name:
                number, specs = made, [request["body"]]
        elif what == f"PATCH jobs/{name}" and code == 200:
            specs.append(merged(specs[-1], request["body"]))
    return number or 1, specs


def _readable(status: Object) -> Object:
    """Conditions are recorded as tuples."""
    names = ("type", "status", "reason", "message")
    found = [dict(zip(names, one, strict=True)) for one in status.get("conditions") or []]
    return {**status, "conditions": found} if found else status


def _moment(minor: str, case: str, at: str, job: Object, seen: dict[str, list[Object]], whole: Object) -> Moment:
    version = "scheduling.k8s.io/" + ("v1alpha2" if minor == "1.36" else "v1beta1")
    uid = job["metadata"].get("uid")
    own: dict[str, tuple[Object, ...]] = {}
    others: list[Object] = [
        {**request["body"], "metadata": {"namespace": "lab", **request["body"]["metadata"]}}
        for request in whole.get("requests", [])
        if str(request.get("do", "")).startswith(("POST fleetjobs", "POST jobsets", "POST trainjobs"))
    ]
    for member, kind in (("workloads", "Workload"), ("podGroups", "PodGroup")):
        made = [_object(obj, version, kind) for obj in seen.get(member, [])]
        mine = [obj for obj in made if _controlled(obj, uid)]
        own[member] = tuple(mine)
        others += [obj for obj in made if obj not in mine]
    return Moment(minor, case, at, job, own["workloads"], own["podGroups"], tuple(others))


def _object(obj: Object, version: str, kind: str) -> Object:
    return {"apiVersion": version, "kind": kind, **obj, "metadata": {"namespace": "lab", **obj["metadata"]}}


def _controlled(obj: Object, uid: str | None) -> bool:
    owners = obj["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def defaulted(job: Object, ctx: Context) -> Object:
    return admit.defaulted(job, JOB, ctx)


def as_served(obj: Object, moment: Moment) -> Object:
    """A rendered object as the server of that moment would show it."""
    classes = [*PRIORITY_CLASSES, *_class_of(obj)]
    workloads = [one for one in (*moment.workloads, *moment.others) if one["kind"] == "Workload"]
    existing = workloads if obj["kind"] == "PodGroup" else []
    answer = admit.create(obj, moment.ctx, priority_classes=classes, existing=existing, namespace="lab")
    assert answer.object is not None, answer.message
    return answer.object


def _class_of(obj: Object) -> list[Object]:
    """The class that a group names: whether it exists is another matter (T-28)."""
    name = obj["spec"].get("priorityClassName")
    known = [one["metadata"]["name"] for one in PRIORITY_CLASSES]
    return [{**PRIORITY_CLASSES[0], "metadata": {"name": name}}] if name and name not in known else []
