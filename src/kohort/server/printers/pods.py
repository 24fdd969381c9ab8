"""The columns of a pod, and how kubectl's STATUS is derived from its containers."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Column
from kohort.server import timestamps
from kohort.server.printers.cells import AGE, Object, look, text


def _containers(pod: Object) -> list[dict[str, Any]]:
    return look(pod, "status.containerStatuses") or []


def _ready(pod: Object) -> str:
    spec = look(pod, "spec.containers") or []
    restartable = [one for one in look(pod, "spec.initContainers") or [] if one.get("restartPolicy") == "Always"]
    ready = sum(1 for one in _containers(pod) if one.get("ready") and "running" in (one.get("state") or {}))
    names = {one.get("name") for one in restartable}
    sidecars = look(pod, "status.initContainerStatuses") or []
    ready += sum(1 for one in sidecars if one.get("name") in names and one.get("ready"))
    return f"{ready}/{len(spec) + len(restartable)}"


def status(pod: Object) -> str:
    """Phase, or what is in the way: a waiting or ended container, an init container, deletion."""
    phase = str(look(pod, "status.phase") or "")
    word = str(look(pod, "status.reason") or phase)
    for condition in look(pod, "status.conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    starting, initial = _initializing(pod)
    word = initial if starting else _of_containers(pod, word)
    if look(pod, "metadata.deletionTimestamp"):
        if look(pod, "status.reason") == "NodeLost":
            return "Unknown"
        if phase not in {"Succeeded", "Failed"}:
            return "Terminating"
    return word


def _initializing(pod: Object) -> tuple[bool, str]:
    statuses = look(pod, "status.initContainerStatuses") or []
    total = len(look(pod, "spec.initContainers") or [])
    restartable = {
        one.get("name") for one in look(pod, "spec.initContainers") or [] if one.get("restartPolicy") == "Always"
    }
    for index, one in enumerate(statuses):
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if one.get("name") in restartable and one.get("started"):
            continue
        if ended is not None:
            return True, f"Init:{_end(ended)}"
        if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            return True, f"Init:{waiting['reason']}"
        return True, f"Init:{index}/{total}"
    return False, ""


def _end(ended: dict[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _of_containers(pod: Object, word: str) -> str:
    running = False
    for one in reversed(_containers(pod)):
        state = one.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            word = str(waiting["reason"])
        elif ended is not None:
            word = _end(ended)
        elif one.get("ready") and "running" in state:
            running = True
    if word == "Completed" and running:
        ready = any(
            one.get("type") == "Ready" and one.get("status") == "True" for one in look(pod, "status.conditions") or []
        )
        word = "Running" if ready else "NotReady"
    return word


def _restarts(pod: Object) -> str:
    count = sum(int(one.get("restartCount") or 0) for one in _containers(pod))
    ends = [look(one, "lastState.terminated.finishedAt") for one in _containers(pod)]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({timestamps.age(last)} ago)" if count and last else str(count)


def _gates(pod: Object) -> str:
    gates = look(pod, "spec.readinessGates") or []
    if not gates:
        return "<none>"
    true = {one.get("type") for one in look(pod, "status.conditions") or [] if one.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


def _address(pod: Object) -> str:
    addresses = look(pod, "status.podIPs") or []
    return str(addresses[0].get("ip")) if addresses else str(look(pod, "status.podIP") or "<none>")


POD: Final = (
    Column("Ready", cell=_ready, description="Containers that are ready, of all."),
    Column("Status", cell=status, description="Phase, or the reason that stands for it."),
    Column("Restarts", cell=_restarts),
    AGE,
    Column("IP", cell=_address, priority=1),
    Column("Node", cell=text("spec.nodeName"), priority=1),
    Column("Nominated Node", cell=text("status.nominatedNodeName"), priority=1),
    Column("Readiness Gates", cell=_gates, priority=1),
)
