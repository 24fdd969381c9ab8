"""Virtual nodes that are in a cluster already: those that an earlier start made, and those that a process takes over.

Nodes are objects and outlive the process that plays them. A later start may take away what an earlier one made
(CREATED_BY), never what people made themselves, and never a node under pods that have not ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, name_of
from kohort.kube.client import Client
from kohort.kube.errors import ApiError, TransportError
from kohort.kube.resource import Resource
from kohort.sim import nodelife
from kohort.sim.cluster import CREATED_BY, PLAYED_BY, POOL, SPEC_HASH, Pool

LEASES: Final = "kube-node-lease"
_AT_ONCE: Final = 64
_OVER: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What an earlier start left: names of nodes, sorted.

    `removed`: nobody asks for them. `replaced`: asked for otherwise; made anew. `kept`: nobody asks for them, but they
    have pods, or are not of our making. `unchanged`: asked for otherwise, but they have pods.
    """

    removed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


async def remove_leftovers(client: Client, pools: Iterable[Pool], creator: str) -> Leftovers:
    """Before the nodes of `pools` are made: take away those of an earlier start that are not asked for like this."""
    asked = {name_of(node): annotation(node, SPEC_HASH) for pool in pools for node in pool.nodes()}
    there = await virtual_nodes(client)
    other = [
        node for node in there if name_of(node) not in asked or asked[name_of(node)] != annotation(node, SPEC_HASH)
    ]
    if not other:
        return Leftovers()
    busy = await _busy(client)
    gone = {name_of(node) for node in other if annotation(node, CREATED_BY) == creator and name_of(node) not in busy}
    await remove(client, gone)
    left = {name_of(node) for node in other if annotation(node, CREATED_BY) == creator} - gone
    foreign = {name_of(node) for node in other if annotation(node, CREATED_BY) != creator}
    return Leftovers(
        removed=tuple(sorted(gone - asked.keys())),
        replaced=tuple(sorted(gone & asked.keys())),
        kept=tuple(sorted((left | foreign) - asked.keys())),
        unchanged=tuple(sorted(left & asked.keys())),
    )


async def _busy(client: Client) -> set[str]:
    """Nodes under pods that have not ended."""
    found: set[str] = set()
    async for page in client.kind("v1", "Pod").pages():
        for pod in page.items:
            if (pod.get("status") or {}).get("phase") not in _OVER:
                found.add(str(pod["spec"].get("nodeName") or ""))
    return found


async def remove(client: Client, names: Collection[str], *, pods: bool = False) -> None:
    """Nodes and their leases. `pods`: theirs as well, where no controller manager collects them."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> None:
        async with slots:
            await _gone(client, "v1", "Node", name)
            await _gone(client, "coordination.k8s.io/v1", "Lease", name, LEASES)
            if pods:
                await end_pods(client, name)

    await asyncio.gather(*(one(name) for name in sorted(names)))


async def end_pods(client: Client, node: str) -> None:
    """Of a node that is no more: nobody will ever say that they have ended."""
    pods = client.kind("v1", "Pod")
    for pod in (await pods.list(fields=f"spec.nodeName={node}")).items:
        await end_pod(pods, pod, nodelife.orphaned(pod, client.clock.now()))


async def end_pod(pods: Resource[Object], pod: Object, status: dict[str, Any]) -> None:
    """Nobody is there to stop it in peace; failure policies of Jobs ask why it goes."""
    meta = pod["metadata"]
    try:
        if status:
            await pods.patch(meta["name"], {"status": status}, meta["namespace"], subresource="status")
        await pods.delete(meta["name"], meta["namespace"], grace=0, uid=meta["uid"])
    except ApiError as error:
        if not error.not_found and not error.conflict:
            raise


async def _gone(client: Client, api_version: str, kind: str, name: str, namespace: str = "") -> None:
    try:
        await client.kind(api_version, kind).delete(name, namespace)
    except ApiError as error:
        if not error.not_found:
            raise


@contextlib.asynccontextmanager
async def taken_over(client: Client, nodes: Sequence[str], identity: str) -> AsyncIterator[None]:
    """While inside, these nodes are played by the simulator of this name; afterwards by whoever plays the others."""
    resource = client.kind("v1", "Node")
    for name in nodes:
        await resource.patch(name, {"metadata": {"annotations": {PLAYED_BY: identity}}})
    try:
        yield
    finally:
        with contextlib.suppress(ApiError, TransportError):  # the server, or a node, has gone before us
            for node in await virtual_nodes(client):
                if name_of(node) in nodes and annotation(node, PLAYED_BY) == identity:
                    await resource.patch(name_of(node), {"metadata": {"annotations": {PLAYED_BY: None}}})


async def virtual_nodes(client: Client) -> list[Object]:
    return list((await client.kind("v1", "Node").list(labels=POOL)).items)
