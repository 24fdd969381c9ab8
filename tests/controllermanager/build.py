"""Pods and owners in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kohort.api.kind import Object
from kohort.apimachinery import times

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return times.seconds(NOW - timedelta(seconds=seconds))


def pod(
    name: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: float | None = 100.0,
    age: float = 100.0,
    restarts: int = 0,
    labels: Mapping[str, str] | None = None,
    **meta: Any,
) -> Object:
    """`ready`: for so many seconds; None: it is not."""
    condition: dict[str, Any] = {"type": "Ready", "status": "False"}
    if ready is not None:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": ago(ready)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "labels": dict(labels or {"app": "web"}),
            "creationTimestamp": ago(age),
            **meta,
        },
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": phase,
            "conditions": [condition],
            "containerStatuses": [{"name": "c", "restartCount": restarts}],
        },
    }


def template(labels: Mapping[str, str] | None = None, image: str = "nginx", **spec: Any) -> Object:
    return {
        "metadata": {"labels": dict(labels or {"app": "web"})},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }


def owner(kind: str, name: str = "web", *, api_version: str = "apps/v1", **spec: Any) -> Object:
    given = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": given}
