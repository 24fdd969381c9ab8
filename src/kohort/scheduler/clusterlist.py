"""A single look at a cluster: everything the scheduler reads, listed once, for questions asked from outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kohort.grouping.api import GROUP, KIND
from kohort.grouping.settings import Grouping, extended
from kohort.kube.codec import identify
from kohort.kube.errors import ApiError
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.published import published
from kohort.scheduler.release import ServedRelease, discover
from kohort.scheduler.settings import SchedulerSettings, told_grouping
from kohort.scheduler.snapshot import ObjectStore
from kohort.scheduler.sources import Source, read_kinds, served

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
    client: Client,
    settings: SchedulerSettings | None = None,
    stamp: Callable[[], str] = lambda: "",
    *,
    grouped: bool = False,
) -> ClusterList:
    """Pods of every scheduler are looked at: whoever is to place them, the question is the same. `grouped`: rules that
    make groups look at all of them, too."""
    release = await discover(client.discovery)
    chosen = settings or SchedulerSettings(grouping=await published(client) or Grouping())
    # What spreads pods softly keeps none of them waiting.
    default_spread = any(one["whenUnsatisfiable"] == "DoNotSchedule" for one in chosen.profile.default_spread)
    rules, _ = extended(chosen.grouping, await _rules(client))  # whose kinds are listed, too
    found = await served(client.discovery, release, default_spread=default_spread, grouping=rules)
    lists = await asyncio.gather(*(_list(client, source, version) for source, version in found))
    pods = [one for (source, _), listed in zip(found, lists, strict=True) if source.kind == "Pod" for one in listed[0]]
    names = frozenset(pod.spec.scheduler_name for pod in pods) | chosen.names
    grouping = replace(chosen.grouping, schedulers=names) if grouped else told_grouping(chosen)
    every = replace(chosen, names=names, grouping=grouping)
    made = ClusterList(SchedulerCore(every, stamp, release.condition), ObjectStore(), release)
    read = (source for (source, _), (_, problem) in zip(found, lists, strict=True) if not problem)
    made.core.cache.companion.readable(read_kinds(read, rules))
    for (source, _), (items, problem) in zip(found, lists, strict=True):
        if problem:
            made.unread.append(problem)
        for one in items:
            made.objects.put(source.name, str(identify(one).key), one)
            source.put(made.core, one)
    made.core.sync(0.0)
    return made


async def _rules(client: Client) -> list[Any]:
    """GroupingRules; none where there are none, or where they may not be read."""
    types = await client.discovery.all()
    version = next((one.api_version for one in types if (one.group, one.kind) == (GROUP, KIND)), "")
    try:
        return (await client.kind(version, KIND).list()).items if version else []
    except ApiError as error:
        if error.code not in {401, 403, 404}:
            raise
        return []


async def _list(client: Client, source: Source, version: str) -> tuple[list[Any], str]:
    try:
        return (await client.kind(version, source.kind, source.decode).list()).items, ""
    except ApiError as error:
        if source.needed or error.code not in {401, 403, 404}:
            raise
        return [], f"{source.name}: {error.message or error}"
