"""One real Kubernetes for many random runs at a time: what all of them share, and what was seen of all of them.

Whatever a watch shows is written down: the nodes that each pod ever had, whoever held a lease.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from tests.support.real import ACCOUNT, Kubernetes

from kohort.kube.client import Client
from kohort.kube.errors import ApiError, KubeError
from kohort.kube.informer import Informer

Json = dict[str, Any]
T = TypeVar("T")
GROUPS: Final = ("scheduling.k8s.io/v1beta1", "PodGroup")
COMPOSITES: Final = ("scheduling.k8s.io/v1alpha3", "CompositePodGroup")
LEASES: Final = ("coordination.k8s.io/v1", "Lease")
HIGH: Final = "chaos-high"
THIEF: Final = "thief"


@dataclass(frozen=True, slots=True)
class Takeover:
    """A lease that changed hands sooner than it lasts: `since` its last holder renewed it, `at` it was taken."""

    lease: str
    holder: str
    taker: str
    since: datetime
    at: datetime

    def __str__(self) -> str:
        passed = (self.at - self.since).total_seconds()
        return f"lease {self.lease}: {self.taker} took it from {self.holder} after {passed:.1f} s"


class Ground:
    """`client` goes straight to the API server, as an administrator."""

    def __init__(self, kubernetes: Kubernetes, folder: Path) -> None:
        self.kubernetes, self.folder = kubernetes, folder
        self.env = kubernetes.env
        self.token = json.loads(kubernetes.kubeconfig.read_text())["users"][0]["user"]["token"]
        self.places: dict[str, list[str]] = {}  # uid -> the nodes that it ever had
        self.wrong: list[str] = []
        self.takeovers: list[Takeover] = []
        self._one = asyncio.Lock()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Ground:
        self.client = await self._stack.enter_async_context(Client.connect(self.env.kubeconfig))
        self.pods = self._informer("v1", "Pod", self._pod)
        self.groups = self._informer(*GROUPS)
        self.composites = self._informer(*COMPOSITES)
        self.leases = self._informer(*LEASES, self._lease)
        for informer in (self.pods, self.groups, self.composites, self.leases):
            await self._stack.enter_async_context(informer)
            await informer.ready()
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}
        body |= {"metadata": {"name": HIGH}, "preemptionPolicy": "Never"}
        await self.create(body)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _informer(self, version: str, kind: str, seen: Callable[[Json | None, Json], None] | None = None) -> Any:
        space = {"space": lambda one: [one["metadata"].get("namespace", "")]}
        informer: Informer[Json] = Informer(self.client.kind(version, kind), indexers=space)
        if seen is not None:
            informer.handle(added=lambda new: seen(None, new), updated=seen)
        return informer

    # ---- what watches show

    def _pod(self, _: Json | None, new: Json) -> None:
        node, known = new["spec"].get("nodeName"), self.places.setdefault(new["metadata"]["uid"], [])
        if node and (not known or known[-1] != node):
            known.append(node)
            if len(known) > 1:
                self.wrong.append(f"{new['metadata']['namespace']}/{new['metadata']['name']} was moved: {known}")

    def _lease(self, old: Json | None, new: Json) -> None:
        """Whoever takes a lease from somebody else has seen it for as long as it lasts, unless it was given up: a watch
        that was taken up again after the server's death may not have shown that."""
        before, now = (old or {}).get("spec") or {}, new.get("spec") or {}
        holder, taker = before.get("holderIdentity"), now.get("holderIdentity")
        if not holder or not taker or taker in {holder, THIEF}:
            return
        found = Takeover(new["metadata"]["name"], holder, taker, moment(before["renewTime"]), moment(now["renewTime"]))
        if (found.at - found.since).total_seconds() < before["leaseDurationSeconds"]:
            self.takeovers.append(found)

    # ---- what is asked of the server, however often it takes

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """None if what is to be made is there, or what is to go is not: an earlier call was heard."""
        while True:
            try:
                return await call()
            except KubeError as error:
                if isinstance(error, ApiError) and (error.already_exists or error.not_found):
                    return None
                if isinstance(error, ApiError) and error.code == 422:
                    raise
            await asyncio.sleep(0.2)

    async def create(self, body: Json, namespace: str = "") -> None:
        await self.insist(lambda: self.client.of(body).create(body, namespace))

    # ---- what happens to everybody

    async def server_killed(self) -> None:
        async with self._one:
            await asyncio.to_thread(self.env.restart, self.env.gates)

    async def store_paused(self, seconds: float) -> None:
        async with self._one:
            etcd = self.env.pids()["etcd"]
            os.kill(etcd, signal.SIGSTOP)
            try:
                await asyncio.sleep(seconds)
            finally:
                os.kill(etcd, signal.SIGCONT)

    async def theft(self, name: str) -> None:
        """Somebody else has the lease for as long as it lasts, and does nothing with it."""
        leases = self.client.kind(*LEASES)
        try:
            lease = await leases.get(name, ACCOUNT[0])
            now = self.client.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            lease["spec"] |= {"holderIdentity": THIEF, "renewTime": now}
            await leases.update(lease, ACCOUNT[0])
        except KubeError:
            return


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
