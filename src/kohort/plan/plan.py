"""Submits objects to a copy of a cluster and waits, in virtual time, until nothing changes any more."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from kohort.api.objects import name_of, namespace_of
from kohort.apimachinery import times
from kohort.embedded import whole
from kohort.gang.settings import DEFAULTS, SettingsByKind
from kohort.kinds.controllers import selected
from kohort.kube.clock import LoopClock
from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError
from kohort.place.profile import Profile
from kohort.plan.existing import merged
from kohort.plan.loading import load
from kohort.server import timestamps
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.virtual import VirtualLoop

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.client import Client
    from kohort.plan.clustercopy import ClusterCopy

T = TypeVar("T")
# These would act on what was copied: budgets have their numbers, nodes their taints.
_LEFT_OUT: Final = ("-disruption", "-node-lifecycle", "-taint-eviction", "-horizontal-pod-autoscaler")
_STEP: Final = 0.5
_QUIET: Final = 3.0  # virtual seconds without a change, if nothing waits
_QUIET_WAITING: Final = 30.0  # longer than the scheduler lets anything wait before it tries again
WITHIN: Final = 600.0
_PATIENCE: Final = 1.5  # times that of the scheduler: its longest pause between two tries comes after it


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would have to go, of the cluster or of an earlier file; `owner`: whose it is, as "JobSet train"."""

    namespace: str
    name: str
    node: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """`refused`: objects that the API server would not take, and why. `found`: what `look` found at the end."""

    found: T
    refused: list[str] = field(default_factory=list)
    victims: list[Victim] = field(default_factory=list)


Look = Callable[["Client"], Awaitable[T]]


def plan(
    cluster: ClusterCopy,
    files: Sequence[Sequence[Object]],
    look: Look[T],
    *,
    namespace: str = "default",
    profile: Profile | None = None,
    settings: SettingsByKind = DEFAULTS,
) -> Outcome[T]:
    """Submit files of objects to a copy of the cluster, each when nothing changes any more after the one before it.
    `look`: asked at the end."""
    work = _planned(cluster, files, look, namespace, profile, settings)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


async def _planned(
    cluster: ClusterCopy,
    files: Sequence[Sequence[Object]],
    look: Look[T],
    namespace: str,
    profile: Profile | None,
    settings: SettingsByKind,
) -> Outcome[T]:
    async with _running(cluster, profile, settings) as client:
        known = {str(pod["metadata"].get("uid")) for pod in cluster.pods()}
        await client.clock.sleep(_waited(cluster, client.clock.now(), (profile or Profile()).patience))
        refused: list[str] = []
        spaces: dict[str, None] = {}
        placed = {str(pod["metadata"]["uid"]): _victim(pod) for pod in cluster.pods() if _stays(pod)}
        for number, objects in enumerate(files, 1):
            for obj in objects:
                space = namespace_of(obj) or namespace
                refused += await _submit(client, obj, space)
                spaces[space] = None
            await _settled(client, tuple(spaces), known, last=number == len(files))
            placed = await _placed(client, tuple(spaces)) | placed
        return Outcome(await look(client), refused, await _victims(client, placed))


async def _submit(client: Client, obj: Object, namespace: str) -> list[str]:
    """Why it is not taken. What is in the cluster already (a Namespace, a class) is updated, as kubectl apply would."""
    try:
        try:
            await client.of(obj).create(obj, namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            there = await client.of(obj).get(name_of(obj), namespace)
            await client.of(obj).update(merged(there, obj), namespace)
    except (ApiError, NotServedError) as error:
        text = error.message if isinstance(error, ApiError) else str(error)
        return [f"{obj.get('kind')}/{name_of(obj)}: {text}"]
    return []


@asynccontextmanager
async def _running(cluster: ClusterCopy, profile: Profile | None, settings: SettingsByKind) -> AsyncIterator[Client]:
    clock = LoopClock(cluster.taken)
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


def _waited(cluster: ClusterCopy, now: datetime, patience: float) -> float:
    """How long the copy waits before anything is submitted: for gangs that have waited for long, room is held."""
    waiting = [pod["metadata"] for pod in cluster.pods() if not pod["spec"].get("nodeName")]
    created = (times.parse(meta.get("creationTimestamp")) for meta in waiting)
    longest = max(((now - moment).total_seconds() for moment in created if moment is not None), default=0.0)
    return min(max(longest, 0.0), _PATIENCE * patience)


async def _settled(client: Client, namespaces: Sequence[str], known: set[str], *, last: bool) -> None:
    """Nothing has changed for a while. Before the last file only until everything new has been decided about: waiting
    makes gangs impatient that have waited less in life."""
    clock = client.clock
    began = changed = clock.monotonic()
    seen: object = None
    while clock.monotonic() - began < WITHIN:
        now = await _pods(client, namespaces, known)
        if now != seen:
            seen, changed = now, clock.monotonic()
        undecided = any(not one.node and (one.nominated or not one.told) for one in now)
        waits = not now or not all(one.node for one in now)
        if clock.monotonic() - changed >= (_QUIET_WAITING if undecided or (waits and last) else _QUIET):
            break
        await clock.sleep(_STEP)


class _Seen(NamedTuple):
    """Of a pod: `told`: the scheduler has said why it waits; `nominated`: others go for it."""

    uid: str
    node: str
    leaves: bool
    told: bool
    nominated: str


async def _pods(client: Client, namespaces: Sequence[str], known: set[str]) -> list[_Seen]:
    """New ones that have not ended."""
    found: list[_Seen] = []
    for space in namespaces:
        for pod in (await client.kind("v1", "Pod").list(space)).items:
            meta, status = pod["metadata"], pod.get("status") or {}
            if meta["uid"] not in known and status.get("phase") not in {"Succeeded", "Failed"}:
                told = any(one["type"] == "PodScheduled" for one in status.get("conditions") or ())
                node, nominated = pod["spec"].get("nodeName", ""), status.get("nominatedNodeName", "")
                found.append(_Seen(meta["uid"], node, "deletionTimestamp" in meta, told, nominated))
    return sorted(found)


async def _placed(client: Client, namespaces: Sequence[str]) -> dict[str, Victim]:
    """Who has a node now, and would lose it."""
    pods = [pod for space in namespaces for pod in (await client.kind("v1", "Pod").list(space)).items]
    return {str(pod["metadata"]["uid"]): _victim(pod) for pod in pods if _stays(pod)}


async def _victims(client: Client, placed: Mapping[str, Victim]) -> list[Victim]:
    """Whom the scheduler preempted. Others may go with them, if their controllers want it so."""
    told = (await client.kind("v1", "Event").list(fields="reason=Preempted")).items
    gone = {str(one["involvedObject"].get("uid")) for one in told}
    return [victim for uid, victim in placed.items() if uid in gone]


def _stays(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp")


def _victim(pod: Object) -> Victim:
    meta = pod["metadata"]
    return Victim(meta.get("namespace", "default"), meta["name"], pod["spec"]["nodeName"], _owner(meta))


def _owner(meta: dict[str, Any]) -> str:
    owners = meta.get("ownerReferences") or ()
    return next((f"{one['kind']} {one['name']}" for one in owners if one.get("controller")), "")
