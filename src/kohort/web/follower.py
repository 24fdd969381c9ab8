"""Keeps a scheduler's view of a cluster up to date without ever deciding: for everything that is shown of it.

It reads what the scheduler reads, through a core of its own, so that a question never touches the one that schedules.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from kohort.api import registry
from kohort.apimachinery.times import seconds
from kohort.grouping.settings import Grouping
from kohort.kube.errors import ApiError
from kohort.kube.informer import Informer
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import GroupObject, Node, Pod, composite_key
from kohort.scheduler.release import discover
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.sources import Source, served
from kohort.web.units import Owners, Thing, Unit, Units

if TYPE_CHECKING:
    from kohort.kube.client import Client

log = logging.getLogger(__name__)

_APPS: Final = tuple(("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"))
PodSeen = Callable[["Pod | None", Pod, Unit], None]  # before, now, whose
NodeSeen = Callable[["Node | None", "Node | None"], None]


def owners() -> tuple[tuple[str, str], ...]:
    """Who may stand above pods and groups. What is not served, or may not be read, is left out."""
    return (*((kind.group, kind.kind) for kind in registry.owner_kinds()), *_APPS)


class ClusterFollower:
    """`touched`, `nodes`: what has changed since somebody last took it away; `changed` is set then.

    `pods_later`: pods, of which there are ten times as many as of all else, are read when `read_pods` is called.
    """

    def __init__(self, client: Client, settings: SchedulerSettings | None = None, *, pods_later: bool = False) -> None:
        self.client = client
        self.whole = False  # everything that there was at the beginning has been read
        self._pods_later = pods_later
        self._pods: Informer[Pod]
        self._settings = settings or SchedulerSettings()
        self.changed = asyncio.Event()
        self.touched: set[Unit] = set()
        self.nodes: set[str] = set()
        self.owners = Owners()
        self.unread: list[str] = []
        self.on_pod: PodSeen = lambda *_: None
        self.on_node: NodeSeen = lambda *_: None
        self._regroup: set[str] = set()
        self._stack = AsyncExitStack()
        self.core: SchedulerCore
        self.units: Units

    async def __aenter__(self) -> ClusterFollower:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        client = self.client
        release = await discover(client.discovery)
        # Pods of every scheduler are asked about, so all names are ours.
        grouping = Grouping(sources=frozenset())  # units are made of groups that have objects
        settings = replace(self._settings, names=_EVERY, notice_after=float("inf"), grouping=grouping)
        self.core = SchedulerCore(settings, lambda: seconds(client.clock.now()), release.condition)
        self.units = Units(self.core)
        found = await served(client.discovery, release, default_spread=False, grouping=grouping)
        informers: list[Informer[Any]] = []
        for source, version in found:
            if await self._may(version, source.kind, needed=source.needed):
                informers.append(self._informer(source, version))
        types = {(one.group, one.kind): one.api_version for one in reversed(await client.discovery.all())}
        for group, kind in owners():
            version = types.get((group, kind), "")
            if version and await self._may(version, kind, needed=False):
                informers.append(self._owners(version, kind))
        self._pods = next(one for one, (source, _) in zip(informers, found, strict=False) if source.kind == "Pod")
        first = [one for one in informers if one is not self._pods]
        for informer in first:
            await self._stack.enter_async_context(informer)
        await asyncio.gather(*(informer.ready() for informer in first))
        if not self._pods_later:
            await self.read_pods()

    async def read_pods(self) -> None:
        await self._stack.enter_async_context(self._pods)
        await self._pods.ready()
        self.whole = True

    async def _may(self, version: str, kind: str, *, needed: bool) -> bool:
        try:
            async for _ in self.client.kind(version, kind).pages(page=1):
                break
        except ApiError as error:
            if needed or error.code not in {401, 403, 404}:
                raise
            self.unread.append(f"{kind}: {error.message or error}")
            return False
        return True

    def take(self) -> tuple[set[Unit], set[str]]:
        """What has changed, and from now on nothing has."""
        regroup, self._regroup = self._regroup, set()
        self.touched |= self.units.regroup(regroup)
        units, nodes = self.touched, self.nodes
        self.touched, self.nodes = set(), set()
        self.changed.clear()
        return units, nodes

    # ---- what is followed

    def _informer(self, source: Source, version: str) -> Informer[Any]:
        resource = self.client.kind(version, source.kind, source.decode)
        informer: Informer[Any] = Informer(resource, clock=self.client.clock, jitter=self.client.jitter)

        def updated(old: Any, new: Any) -> None:
            source.put(self.core, new)
            self._seen(old, new)

        def deleted(old: Any) -> None:
            source.drop(self.core, old)
            self._seen(old, None)

        informer.handle(added=lambda new: updated(None, new), updated=updated, deleted=deleted)
        return informer

    def _owners(self, version: str, kind: str) -> Informer[Thing]:
        resource = self.client.kind(version, kind, Thing)
        informer: Informer[Thing] = Informer(resource, clock=self.client.clock, jitter=self.client.jitter)
        informer.handle(added=self.owners.put, updated=lambda _, new: self.owners.put(new), deleted=self.owners.drop)
        return informer

    def _seen(self, old: Any, new: Any) -> None:
        one = new if new is not None else old
        if isinstance(one, Pod):
            self._pod(old, new)
        elif isinstance(one, Node):
            self.nodes.add(one.metadata.name)
            self.on_node(old, new)
        elif isinstance(one, GroupObject):
            meta = one.metadata
            self._regroup |= {f"{meta.namespace}/{meta.name}", composite_key(meta.namespace, meta.name)}
        self.changed.set()

    def _pod(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is not None and pod.spec.node_name:
                self.nodes.add(pod.spec.node_name)
        if new is not None:
            self.touched |= self.units.put(new)
            unit = self.units.of(new.metadata.uid)
            assert unit is not None
            self.on_pod(old, new, unit)
        elif old is not None:
            self.touched |= self.units.drop(old.metadata.uid)


class _Every(frozenset[str]):
    """Holds every name."""

    def __contains__(self, _: object) -> bool:
        return True


_EVERY: Final = _Every({"kohort"})
