"""What became of the pods of each gang, event by event, as a watch of the API server tells it.

A gang's bindings are written one after the other, and a node may be lost between two of them. So whether a gang was
started as a whole is judged by the pods that were bound since it last had none, not by how many are bound at the
moment that somebody looks; and what is called a fault is shown with everything that was seen of that gang.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.operators.bed import told

Json = dict[str, Any]


@dataclass(slots=True)
class Gang:
    """`size`: how many of its pods start together."""

    size: int
    events: list[tuple[float, str, str]] = field(default_factory=list)  # when, pod, what
    nodes: dict[str, str] = field(default_factory=dict)  # of bound pods, by their uid
    silent: dict[str, tuple[float, str]] = field(default_factory=dict)  # waiting without a reason: since when, name
    started: set[str] = field(default_factory=set)  # pods that were bound since the gang last had none
    since: float | None = None  # when the first of them was
    took: list[float] = field(default_factory=list)  # from the first binding to the one that made it whole
    state: dict[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return len(self.started) >= self.size

    @property
    def ran(self) -> bool:
        """It was whole at some time."""
        return bool(self.took)

    def partly(self, now: float) -> float:
        """For how many seconds it has been bound in part."""
        return now - self.since if self.since is not None and not self.whole else 0.0

    def told(self, begin: float) -> str:
        return "\n".join(f"    {at - begin:8.2f} s  {name:24} {what}" for at, name, what in self.events)

    def see(self, kind: str, pod: Json, now: float) -> None:
        meta = pod["metadata"]
        uid, name, node = meta["uid"], meta["name"], pod["spec"].get("nodeName", "")
        gone = kind == "DELETED" or "deletionTimestamp" in meta
        what = _state(kind, pod)
        if self.state.get(uid) != what:
            self.state[uid] = what
            self.events.append((now, name, what))
        self.silent.pop(uid, None)
        if gone:
            self.nodes.pop(uid, None)
        elif node:
            self._bound(uid, node, now)
        elif not told(pod):
            self.silent[uid] = (now, name)
        if not self.nodes:
            self.started, self.since = set(), None

    def _bound(self, uid: str, node: str, now: float) -> None:
        self.nodes[uid] = node
        before = self.whole
        self.started.add(uid)
        if self.since is None:
            self.since = now
        if self.whole and not before:
            self.took.append(now - self.since)


def _state(kind: str, pod: Json) -> str:
    node = pod["spec"].get("nodeName", "")
    if kind == "DELETED":
        return "gone"
    if "deletionTimestamp" in pod["metadata"]:
        return f"deleted{f' on {node}' if node else ''}"
    if node:
        return f"bound to {node}, {(pod.get('status') or {}).get('phase', '')}"
    return f"waits: {told(pod) or 'nothing said yet'}"


class PodWatch:
    """`kubectl get pods --watch` in a thread of its own, begun again when the server ends it."""

    def __init__(self, command: list[str], see: Callable[[str, Json, float], None]) -> None:
        self._command = [*command, "get", "pods", "--watch", "--output-watch-events", "-o", "json"]
        self._see = see
        self._process: subprocess.Popen[str] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        if self._process is not None:
            self._process.terminate()
        self._thread.join(10)

    def _follow(self) -> None:
        while not self._ended.is_set():
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            assert self._process.stdout is not None
            for line in self._process.stdout:
                event = json.loads(line)
                self._see(event["type"], event["object"], time.monotonic())
            self._process.wait()
            self._ended.wait(0.5)
