"""What a cluster ran: for each gang, and each pod of none, when it was made, started and ended, and what it asked for.

It is read from the objects that are still there, ended pods among them, and goes into a snapshot for `kohort simulate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kohort.api.kind import Object
from kohort.place.requests import PODS, pod_requests

Json = dict[str, Any]
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def history(pods: Iterable[Object], groups: Iterable[Object]) -> list[Json]:
    """In order of their creation. Pods of daemons are no jobs: they belong to their nodes."""
    of = {_key(one): one for one in groups}
    together: dict[str, list[Object]] = {}
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        if any(one.get("kind") in {"DaemonSet", "Node"} for one in owners):
            continue
        name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or ""
        key = f"{pod['metadata'].get('namespace', '')}/{name}" if name else f"pod {_key(pod)}"
        together.setdefault(key, []).append(pod)
    found = [_record(_last(members), of.get(key)) for key, members in together.items()]
    return sorted(found, key=lambda one: (one["created"], one["namespace"], one["name"]))


def _key(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _record(pods: list[Object], group: Object | None) -> Json:
    meta = (group or pods[0])["metadata"]
    made: Json = {
        "name": meta["name"],
        "namespace": meta.get("namespace", ""),
        "created": min(str(one["metadata"].get("creationTimestamp") or "") for one in pods),
        "pods": len(pods),
        "requests": _most(pods),
        "priority": max(int(one["spec"].get("priority") or 0) for one in pods),
    }
    starts = [moment for one in pods if (moment := (one.get("status") or {}).get("startTime"))]
    if len(starts) == len(pods):
        made["started"] = max(starts)
    ends = [_end(one) for one in pods]
    if all(ends):
        made["ended"] = max(ends)
    spec = (group or {}).get("spec") or {}
    if gang := (spec.get("schedulingPolicy") or {}).get("gang"):
        made["minimum"] = min(int(gang.get("minCount") or len(pods)), len(pods))
    for one in (spec.get("schedulingConstraints") or {}).get("topology") or ():
        made["topology"] = one.get("key", "")
    return made


def _last(pods: list[Object]) -> list[Object]:
    """Without those that failed and were made anew: of one index the last."""
    found: dict[tuple[str, str], Object] = {}
    for pod in sorted(pods, key=lambda one: str(one["metadata"].get("creationTimestamp") or "")):
        meta = pod["metadata"]
        index = (meta.get("labels") or {}).get(_INDEX)
        owner = next((str(one.get("uid")) for one in meta.get("ownerReferences") or ()), "")
        found[(owner, index) if index is not None else ("", str(meta.get("uid") or meta["name"]))] = pod
    return list(found.values())


def _most(pods: list[Object]) -> dict[str, str]:
    """Of each resource what the pod asks for that asks for most of it."""
    found: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod_requests(pod["spec"]).items():
            found[name] = max(found.get(name, 0), amount)
    found.pop(PODS, None)
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in sorted(found.items())}


def _end(pod: Object) -> str:
    """When its last container ended; "" while it has not."""
    status = pod.get("status") or {}
    if status.get("phase") not in _ENDED:
        return ""
    moments = [*_finished(status), *_changes(status)]
    return max(moments, default=str(status.get("startTime") or ""))


def _finished(status: Json) -> Iterator[str]:
    for one in status.get("containerStatuses") or ():
        moment = ((one.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if moment:
            yield str(moment)


def _changes(status: Json) -> Iterator[str]:
    """Of a pod that was evicted or lost its node, nobody has told what became of its containers."""
    if any(_finished(status)):
        return
    for one in status.get("conditions") or ():
        if one.get("type") in {"Ready", "DisruptionTarget"} and one.get("lastTransitionTime"):
            yield str(one["lastTransitionTime"])
