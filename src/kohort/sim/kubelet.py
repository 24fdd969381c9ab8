"""The virtual nodes at work: one process plays the kubelets of all of them.

    async with KubeletSimulator(client, read(open("cluster.yaml").read())) as kubelets:
        await kubelets.ready()

What happens when is computed in podlife and nodelife; here it is written. One watch on pods and one on nodes serve
thousands of nodes, and a pod costs two or three writes in its life.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import datetime
from types import TracebackType
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery.times import micros
from kohort.kube import shares
from kohort.kube.client import Client
from kohort.kube.clock import REAL, Clock
from kohort.kube.errors import ApiError
from kohort.kube.informer import Informer
from kohort.kube.queue import WorkQueue
from kohort.sim import addresses, nodelife, podlife, startup
from kohort.sim.addresses import Addresses
from kohort.sim.behaviour import Behaviour
from kohort.sim.cluster import PLAYED_BY, POOL, Pool
from kohort.sim.pod import Container, Pod
from kohort.sim.registered import LEASES, end_pod, end_pods

log = logging.getLogger(__name__)

AT_ONCE: Final = 64
_LEASE_SECONDS: Final = 40


class KubeletSimulator:
    """`lifecycle`: nobody else looks after nodes (no controller manager); `every`: also nodes that are not of a pool.

    `heartbeat`: seconds between two signs of life of a node; 0: none, which is right where nobody looks for them.
    `identity`: plays only nodes that name it (PLAYED_BY); without, those that name nobody. So several simulators can
    work on one server.
    """

    def __init__(
        self,
        client: Client,
        pools: Iterable[Pool] = (),
        *,
        usual: Behaviour | None = None,
        lifecycle: bool = True,
        every: bool = False,
        heartbeat: float = 0.0,
        identity: str = "",
        clock: Clock = REAL,
    ) -> None:
        self._client = client
        self._pools = tuple(pools)
        self._usual = usual
        self._lifecycle = lifecycle
        self._every = every
        self._heartbeat = heartbeat
        self._identity = identity
        self._clock = clock
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.nodes: Informer[Object] = Informer(client.kind("v1", "Node"), clock=clock)
        self._pods = client.kind("v1", "Pod", Pod)
        self.pods: Informer[Pod] = Informer(
            self._pods,
            clock=clock,
            indexers={"node": lambda pod: (pod.spec.node_name,), "gang": _gang, "waits for gang": _waits},
        )
        self._pod_queue: WorkQueue[tuple[str, str]] = WorkQueue(
            clock=clock,
            first=0.2,
            most=30.0,
            group_of=lambda key: key[0],
            rests=shares.rests if clock is REAL else None,
        )
        self._node_queue: WorkQueue[str] = WorkQueue(clock=clock, first=0.2, most=30.0)
        self._pod_ips = Addresses(addresses.PODS)
        self._node_ips = Addresses(addresses.NODES)
        self._missing: dict[str, float] = {}  # nodes that pods name and that are not there: since when

    async def __aenter__(self) -> KubeletSimulator:
        await self._register()
        self.nodes.handle(
            added=self._node_changed, updated=lambda _, new: self._node_changed(new), deleted=self._node_gone
        )
        self.pods.handle(added=self._pod_changed, updated=self._pod_updated, deleted=self._pod_gone)
        await self._stack.enter_async_context(self.nodes)
        await self.nodes.ready()  # a pod is played only if its node is known
        await self._stack.enter_async_context(self.pods)
        self._tasks = [
            asyncio.create_task(self._pod_queue.work(self._play_pod, workers=AT_ONCE)),
            asyncio.create_task(self._node_queue.work(self._play_node, workers=8)),
        ]
        if self._heartbeat > 0:
            self._tasks.append(asyncio.create_task(self._beat()))
        return self

    async def ready(self) -> None:
        await self.nodes.ready()
        await self.pods.ready()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pod_queue.close()
        self._node_queue.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    # ---- nodes

    async def _register(self) -> None:
        """Make the nodes of the pools; those that exist are taken as they are."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def make(node: Object) -> None:
            async with slots:
                await self._make(node)

        await asyncio.gather(*(make(node) for pool in self._pools for node in pool.nodes()))

    async def _make(self, node: Object) -> None:
        resource = self._client.kind("v1", "Node")
        moment = self._clock.now()
        ready = nodelife.step(node, moment, lifecycle=True).status
        name = str(node["metadata"]["name"])
        place = addresses.node_status(name, self._node_ips.of(name))
        status = {**node["status"], **ready, **place, "nodeInfo": _INFO}
        try:
            made = await resource.create({**node, "status": status})
        except ApiError as error:
            if not error.already_exists:
                raise
            return
        if (made.get("status") or {}).get("capacity") != status["capacity"]:
            await resource.patch(node["metadata"]["name"], {"status": status}, subresource="status")

    def _is_ours(self, node: Object | None) -> bool:
        if node is None or str((node["metadata"].get("annotations") or {}).get(PLAYED_BY) or "") != self._identity:
            return False
        return self._every or POOL in (node["metadata"].get("labels") or {})

    def _node_changed(self, node: Object) -> None:
        if not self._is_ours(node):
            return
        name = str(node["metadata"]["name"])
        self._node_queue.add(name)
        for pod in self.pods.cache.indexed("node", name):
            self._pod_queue.add((pod.metadata.namespace, pod.metadata.name))

    def _node_gone(self, node: Object) -> None:
        self._misses(str(node["metadata"]["name"]))

    def _misses(self, name: str) -> None:
        if self._lifecycle and name not in self._missing:
            self._missing[name] = self._clock.monotonic()
            self._node_queue.add(name)

    async def _play_node(self, name: str) -> float | None:
        node = self.nodes.cache.get(("", name))
        if node is None:
            return await self._collect(name)
        self._missing.pop(name, None)
        if not self._is_ours(node):
            return None
        now = self._clock.now()
        change = nodelife.step(node, now, lifecycle=self._lifecycle)
        resource = self._client.kind("v1", "Node")
        if change.spec:
            await resource.patch(name, {"spec": change.spec})
        if change.status:
            await resource.patch(name, {"status": change.status}, subresource="status")
        return await self._let_go(node, now)

    async def _let_go(self, node: Object, now: datetime) -> float | None:
        """Pods of a node that is drained or lost."""
        if not nodelife.state_of(node) or not self._lifecycle:
            return None
        pods = self._client.kind("v1", "Pod")
        listed = (await pods.list(fields=f"spec.nodeName={node['metadata']['name']}")).items
        found = nodelife.leaving(node, listed, now)
        drained = nodelife.state_of(node) == "drained"
        blocked = False
        for pod in found.now:
            if not drained:
                await end_pod(pods, pod, nodelife.tainted(pod, now))
                continue
            meta = pod["metadata"]
            try:
                await pods.evict(meta["name"], meta["namespace"], uid=meta["uid"])
            except ApiError as error:
                if error.code == 429:  # a budget says: not now
                    blocked = True
                elif not error.not_found and not error.conflict:
                    raise
        if blocked:
            return 5.0
        return None if found.at is None else max(0.0, (found.at - now).total_seconds())

    async def _collect(self, name: str) -> float | None:
        """Pods of a node that was deleted: nobody will ever say that they have ended."""
        if name not in self._missing:
            return None
        wait = self._missing[name] + nodelife.QUARANTINE - self._clock.monotonic()
        if wait > 0:
            return wait
        await end_pods(self._client, name)
        self._missing.pop(name, None)
        return None

    # ---- pods

    def _pod_gone(self, pod: Pod) -> None:
        self._pod_ips.release(pod.metadata.uid)
        self._gang_changed(pod)

    def _pod_changed(self, pod: Pod) -> None:
        if not pod.spec.host_network:
            self._pod_ips.note(pod.metadata.uid, pod.status.pod_ip)
        if pod.spec.node_name:
            if ("", pod.spec.node_name) not in self.nodes.cache:
                self._misses(pod.spec.node_name)
            self._pod_queue.add((pod.metadata.namespace, pod.metadata.name))

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        self._pod_changed(new)
        if new.metadata.labels.gang and old.ready != new.ready:
            self._gang_changed(new)

    def _gang_changed(self, pod: Pod) -> None:
        """Others of its gang may wait for it."""
        for found in _gang(pod):
            for one in self.pods.cache.indexed("waits for gang", found):
                self._pod_changed(one)

    def _holds(self, pod: Pod, container: Container) -> bool | None:
        gang = startup.gang(pod)
        return None if gang is None else startup.holds(container, self.pods.cache.indexed("gang", gang))

    async def _play_pod(self, key: tuple[str, str]) -> float | None:
        pod = self.pods.cache.get(key)
        if pod is None or not pod.spec.node_name:
            return None
        node = self.nodes.cache.get(("", pod.spec.node_name))
        if not self._is_ours(node) or nodelife.state_of(node or {}) == "failed":
            return None
        now = self._clock.now()
        usual = nodelife.usual(node or {}, pod.spec.restart_policy, self._usual)
        found = podlife.step(pod, now, usual, lambda container: self._holds(pod, container))
        resource, meta = self._pods, pod.metadata
        try:
            if found.status is not None:
                status = {**self._addresses(pod, node or {}, found.status), **found.status}
                body = {"metadata": {"uid": meta.uid}, "status": status}
                await resource.patch_unread(meta.name, body, meta.namespace, subresource="status")
            if found.remove:
                await resource.delete_unread(meta.name, meta.namespace, grace=0, uid=meta.uid)
        except ApiError as error:
            if not error.not_found and not error.conflict:
                raise
        return None if found.at is None else max(0.0, (found.at - now).total_seconds())

    def _addresses(self, pod: Pod, node: Object, status: dict[str, Any]) -> dict[str, Any]:
        """Given when its containers, init containers too, begin; it keeps them to its end."""
        if pod.status.pod_ip or status.get("phase") not in {"Pending", "Running"}:
            return {}
        host = addresses.of_node(node, self._node_ips)
        return addresses.pod_status(host if pod.spec.host_network else self._pod_ips.of(pod.metadata.uid), host)

    # ---- signs of life

    async def _beat(self) -> None:
        """Every node once in an interval, evenly spread: no burst however many there are."""
        while True:
            names = [str(node["metadata"]["name"]) for node in self.nodes.cache.values() if self._beats(node)]
            for name in names:
                await self._renew(name)
                await self._clock.sleep(self._heartbeat / len(names))
            if not names:
                await self._clock.sleep(self._heartbeat)

    def _beats(self, node: Object) -> bool:
        return self._is_ours(node) and nodelife.state_of(node) != "failed"

    async def _renew(self, name: str) -> None:
        leases = self._client.kind("coordination.k8s.io/v1", "Lease")
        moment = micros(self._clock.now())
        spec: dict[str, Any] = {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": moment}
        try:
            try:
                await leases.patch(name, {"spec": spec}, LEASES)
            except ApiError as error:
                if not error.not_found:
                    raise
                lease = {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": name},
                    "spec": spec,
                }
                await leases.create(lease, LEASES)
        except ApiError as error:
            log.warning("no sign of life of %s: %s", name, error)


def _gang(pod: Pod) -> tuple[tuple[str, str], ...]:
    labels = pod.metadata.labels
    return ((pod.metadata.namespace, labels.gang),) if labels.gang else ()


def _waits(pod: Pod) -> tuple[tuple[str, str], ...]:
    gang = startup.gang(pod)
    return () if gang is None else (gang,)


_INFO: Final = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "kohort://sim",
    "kernelVersion": "",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.37.0-kohort",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "virtual",
    "systemUUID": "",
}
