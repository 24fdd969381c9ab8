"""Init containers, one after the other, before a pod's containers begin; sidecars among them run on beside those.

Pure, and computed from stored moments, as the rest of a pod's life (`podlife`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kohort.apimachinery import times
from kohort.sim import statuses
from kohort.sim.behaviour import Behaviour
from kohort.sim.command import Ending
from kohort.sim.pod import Container, Pod

# Whether an init container that waits for other pods has to wait on; None: it waits for nobody.
Holds = Callable[[Container], bool | None]


@dataclass(slots=True)
class Init:
    """`done`: when the last of them had ended, if all have; `failed`: when one had, for good; `at`: look again then."""

    statuses: list[dict[str, Any]] = field(default_factory=list)
    done: datetime | None = None
    failed: datetime | None = None
    at: datetime | None = None
    incomplete: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Try:
    """One run of an init container, or the wait for it."""

    started: datetime
    restarts: int
    last: dict[str, Any] | None = None


def advance(pod: Pod, behaviour: Behaviour, begin: datetime, now: datetime, holds: Holds) -> Init:
    """How far they are now. `begin`: when the first one may start."""
    found = Init(done=begin)
    stored = {one.get("name"): one for one in pod.status.init_container_statuses}
    for container in pod.spec.init_containers:
        if found.done is None:
            found.statuses.append(statuses.container(container, statuses.INITIALIZING))
        else:
            _one(
                found,
                container,
                pod.says(container),
                stored.get(container.name) or {},
                pod.spec.restart_policy,
                behaviour,
                now,
                holds,
            )
        if found.done is None:
            found.incomplete.append(container.name)
    return found


def _one(
    found: Init,
    container: Container,
    said: Ending | None,
    stored: dict[str, Any],
    policy: str,
    behaviour: Behaviour,
    now: datetime,
    holds: Holds,
) -> None:
    """Adds its status; `found.done` becomes the moment at which the next one may start, or None."""
    assert found.done is not None
    ended = (stored.get("state") or {}).get("terminated")
    if ended:
        found.statuses.append(stored)
        found.done = times.moment(ended["finishedAt"]) if not ended.get("exitCode") else None
        return
    one = _current(stored, found.done)
    while True:
        if now < one.started:
            state = statuses.CRASHING if one.last else statuses.INITIALIZING
            restarts = one.restarts - 1 if one.last else 0
            _wait(found, statuses.container(container, state, restarts, last=one.last), one.started)
            return
        if container.sidecar:
            running = statuses.running(one.started)
            found.statuses.append(statuses.container(container, running, one.restarts, True, one.last))
            found.done = one.started
            return
        end = _end(container, said, behaviour, one, now, holds)
        if end is None or now < end:
            running = statuses.running(one.started)
            _wait(found, statuses.container(container, running, one.restarts, last=one.last), end)
            return
        code = _code(said, behaviour, one.restarts)
        last = statuses.terminated(code, one.started, end)
        if code == 0 or policy == "Never":
            state = {"terminated": last}
            found.statuses.append(statuses.container(container, state, one.restarts, code == 0, one.last))
            found.done, found.failed = (end, None) if code == 0 else (None, end)
            return
        one = _Try(end + statuses.pause(one.restarts + 1), one.restarts + 1, last)


def _wait(found: Init, status: dict[str, Any], until: datetime | None) -> None:
    found.statuses.append(status)
    found.done, found.at = None, until


def _current(stored: dict[str, Any], begin: datetime) -> _Try:
    """As it is stored: it runs, waits for its next try, or has not begun."""
    restarts = int(stored.get("restartCount") or 0)
    last = (stored.get("lastState") or {}).get("terminated")
    running = (stored.get("state") or {}).get("running")
    if running and running.get("startedAt"):
        return _Try(times.moment(running["startedAt"]), restarts, last)
    if last and last.get("finishedAt"):
        return _Try(times.moment(last["finishedAt"]) + statuses.pause(restarts + 1), restarts + 1, last)
    return _Try(begin, 0)


def _end(
    container: Container, said: Ending | None, behaviour: Behaviour, one: _Try, now: datetime, holds: Holds
) -> datetime | None:
    """None: somebody else decides, or nobody."""
    held = holds(container)
    if held is not None:
        return None if held else max(one.started, now)
    seconds = behaviour.init_seconds
    if seconds is None:
        if said is not None and said.seconds is None:
            return None
        seconds = 0.0 if said is None else said.seconds or 0.0
    return one.started + timedelta(seconds=seconds)


def _code(said: Ending | None, behaviour: Behaviour, restarts: int) -> int:
    if restarts < behaviour.init_restarts:
        return 1
    if behaviour.init_exit_code is not None:
        return behaviour.init_exit_code
    return 0 if said is None else said.code


def stopped(pod: Pod, code: int, end: datetime) -> list[dict[str, Any]]:
    """Those that still ran when the pod's containers ended or were stopped: sidecars, mostly."""
    return [_stopped(one, code, end) for one in pod.status.init_container_statuses]


def _stopped(status: dict[str, Any], code: int, end: datetime) -> dict[str, Any]:
    running = (status.get("state") or {}).get("running")
    if not running:
        return status
    ended = statuses.terminated(code, times.moment(running["startedAt"]), end)
    return {**status, "state": {"terminated": ended}, "ready": False, "started": False}


def missing(pod: Pod) -> str:
    """What is said of those that have not ended, as it was told last."""
    for one in pod.status.conditions:
        if one.get("type") == "Initialized" and one.get("status") == "False":
            return str(one.get("message") or "")
    return ""


def began(pod: Pod) -> datetime | None:
    """Since when one of them runs."""
    for one in pod.status.init_container_statuses:
        running = (one.get("state") or {}).get("running")
        if running and running.get("startedAt"):
            return times.moment(running["startedAt"])
    return None


def changed(pod: Pod, found: Init) -> bool:
    """Whether there is something to write: a server may store more of a status than it was given."""
    return [_sign(one) for one in pod.status.init_container_statuses] != [_sign(one) for one in found.statuses]


def _sign(status: dict[str, Any]) -> tuple[str, str, int]:
    state = status.get("state") or {}
    kind = next(iter(state), "")
    return kind, str((state.get(kind) or {}).get("reason") or ""), int(status.get("restartCount") or 0)


def words(found: Init) -> str:
    return f"containers with incomplete status: [{' '.join(found.incomplete)}]"
