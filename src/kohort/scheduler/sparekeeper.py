"""Makes the spare pods that groups ask for, takes away what is too many, and makes the pods that take their places.

The group runs before its spares are made: only then is it known in which domain. A look costs a little for each group
that asks for spares, and nothing for others. What the server refuses (a quota, say) is told on the group, and asked for
again later. A Job controller waits ten seconds and more before it makes a pod anew that was lost: where a spare stands
by, its successor is made here, as the Job would make it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.kube.errors import ApiError, KubeError
from kohort.scheduler.grouphealing import group_healing, staying
from kohort.scheduler.spares import spare_body, spare_name, successor_body
from kohort.scheduler.status import SchedulerEvent, Target, Writes

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.kube.clock import Clock
    from kohort.scheduler.cache import SchedulerCache
    from kohort.scheduler.release import ServedRelease
    from kohort.scheduler.trees import Group, PodInfo

log = logging.getLogger(__name__)

_LOOK: Final = 0.5  # seconds between two looks
_AGAIN: Final = 30.0  # seconds until a spare that was refused is asked for again


@dataclass(frozen=True, slots=True)
class MissingSpare:
    """`like`: a member that it takes as much room as."""

    name: str
    group: str
    like: PodInfo


def missing(cache: SchedulerCache) -> Iterator[MissingSpare]:
    """Spares that groups ask for and that are not there. One that is about to go is no spare any more."""
    for key in list(cache.trees.spared):
        group = cache.trees.get(key)
        if group is None or group.spec is None or not group.once:
            continue
        members = staying(group)
        there = [one for one in cache.spares.of(key) if not one.evicting and not _goes(one)]
        names = {one.pod.metadata.name for one in cache.spares.of(key)}
        lack = _wanted(cache, group) - len(there) if members else 0
        number = 0
        while lack > 0:
            name = spare_name(key, number)
            if name not in names:
                yield MissingSpare(name, key, members[0])
                lack -= 1
            number += 1


def surplus(cache: SchedulerCache) -> Iterator[PodInfo]:
    """Spares of groups that have ended, or that ask for fewer now; those without a node first."""
    for key in cache.spares.groups():
        group = cache.trees.get(key)
        alive = group is not None and group.spec is not None and bool(group.placed or group.pending)
        wanted = _wanted(cache, group) if alive and group is not None else 0
        there = sorted((one for one in cache.spares.of(key) if not _goes(one)), key=lambda one: not one.node)
        yield from there[wanted:]


def orphans(cache: SchedulerCache) -> Iterator[PodInfo]:
    """Members of Jobs that are being deleted on a node that is not heard of, though a spare stands by, and that nobody
    has replaced."""
    for key in cache.spares.groups() if cache.spares.lost else ():
        group = cache.trees.get(key)
        if group is None or not cache.spares.ready(key):
            continue
        others = (*staying(group), *(one for one in group.pending.values() if not one.leaving))
        taken = {one.pod.rank for one in others}
        for one in group.placed.values():
            rank = one.pod.rank
            if one.going and one.node in cache.spares.lost and one.pod.job and rank is not None and rank not in taken:
                yield one


def _wanted(cache: SchedulerCache, group: Group) -> int:
    return group_healing(group, cache.settings.profile.healing).spares


def _goes(spare: PodInfo) -> bool:
    return spare.pod.metadata.deletion_timestamp is not None


class SpareKeeper:
    """Beside one scheduler, for one term."""

    def __init__(
        self,
        cache: SchedulerCache,
        client: Client,
        clock: Clock,
        release: ServedRelease,
        report: Callable[[Writes], None],
        is_leader: Callable[[], bool],
    ) -> None:
        self._cache, self._clock, self._release = cache, clock, release
        self._pods = client.kind("v1", "Pod")
        self._report, self._is_leader = report, is_leader
        self._jobs = client.kind("batch/v1", "Job")
        self._later: dict[str, float] = {}  # name of a spare, or of a member's successor -> not before

    async def run(self) -> None:
        while True:
            await self._clock.sleep(_LOOK)
            if self._is_leader() and (self._cache.trees.spared or self._cache.spares):
                await self._look()

    async def _look(self) -> None:
        now = self._clock.monotonic()
        self._later = {name: until for name, until in self._later.items() if until > now}
        for one in [spare for spare in missing(self._cache) if spare.name not in self._later]:
            try:
                await self._make(one)
            except KubeError as error:
                self._refused(one, error)
        for member in [one for one in orphans(self._cache) if one.uid not in self._later]:
            self._later[member.uid] = now + _AGAIN
            try:
                await self._succeed(member)
            except KubeError as error:
                log.warning("successor of %s: %s", member.pod.key, error)
        for spare in list(surplus(self._cache)):
            try:
                await self._pods.delete(spare.pod.metadata.name, spare.pod.metadata.namespace, uid=spare.uid)
            except KubeError as error:
                log.warning("spare %s: %s", spare.pod.key, error)

    async def _make(self, spare: MissingSpare) -> None:
        """Named by its group and a number: whoever asks twice gets one."""
        group = self._cache.trees.get(spare.group)
        if group is None or group.spec is None:
            return
        owner = Target.group(group.spec)
        version = owner.api_version or self._release.versions.get(owner.kind, "")
        if not version:
            return  # 1.35: no object stands for a group
        reference = {"apiVersion": version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
        meta = spare.like.pod.metadata
        member = await self._pods.get(meta.name, meta.namespace)
        body = spare_body(member, spare.name, spare.group, reference)
        try:
            await self._pods.create(body, meta.namespace)
        except ApiError as error:
            if not error.conflict:
                raise
            self._later[spare.name] = self._clock.monotonic() + 1.0

    async def _succeed(self, member: PodInfo) -> None:
        """The pod that a Job would make for the same index, sooner; not where the Job is to wait until the old one has
        ended for certain."""
        meta = member.pod.metadata
        owner = next(one for one in meta.owner_references or () if one.controller)
        job = await self._jobs.get(owner.name, meta.namespace)
        spec = job["spec"]
        if spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") or spec.get("suspend"):
            return
        lost = await self._pods.get(meta.name, meta.namespace)
        try:
            await self._pods.create(successor_body(lost), meta.namespace)
        except ApiError as error:
            if not error.conflict:
                raise

    def _refused(self, spare: MissingSpare, error: KubeError) -> None:
        log.warning("spare %s: %s", spare.name, error)
        self._later[spare.name] = self._clock.monotonic() + _AGAIN
        group = self._cache.trees.get(spare.group)
        if group is not None and group.spec is not None:
            text = f"spare pod {spare.name} is not made: {error}"
            event = SchedulerEvent(Target.group(group.spec), "Warning", "NoSpare", "Healing", text)
            self._report(Writes(events=[event]))
