"""What a kubelet writes about one container."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from kohort.apimachinery import quantity, times
from kohort.sim.pod import Container

INITIALIZING: Final[dict[str, Any]] = {"waiting": {"reason": "PodInitializing"}}
CRASHING: Final[dict[str, Any]] = {
    "waiting": {"reason": "CrashLoopBackOff", "message": "the containers end again and again"}
}


def container(
    of: Container,
    state: dict[str, Any],
    restarts: int = 0,
    ready: bool = False,
    last: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "name": of.name,
        "image": of.image,
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
        **({"lastState": {"terminated": last}} if last else {}),
        **(_given(of) if "running" in state else {}),
    }


def _given(of: Container) -> dict[str, Any]:
    """What a container has: a kubelet that writes it can resize."""
    found = {sort: of.resources[sort] for sort in ("limits", "requests") if of.resources.get(sort)}
    return {"resources": found, **({"allocatedResources": found["requests"]} if "requests" in found else {})}


def resized(of: Container, status: dict[str, Any]) -> bool:
    """Whether the container wants something else than it has. A status without amounts says nothing."""
    had = status.get("resources")
    if had is None:
        return False
    for sort in ("limits", "requests"):
        wanted, given = of.resources.get(sort) or {}, had.get(sort) or {}
        if wanted != given and _values(wanted) != _values(given):
            return True
    return False


def _values(amounts: dict[str, Any]) -> dict[str, Any]:
    return {name: one.value for name, one in quantity.parse_all(amounts).items()}


def running(started: datetime) -> dict[str, Any]:
    return {"running": {"startedAt": times.seconds(started)}}


def terminated(code: int | None, started: datetime, end: datetime) -> dict[str, Any]:
    return {
        "exitCode": code or 0,
        "reason": "Error" if code else "Completed",
        "startedAt": times.seconds(started),
        "finishedAt": times.seconds(end),
    }


def pause(restarts: int) -> timedelta:
    """A kubelet starts containers again at once, then after 10, 20, 40 … 300 seconds."""
    return timedelta(seconds=0 if restarts <= 1 else min(300, 10 * 2 ** min(restarts - 2, 5)))
