"""What a group asks of the network: its own field, its annotations, its pods' annotations, as labels of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kohort.api.scheduling.topology import (
    NOTHING,
    TIER,
    Slice,
    TopologyError,
    TopologyRequest,
    is_topology,
    read_topology,
)
from kohort.place.engine import Engine
from kohort.place.levels import HOSTNAME, carried, ordered, resolve
from kohort.place.networkstanding import PREFERRED, REQUIRED, Member, Standing, standing
from kohort.scheduler.groupannotations import said as said_by
from kohort.scheduler.trees import Group, PodInfo

if TYPE_CHECKING:
    from kohort.scheduler.cache import SchedulerCache


@dataclass(frozen=True, slots=True)
class GroupTopology:
    """Label keys. `required`: one domain of it; of several levels, their keys with commas between them."""

    required: str | None = None
    preferred: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()  # their levels are label keys, too


_ANYWHERE: Final = GroupTopology()  # what most ask for


def group_topology(engine: Engine, group: Group) -> GroupTopology:
    """What a group asks for. Mistakes are `topology_mistakes`' business: what is wrong asks for nothing here."""
    spec = group.spec
    if spec is not None and spec.topology is None and not spec.annotations and not group.annotated:
        return _ANYWHERE
    asked = next((request for request in _requests(group) if request), NOTHING)
    own: list[str] = []
    if spec is not None and spec.topology is not None:  # a field is a label key; other schedulers write names, too
        own.append(_key(engine, spec.topology) if spec.rule else spec.topology)
    if not asked:
        return GroupTopology(next(iter(own), None))
    required = [*own, *(_key(engine, level) for level in asked.required)]
    levels = engine.profile.topology_levels
    return GroupTopology(
        ",".join(ordered(engine.state, levels, required)) or None,
        tuple(ordered(engine.state, levels, (_key(engine, level) for level in asked.preferred))),
        tuple(Slice(one.size, _named(engine, one.required), _named(engine, one.preferred)) for one in asked.slices),
    )


def widened(asked: GroupTopology) -> GroupTopology:
    """The same with what is required only preferred: for members that come back to a domain that is full."""
    if asked.required is None:
        return asked
    return replace(asked, required=None, preferred=(*asked.required.split(","), *asked.preferred))


def _named(engine: Engine, level: str) -> str:
    return _key(engine, level) if level else ""


def _key(engine: Engine, level: str) -> str:
    levels = engine.profile.topology_levels
    if not level.startswith(TIER):
        return resolve(engine.state, levels, level)
    network = [key for key in carried(engine.state, levels) if key != HOSTNAME]
    return network[-min(int(level.removeprefix(TIER)), len(network))] if network else HOSTNAME


def group_standing(cache: SchedulerCache, leaf: Group) -> Standing:
    """Where the pods of a PodGroup are in the network, and what was asked for. Nothing, where there are neither ranks
    nor levels that are preferred: one that is required is kept, or the group would not run."""
    members = [found for one in leaf.placed.values() if (found := _member(cache, one)) is not None]
    modes = _modes(cache.engine, leaf)
    if not members or not (PREFERRED in modes.values() or any(one.rank is not None for one in members)):
        return Standing()
    return standing(cache.engine, modes, members)


def _modes(engine: Engine, leaf: Group) -> dict[str, str]:
    """What is asked of which label, by the group and those above it."""
    found: dict[str, str] = {}
    current: Group | None = leaf
    seen: set[str] = set()
    while current is not None and current.key not in seen:
        seen.add(current.key)
        asked = group_topology(engine, current)
        found = {**dict.fromkeys(asked.preferred, PREFERRED), **found}
        found = {**dict.fromkeys((one.preferred for one in asked.slices if one.preferred), PREFERRED), **found}
        required = [*(asked.required or "").split(","), *(one.required for one in asked.slices)]
        found = {**dict.fromkeys(filter(None, required), REQUIRED), **found}
        current = current.parent
    return found


def _member(cache: SchedulerCache, member: PodInfo) -> Member | None:
    row = cache.state.row(member.node)
    if row is None:
        return None
    body = cache.as_json(member)
    body["spec"]["nodeName"] = ""  # as it was before it had one
    return Member(row, member.pod.rank, cache.state.equivalence_class(body))


def topology_mistakes(group: Group) -> Iterator[str]:
    """What is wrong with what a group and its pods ask for; they must not contradict each other."""
    found: dict[TopologyRequest, str] = {}
    for where, said in _said(group):
        path = f"{where} metadata.annotations"
        try:
            request = read_topology(said, path)
        except TopologyError as error:
            yield from error.mistakes
        else:
            if request:
                found.setdefault(request, where)
    if len(found) > 1:
        first, second = list(found.values())[:2]
        yield f"annotations of {second} ask for another topology than those of {first}; the same is wanted"


def _requests(group: Group) -> Iterator[TopologyRequest]:
    for _, said in _said(group):
        try:
            yield read_topology(said)
        except TopologyError:
            continue


def _said(group: Group) -> Iterator[tuple[str, Mapping[str, str]]]:
    return said_by(group, is_topology)
