"""The life of a pod on a virtual node. Pure: the pod as it is stored and the time say what its kubelet would write.

Everything is computed from moments that stand in the pod, so a simulator that is stopped and started again goes on
where it was: what should have happened meanwhile happens at once, with the moments at which it should have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from kohort.sim.behaviour import FOR_EVER, SOON, Behaviour, read
from kohort.sim.command import ending


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] = {}


class Container(msgspec.Struct):
    name: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    restart_policy: str = "Always"
    containers: list[Container] = []


class Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[dict[str, Any]] = []
    container_statuses: list[dict[str, Any]] = []


class Pod(msgspec.Struct):
    """The members of a Pod that a virtual kubelet reads; the rest is not even decoded."""

    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def over(self) -> bool:
        return self.status.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Next:
    """`status`: to be written now; `remove`: the pod has stopped and may go; `at`: look again then."""

    status: dict[str, Any] | None = None
    remove: bool = False
    at: datetime | None = None


def step(pod: Pod, now: datetime, usual: Behaviour | None = None) -> Next:
    """What happens next to a pod that is bound to one of our nodes. `usual`: for pods that say nothing themselves."""
    behaviour, _ = read(pod.metadata.annotations, _usual(pod, usual))
    if pod.metadata.deletion_timestamp is not None:
        return _stop(pod, behaviour, now)
    if pod.over:
        return Next()
    started = _started(pod)
    if started is None:
        last, restarts = _last(pod), _restarts(pod)
        if last is None:
            begin = _bound(pod) + timedelta(seconds=behaviour.start_seconds)
        else:
            restarts += 1
            begin = _moment(last["finishedAt"]) + _pause(restarts)
        if now < begin:
            return Next(at=begin)
        return Next(_running(pod, begin, behaviour, now, restarts, last), at=_wake(behaviour, begin, now))
    return _go_on(pod, behaviour, started, now)


def _usual(pod: Pod, usual: Behaviour | None) -> Behaviour:
    """What a pod without annotations does: what its commands say, else what pods of its kind do."""
    if usual is None:
        usual = FOR_EVER if pod.spec.restart_policy == "Always" else SOON
    found = [ending((*one.command, *one.args)) for one in pod.spec.containers]
    if any(one is not None and one.seconds is None for one in found):
        return replace(usual, run_seconds=None)
    ends = [one for one in found if one is not None]
    if not ends or len(ends) < len(found):
        return usual
    longest = max(ends, key=lambda one: one.seconds or 0.0)
    worst = next((one.code for one in ends if one.code), 0)
    return replace(usual, run_seconds=longest.seconds, exit_code=worst)


def _go_on(pod: Pod, behaviour: Behaviour, started: datetime, now: datetime) -> Next:
    """Running: to be ready, to end, or to be left alone."""
    if behaviour.run_seconds is not None:
        end = started + timedelta(seconds=behaviour.run_seconds)
        if now >= end:
            return _end(pod, behaviour, started, end)
    if not _is_ready(pod) and not behaviour.never_ready:
        ready = started + timedelta(seconds=behaviour.ready_seconds)
        if now >= ready:
            return Next(_running(pod, started, behaviour, now, _restarts(pod)), at=_wake(behaviour, started, now))
        return Next(at=ready)
    return Next(at=_wake(behaviour, started, now))


def _wake(behaviour: Behaviour, started: datetime, now: datetime) -> datetime | None:
    """The next moment at which something changes by itself."""
    moments = [behaviour.ready_seconds] if not behaviour.never_ready else []
    moments += [behaviour.run_seconds] if behaviour.run_seconds is not None else []
    ahead = [started + timedelta(seconds=seconds) for seconds in moments]
    return min((moment for moment in ahead if moment > now), default=None)


def _stop(pod: Pod, behaviour: Behaviour, now: datetime) -> Next:
    """Told to stop: after a while, at the latest when the grace is over."""
    if pod.over or _started(pod) is None:
        return Next(None if pod.over else _ended(pod, "Failed", None, now, now), remove=True)
    grace = pod.metadata.deletion_grace_period_seconds or 0
    told = (pod.metadata.deletion_timestamp or now) - timedelta(seconds=grace)
    end = told + timedelta(seconds=min(behaviour.stop_seconds, grace))
    if now < end:
        return Next(at=end)
    return Next(_ended(pod, "Failed", 143, _started(pod) or end, end), remove=True)


def _end(pod: Pod, behaviour: Behaviour, started: datetime, end: datetime) -> Next:
    restarts = _restarts(pod)
    code = behaviour.code(pod.metadata.uid, pod.metadata.annotations, restarts)
    again = pod.spec.restart_policy == "Always" or (pod.spec.restart_policy == "OnFailure" and code != 0)
    if again:
        last, pause = _terminated(code, started, end), _pause(restarts + 1)
        if pause:
            return Next(_waiting(pod, last, end), at=end + pause)
        return Next(_running(pod, end, behaviour, end, restarts + 1, last), at=_wake(behaviour, end, end))
    return Next(_ended(pod, "Failed" if code else "Succeeded", code, started, end))


# ---- what is written


def _running(
    pod: Pod,
    started: datetime,
    behaviour: Behaviour,
    now: datetime,
    restarts: int = 0,
    last: dict[str, Any] | None = None,
) -> dict[str, Any]:
    ready = not behaviour.never_ready and now >= started + timedelta(seconds=behaviour.ready_seconds)
    state = {"running": {"startedAt": _text(started)}}
    return {
        "phase": "Running",
        "startTime": _text(_bound(pod)),
        "conditions": _conditions(pod, ready, now),
        "containerStatuses": [_container(one, state, restarts, ready, last) for one in pod.spec.containers],
    }


def _waiting(pod: Pod, last: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Between two tries of containers that keep ending."""
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "the containers end again and again"}}
    return {
        "phase": "Running",
        "conditions": _conditions(pod, False, now, reason="ContainersNotReady"),
        "containerStatuses": [_container(one, state, _restarts(pod), False, last) for one in pod.spec.containers],
    }


def _pause(restarts: int) -> timedelta:
    """A kubelet starts containers again at once, then after 10, 20, 40 … 300 seconds."""
    return timedelta(seconds=0 if restarts <= 1 else min(300, 10 * 2 ** min(restarts - 2, 5)))


def _ended(pod: Pod, phase: str, code: int | None, started: datetime, end: datetime) -> dict[str, Any]:
    """Code None: the containers never ran."""
    state = {"terminated": _terminated(code, started, end)} if code is not None else {"waiting": {"reason": "Stopped"}}
    return {
        "phase": phase,
        "conditions": _conditions(pod, False, end, reason="PodCompleted" if phase == "Succeeded" else "PodFailed"),
        "containerStatuses": [_container(one, state, _restarts(pod), False) for one in pod.spec.containers],
    }


def _terminated(code: int | None, started: datetime, end: datetime) -> dict[str, Any]:
    return {
        "exitCode": code or 0,
        "reason": "Error" if code else "Completed",
        "startedAt": _text(started),
        "finishedAt": _text(end),
    }


def _container(
    container: Container, state: dict[str, Any], restarts: int, ready: bool, last: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        **({"lastState": {"terminated": last}} if last else {}),
    }


def _conditions(pod: Pod, ready: bool, now: datetime, reason: str = "") -> list[dict[str, Any]]:
    """All of them, since a merge replaces the list; a condition keeps its moment while it does not change."""
    mine = {"Initialized": True, "PodReadyToStartContainers": not pod.over, "ContainersReady": ready, "Ready": ready}
    kept = [one for one in pod.status.conditions if one.get("type") not in mine]
    known = {one.get("type"): one for one in pod.status.conditions}
    for kind, holds in mine.items():
        status = "True" if holds else "False"
        before = known.get(kind) or {}
        if before.get("status") == status:
            kept.append(before)
            continue
        new = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": _text(now)}
        kept.append({**new, "reason": reason} if reason and not holds else new)
    return kept


# ---- what is read


def _bound(pod: Pod) -> datetime:
    for one in pod.status.conditions:
        if one.get("type") == "PodScheduled" and one.get("status") == "True" and one.get("lastTransitionTime"):
            return _moment(one["lastTransitionTime"])
    return pod.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)


def _started(pod: Pod) -> datetime | None:
    for one in pod.status.container_statuses:
        running = (one.get("state") or {}).get("running")
        if running and running.get("startedAt"):
            return _moment(running["startedAt"])
    return None


def _last(pod: Pod) -> dict[str, Any] | None:
    """How the containers ended before they began to wait for their next try."""
    for one in pod.status.container_statuses:
        last: dict[str, Any] | None = (one.get("lastState") or {}).get("terminated")
        if last and last.get("finishedAt"):
            return last
    return None


def _restarts(pod: Pod) -> int:
    return max((int(one.get("restartCount") or 0) for one in pod.status.container_statuses), default=0)


def _is_ready(pod: Pod) -> bool:
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in pod.status.conditions)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
