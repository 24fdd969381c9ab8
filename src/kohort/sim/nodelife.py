"""The life of a virtual node. Pure: its annotation says whether it works, is being drained, or has failed.

    kubectl annotate node gpu-3 sim.kohort.dev/state=failed      # failed, notready, drained; none for a node that works

Where no controller manager looks after nodes (the embedded cluster), the simulator also does what that one would: mark
a lost node, keep new pods away, and let go of the pods that do not tolerate it, or whose node was deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.apimachinery.times import seconds
from kohort.sim.behaviour import FOR_EVER, PREFIX, SOON, Behaviour, read

STATE: Final = "sim.kohort.dev/state"
STATES: Final = ("", "failed", "notready", "drained")
_READY: Final = {"failed": "Unknown", "notready": "False"}  # state -> what the node says, or what is said of it
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_SAYS: Final = {
    "True": ("KubeletReady", "the virtual kubelet is ready"),
    "False": ("KubeletNotReady", "the virtual kubelet is not ready"),
    "Unknown": ("NodeStatusUnknown", "the virtual node has failed"),
}
QUARANTINE: Final = 40.0  # seconds for which a node has to be missing before its pods go, as upstream


def state_of(node: Object) -> str:
    found = str(((node.get("metadata") or {}).get("annotations") or {}).get(STATE) or "")
    return found if found in STATES else ""


def usual(node: Object, restart_policy: str, otherwise: Behaviour | None = None) -> Behaviour | None:
    """How pods behave on a node unless they say otherwise themselves: its annotations are theirs. None: as anywhere.

    Pods that are to run for ever (restartPolicy Always) do not end because others on their node do.
    """
    annotations = ((node.get("metadata") or {}).get("annotations")) or {}
    given = {name: value for name, value in annotations.items() if name.startswith(PREFIX) and name != STATE}
    if restart_policy == "Always":
        given.pop(f"{PREFIX}run-seconds", None)
    if not given:
        return otherwise
    found, _ = read(given, otherwise or (FOR_EVER if restart_policy == "Always" else SOON))
    return found


@dataclass(frozen=True, slots=True)
class Change:
    """`spec` and `status`: merge patches of the node, empty if all is well."""

    spec: dict[str, Any]
    status: dict[str, Any]


def step(node: Object, now: datetime, *, lifecycle: bool) -> Change:
    """How the node should look. `lifecycle`: nobody else marks lost nodes; a kubelet that has failed says nothing."""
    state = state_of(node)
    ready = _READY.get(state, "True")
    silent = ready == "Unknown" and not lifecycle
    status = {} if silent or _ready(node) == ready else _conditions(ready, now)
    return Change(_spec(node, state, now, lifecycle), status)


def _ready(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((str(one.get("status")) for one in conditions if one.get("type") == "Ready"), "")


def _conditions(ready: str, now: datetime) -> dict[str, Any]:
    moment = _text(now)
    reason, words = _SAYS[ready]
    heart = {"lastHeartbeatTime": moment, "lastTransitionTime": moment}
    fine = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    kinds = [
        {
            "type": kind,
            "status": "Unknown" if ready == "Unknown" else status,
            "reason": reason if ready == "Unknown" else "KubeletHasNoPressure",
            "message": words if ready == "Unknown" else "the virtual node is short of nothing",
            **heart,
        }
        for kind, status in fine.items()
    ]
    return {"conditions": [*kinds, {"type": "Ready", "status": ready, "reason": reason, "message": words, **heart}]}


def _spec(node: Object, state: str, now: datetime, lifecycle: bool) -> dict[str, Any]:
    spec = node.get("spec") or {}
    taints = [one for one in spec.get("taints") or () if one.get("key") not in {UNREACHABLE, UNSCHEDULABLE}]
    known = {(one.get("key"), one.get("effect")): one for one in spec.get("taints") or ()}
    wanted: list[dict[str, Any]] = []
    if state == "failed" and lifecycle:
        for effect in ("NoSchedule", "NoExecute"):
            new = {"key": UNREACHABLE, "effect": effect, "timeAdded": _text(now)}
            wanted.append(known.get((UNREACHABLE, effect)) or new)
    if (state == "drained" or spec.get("unschedulable")) and lifecycle:
        new = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
        wanted.append(known.get((UNSCHEDULABLE, "NoSchedule")) or new)
    change: dict[str, Any] = {}
    if lifecycle and [*taints, *wanted] != list(spec.get("taints") or ()):
        change["taints"] = [*taints, *wanted]
    if state == "drained" and not spec.get("unschedulable"):
        change["unschedulable"] = True
    return change


@dataclass(frozen=True, slots=True)
class Leaving:
    """`now`: pods to let go of; `at`: when the next of them has waited long enough."""

    now: tuple[Object, ...] = ()
    at: datetime | None = None


def leaving(node: Object, pods: Iterable[Object], now: datetime) -> Leaving:
    """Pods that have to go: of a drained node all but those of daemons, of a lost one those that do not tolerate it."""
    state = state_of(node)
    gone: list[Object] = []
    times: list[datetime] = []
    for pod in pods:
        if (pod.get("metadata") or {}).get("deletionTimestamp") or _is_over(pod):
            continue
        if state == "drained" and not _is_daemon(pod):
            gone.append(pod)
        elif state == "failed":
            end = _tolerated_until(node, pod)
            if end is not None and end <= now:
                gone.append(pod)
            elif end is not None:
                times.append(end)
    return Leaving(tuple(gone), min(times, default=None))


def tainted(pod: Object, now: datetime) -> dict[str, Any]:
    """The status of a pod that goes because its node is lost, in the words of the taint manager."""
    words = "Taint manager: deleting due to NoExecute taint"
    return {"conditions": _target(pod, "DeletionByTaintManager", words, now)}


def orphaned(pod: Object, now: datetime) -> dict[str, Any]:
    """The status of a pod whose node is no more, in the words of the collector of pods; none if it has ended."""
    if _is_over(pod):
        return {}
    return {"phase": "Failed", "conditions": _target(pod, "DeletionByPodGC", "PodGC: node no longer exists", now)}


def _target(pod: Object, reason: str, words: str, now: datetime) -> list[dict[str, Any]]:
    others = [one for one in (pod.get("status") or {}).get("conditions") or () if one["type"] != "DisruptionTarget"]
    said = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": words}
    return [*others, {**said, "lastTransitionTime": _text(now)}]


def _is_over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def _is_daemon(pod: Object) -> bool:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
    return any(one.get("controller") and one.get("kind") in {"DaemonSet", "Node"} for one in owners)


def _tolerated_until(node: Object, pod: Object) -> datetime | None:
    """None: for ever."""
    since = next(
        (
            times.moment(one["timeAdded"])
            for one in (node.get("spec") or {}).get("taints") or ()
            if one.get("key") == UNREACHABLE and one.get("effect") == "NoExecute" and one.get("timeAdded")
        ),
        None,
    )
    if since is None:
        return None
    waits = [0.0]
    for one in (pod.get("spec") or {}).get("tolerations") or ():
        if one.get("key") in (None, "", UNREACHABLE) and one.get("effect") in (None, "", "NoExecute"):
            if one.get("tolerationSeconds") is None:
                return None
            waits.append(float(one["tolerationSeconds"]))
    return since + timedelta(seconds=max(waits))


def _text(moment: datetime) -> str:
    return seconds(moment)
