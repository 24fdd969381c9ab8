"""A single look at a cluster: everything the scheduler reads, listed once, for questions asked from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kohort.kube.codec import identify
from kohort.kube.errors import ApiError
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.release import ServedRelease, discover
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.snapshot import ObjectStore
from kohort.scheduler.sources import Source, served

if TYPE_CHECKING:
    from kohort.kube.client import Client


@dataclass(slots=True)
class ClusterList:
    """What was found; `unread`: kinds that this user may not list, and what the server said."""

    core: SchedulerCore
    objects: ObjectStore
    release: ServedRelease
    unread: list[str] = field(default_factory=list)


async def list_cluster(
    client: Client, settings: SchedulerSettings | None = None, stamp: Callable[[], str] = lambda: ""
) -> ClusterList:
    """Pods of every scheduler are looked at: whoever is to place them, the question is the same."""
    release = await discover(client.discovery)
    chosen = settings or SchedulerSettings()
    # What spreads pods softly keeps none of them waiting.
    default_spread = any(one["whenUnsatisfiable"] == "DoNotSchedule" for one in chosen.profile.default_spread)
    found = await served(client.discovery, release, default_spread=default_spread)
    lists = await asyncio.gather(*(_list(client, source, version) for source, version in found))
    pods = [one for (source, _), listed in zip(found, lists, strict=True) if source.kind == "Pod" for one in listed[0]]
    names = frozenset(pod.spec.scheduler_name for pod in pods) | chosen.names
    made = ClusterList(SchedulerCore(replace(chosen, names=names), stamp, release.condition), ObjectStore(), release)
    for (source, _), (items, problem) in zip(found, lists, strict=True):
        if problem:
            made.unread.append(problem)
        for one in items:
            made.objects.put(source.name, str(identify(one).key), one)
            source.put(made.core, one)
    made.core.sync(0.0)
    return made


async def _list(client: Client, source: Source, version: str) -> tuple[list[Any], str]:
    try:
        return (await client.kind(version, source.kind, source.decode).list()).items, ""
    except ApiError as error:
        if source.needed or error.code not in {401, 403, 404}:
            raise
        return [], f"{source.name}: {error.message or error}"
