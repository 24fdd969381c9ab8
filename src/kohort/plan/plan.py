"""Submits objects to a copy of a cluster and waits, in virtual time, until nothing changes any more."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kohort.api.objects import name_of, namespace_of
from kohort.apimachinery import times
from kohort.embedded import whole
from kohort.gang.settings import DEFAULTS, SettingsByKind
from kohort.kinds.controllers import selected
from kohort.kube.clock import LoopClock
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError
from kohort.plan.loading import load
from kohort.scheduler.settings import SchedulerSettings
from kohort.server import timestamps
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.virtual import VirtualLoop

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.client import Client
    from kohort.place.profile import Profile
    from kohort.plan.clustercopy import ClusterCopy

T = TypeVar("T")
# These would act on what was copied: budgets have their numbers, nodes their taints.
_LEFT_OUT: Final = ("-disruption", "-node-lifecycle", "-taint-eviction", "-horizontal-pod-autoscaler")
_STEP: Final = 0.5
_QUIET: Final = 3.0  # virtual seconds without a change, if nothing waits
_QUIET_WAITING: Final = 30.0  # longer than the scheduler lets anything wait before it tries again
WITHIN: Final = 600.0
_PATIENCE: Final = SchedulerSettings().patience * 1.5  # of the scheduler, and its longest pause between two tries


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod of the cluster that would have to go; `owner`: whose it is, as "JobSet train"."""

    namespace: str
    name: str
    node: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """`refused`: objects that the API server would not take, and why. `found`: what `look` found at the end."""

    found: T
    seconds: float  # of virtual time until the last pod had its node
    refused: list[str] = field(default_factory=list)
    victims: list[Victim] = field(default_factory=list)


Look = Callable[["Client"], Awaitable[T]]


def plan(
    cluster: ClusterCopy,
    objects: Sequence[Object],
    look: Look[T],
    *,
    namespace: str = "default",
    profile: Profile | None = None,
    settings: SettingsByKind = DEFAULTS,
) -> Outcome[T]:
    """Submit the objects, in order, to a copy of the cluster. `look`: asked when nothing changes any more."""
    work = _planned(cluster, objects, look, namespace, profile, settings)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


async def _planned(
    cluster: ClusterCopy,
    objects: Sequence[Object],
    look: Look[T],
    namespace: str,
    profile: Profile | None,
    settings: SettingsByKind,
) -> Outcome[T]:
    async with _running(cluster, profile, settings) as client:
        known = {str(pod["metadata"].get("uid")) for pod in cluster.pods()}
        await client.clock.sleep(_waited(cluster, client.clock.now()))
        refused: list[str] = []
        spaces: dict[str, None] = {}
        for obj in objects:
            space = namespace_of(obj) or namespace
            try:
                await client.of(obj).create(obj, space)
            except (ApiError, NotServedError) as error:
                text = error.message if isinstance(error, ApiError) else str(error)
                refused.append(f"{obj.get('kind')}/{name_of(obj)}: {text}")
            spaces[space] = None
        seconds = await _settled(client, tuple(spaces), known)
        return Outcome(await look(client), seconds, refused, await _victims(client, cluster))


@asynccontextmanager
async def _running(cluster: ClusterCopy, profile: Profile | None, settings: SettingsByKind) -> AsyncIterator[Client]:
    clock = LoopClock(datetime.now(UTC))
    token = timestamps.NOW.set(clock.now)
    try:
        with tempfile.TemporaryDirectory() as folder:
            chosen = Settings(Path(folder), cluster.minor, port=0, in_memory=True, listen=False)
            async with AsyncExitStack() as stack:
                server = await stack.enter_async_context(Server(chosen, clock))
                await load(server, cluster)
                names = selected(("*", *_LEFT_OUT))
                work = whole(server, (), names, profile=profile, settings=settings, copied=True)
                yield await stack.enter_async_context(work)
    finally:
        timestamps.NOW.reset(token)


def _waited(cluster: ClusterCopy, now: datetime) -> float:
    """How long the copy waits before anything is submitted: for gangs that have waited for long, room is held."""
    waiting = [pod["metadata"] for pod in cluster.pods() if not pod["spec"].get("nodeName")]
    created = (times.parse(meta.get("creationTimestamp")) for meta in waiting)
    longest = max(((now - moment).total_seconds() for moment in created if moment is not None), default=0.0)
    return min(max(longest, 0.0), _PATIENCE)


async def _settled(client: Client, namespaces: Sequence[str], known: set[str]) -> float:
    """When the last change was, after nothing has changed for a while."""
    clock = client.clock
    began = changed = clock.monotonic()
    seen: object = None
    while clock.monotonic() - began < WITHIN:
        now = await _pods(client, namespaces, known)
        if now != seen:
            seen, changed = now, clock.monotonic()
        waits = not now or not all(node for _, node, _ in now)
        if clock.monotonic() - changed >= (_QUIET_WAITING if waits else _QUIET):
            break
        await clock.sleep(_STEP)
    return changed - began


async def _pods(client: Client, namespaces: Sequence[str], known: set[str]) -> list[tuple[str, str, bool]]:
    """New pods that have not ended: their uids, their nodes, whether they are leaving."""
    found: list[tuple[str, str, bool]] = []
    for space in namespaces:
        for pod in (await client.kind("v1", "Pod").list(space)).items:
            meta = pod["metadata"]
            if meta["uid"] not in known and (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}:
                found.append((meta["uid"], pod["spec"].get("nodeName", ""), "deletionTimestamp" in meta))
    return sorted(found)


async def _victims(client: Client, cluster: ClusterCopy) -> list[Victim]:
    """Pods that had a node and are gone, or going, though nobody had asked them to."""
    left = {
        str(pod["metadata"]["uid"])
        for pod in (await client.kind("v1", "Pod").list()).items
        if "deletionTimestamp" not in pod["metadata"]
    }
    return [
        Victim(meta.get("namespace", "default"), meta["name"], pod["spec"]["nodeName"], _owner(meta))
        for pod in cluster.pods()
        if (meta := pod["metadata"]).get("uid") not in left
        and pod["spec"].get("nodeName")
        and not meta.get("deletionTimestamp")
    ]


def _owner(meta: dict[str, Any]) -> str:
    owners = meta.get("ownerReferences") or ()
    return next((f"{one['kind']} {one['name']}" for one in owners if one.get("controller")), "")
