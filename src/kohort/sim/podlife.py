"""The life of a pod on a virtual node. Pure: the pod as it is stored and the time say what its kubelet would write.

Everything is computed from moments that stand in the pod, so a simulator that is stopped and started again goes on
where it was: what should have happened meanwhile happens at once, with the moments at which it should have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from kohort.apimachinery import times
from kohort.sim import initlife
from kohort.sim.behaviour import FOR_EVER, SOON, Behaviour, read
from kohort.sim.initlife import Holds
from kohort.sim.pod import Pod
from kohort.sim.statuses import CRASHING, INITIALIZING, container, pause, resized, running, terminated


@dataclass(frozen=True, slots=True)
class Next:
    """`status`: to be written now; `remove`: the pod has stopped and may go; `at`: look again then."""

    status: dict[str, Any] | None = None
    remove: bool = False
    at: datetime | None = None


def _free(_: object) -> None:
    return None


def step(pod: Pod, now: datetime, usual: Behaviour | None = None, holds: Holds = _free) -> Next:
    """What happens next to a pod that is bound to one of our nodes.

    `usual`: for pods that say nothing themselves; `holds`: whether an init container has to wait for other pods.
    """
    behaviour, _ = read(pod.metadata.annotations, _usual(pod, usual))
    if pod.metadata.deletion_timestamp is not None:
        return _stop(pod, behaviour, now)
    if pod.over:
        return Next()
    started = _started(pod)
    if started is None:
        last, restarts = _last(pod), _restarts(pod)
        init: list[dict[str, Any]] | None = None
        if last is None:
            begin = pod.bound + timedelta(seconds=behaviour.start_seconds)
            if pod.spec.init_containers and now >= begin:
                found = initlife.advance(pod, behaviour, begin, now, holds)
                if found.done is None:
                    return _initializing(pod, found, now)
                begin, init = found.done, found.statuses
        else:
            restarts += 1
            begin = times.moment(last["finishedAt"]) + pause(restarts)
        if now < begin:
            return Next(at=begin)
        status = _running(pod, begin, behaviour, now, restarts, last)
        if init is not None:
            status["initContainerStatuses"] = init
        return Next(status, at=_wake(behaviour, begin, now))
    return _go_on(pod, behaviour, started, now)


def _usual(pod: Pod, usual: Behaviour | None) -> Behaviour:
    """What a pod without annotations does: what its commands say, else what pods of its kind do."""
    if usual is None:
        usual = FOR_EVER if pod.spec.restart_policy == "Always" else SOON
    found = [pod.says(one) for one in pod.spec.containers]
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
    if not pod.ready and not behaviour.never_ready:
        ready = started + timedelta(seconds=behaviour.ready_seconds)
        if now >= ready:
            return Next(_running(pod, started, behaviour, now, _restarts(pod)), at=_wake(behaviour, started, now))
        return Next(at=ready)
    known = {one.get("name"): one for one in pod.status.container_statuses}
    if any(resized(one, known.get(one.name) or {}) for one in pod.spec.containers):  # a virtual node has room at once
        return Next(_running(pod, started, behaviour, now, _restarts(pod)), at=_wake(behaviour, started, now))
    return Next(at=_wake(behaviour, started, now))


def _wake(behaviour: Behaviour, started: datetime, now: datetime) -> datetime | None:
    """The next moment at which something changes by itself."""
    moments = [behaviour.ready_seconds] if not behaviour.never_ready else []
    moments += [behaviour.run_seconds] if behaviour.run_seconds is not None else []
    ahead = [started + timedelta(seconds=seconds) for seconds in moments]
    return min((moment for moment in ahead if moment > now), default=None)


def _stop(pod: Pod, behaviour: Behaviour, now: datetime) -> Next:
    """Told to stop: after a while, at the latest when the grace is over."""
    started = _started(pod)
    if pod.over or (started is None and initlife.began(pod) is None):
        return Next(None if pod.over else _ended(pod, "Failed", None, now, now), remove=True)
    grace = pod.metadata.deletion_grace_period_seconds or 0
    told = (pod.metadata.deletion_timestamp or now) - timedelta(seconds=grace)
    end = told + timedelta(seconds=min(behaviour.stop_seconds, grace))
    if now < end:
        return Next(at=end)
    return Next(_ended(pod, "Failed", None if started is None else 143, started or end, end), remove=True)


def _end(pod: Pod, behaviour: Behaviour, started: datetime, end: datetime) -> Next:
    restarts = _restarts(pod)
    code = behaviour.code(pod.metadata.uid, pod.metadata.annotations, restarts)
    again = pod.spec.restart_policy == "Always" or (pod.spec.restart_policy == "OnFailure" and code != 0)
    if again:
        last, wait = terminated(code, started, end), pause(restarts + 1)
        if wait:
            return Next(_waiting(pod, last, end), at=end + wait)
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
    state = running(started)
    return {
        "phase": "Running",
        "startTime": times.seconds(pod.bound),
        "conditions": _conditions(pod, ready, now),
        "containerStatuses": [container(one, state, restarts, ready, last) for one in pod.spec.containers],
    }


def _waiting(pod: Pod, last: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Between two tries of containers that keep ending."""
    restarts = _restarts(pod)
    return {
        "phase": "Running",
        "conditions": _conditions(pod, False, now, reason="ContainersNotReady"),
        "containerStatuses": [container(one, CRASHING, restarts, False, last) for one in pod.spec.containers],
    }


def _initializing(pod: Pod, found: initlife.Init, now: datetime) -> Next:
    """Init containers are at work, or one has failed for good, and with it the pod."""
    if found.failed is None and not initlife.changed(pod, found):
        return Next(at=found.at)
    status = {
        "phase": "Pending" if found.failed is None else "Failed",
        "startTime": times.seconds(pod.bound),
        "conditions": _conditions(pod, False, found.failed or now, "ContainersNotReady", initlife.words(found)),
        "initContainerStatuses": found.statuses,
        "containerStatuses": [container(one, INITIALIZING) for one in pod.spec.containers],
    }
    return Next(status, at=found.at)


def _ended(pod: Pod, phase: str, code: int | None, started: datetime, end: datetime) -> dict[str, Any]:
    """Code None: the containers never ran."""
    state = {"terminated": terminated(code, started, end)} if code is not None else {"waiting": {"reason": "Stopped"}}
    why = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    restarts = _restarts(pod)
    status = {
        "phase": phase,
        "conditions": _conditions(pod, False, end, why, initlife.missing(pod) if code is None else ""),
        "containerStatuses": [container(one, state, restarts, False) for one in pod.spec.containers],
    }
    if initlife.began(pod) is not None:
        status["initContainerStatuses"] = initlife.stopped(pod, 0 if phase == "Succeeded" else 143, end)
    return status


def _conditions(pod: Pod, ready: bool, now: datetime, reason: str = "", missing: str = "") -> list[dict[str, Any]]:
    """All of them, since a merge replaces the list; a condition keeps its moment while it does not change.

    `reason`: why it is not ready; `missing`: which init containers have not ended.
    """
    mine = {
        "PodScheduled": True,  # also of a pod that was made with its node: nobody else says so
        "Initialized": not missing,
        "PodReadyToStartContainers": not pod.over,
        "ContainersReady": ready,
        "Ready": ready,
    }
    kept = [one for one in pod.status.conditions if one.get("type") not in mine]
    known = {one.get("type"): one for one in pod.status.conditions}
    for kind, holds in mine.items():
        status = "True" if holds else "False"
        why = {"reason": reason} if reason and not holds else {}
        if kind == "Initialized" and missing:
            why = {"reason": "ContainersNotInitialized", "message": missing}
        before = known.get(kind) or {}
        same = before.get("status") == status
        if same and before.get("message") == why.get("message"):
            kept.append(before)
            continue
        since = before["lastTransitionTime"] if same else times.seconds(now)
        kept.append({"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": since, **why})
    return kept


# ---- what is read


def _started(pod: Pod) -> datetime | None:
    for one in pod.status.container_statuses:
        running = (one.get("state") or {}).get("running")
        if running and running.get("startedAt"):
            return times.moment(running["startedAt"])
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
