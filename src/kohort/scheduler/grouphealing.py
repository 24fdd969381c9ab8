"""What is to be done when a group has lost members: its own annotations, those of the groups above it, the profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kohort.api.scheduling.healing import Healing, HealingError, is_healing, read_healing
from kohort.scheduler.groupannotations import said
from kohort.scheduler.trees import Group, PodInfo


def group_healing(group: Group, usual: Healing) -> Healing:
    """Of a group alone. Mistakes are `healing_mistakes`' business: what is wrong is not said."""
    return replace(usual, **_own(group))


def decided_by(leaf: Group, field: str, usual: Healing) -> tuple[Group, Any]:
    """Who decides about something: the nearest group upwards that says it, which is what is moved, restarted or failed
    as a whole; where nobody says it, the root by the profile. And what it says."""
    current, seen = leaf, {leaf.key}
    while True:
        own = _own(current)
        if field in own:
            return current, own[field]
        above = current.parent
        if above is None or above.spec is None or above.key in seen:
            return current, getattr(usual, field)
        seen.add(above.key)
        current = above


def disrupted_with(leaf: Group) -> Group | None:
    """The highest group above a PodGroup, or itself, that is disrupted as a whole (disruptionMode all)."""
    found, current, seen = None, leaf, {leaf.key}
    while True:
        if current.spec is not None and current.spec.disrupt_all:
            found = current
        above = current.parent
        if above is None or above.key in seen:
            return found
        current = above
        seen.add(above.key)


def healing_mistakes(group: Group) -> Iterator[str]:
    """What is wrong with what a group and its pods say; the first who says something is believed."""
    for where, asked in said(group, is_healing):
        try:
            read_healing(asked, f"{where} metadata.annotations")
        except HealingError as error:
            yield from error.mistakes


def is_daemon(member: PodInfo) -> bool:
    """It belongs to its node: a drain leaves it alone."""
    owners = member.pod.metadata.owner_references or ()
    return any(one.controller and one.kind in {"DaemonSet", "Node"} for one in owners)


def is_owned(member: PodInfo) -> bool:
    """Somebody makes it anew when it is gone."""
    return any(one.controller for one in member.pod.metadata.owner_references or ())


def staying(leaf: Group) -> list[PodInfo]:
    """Members that have a node and are not about to leave it."""
    return [one for one in leaf.placed.values() if not one.going and not one.evicting]


def lacking(leaf: Group, coming: int = 0) -> bool:
    """Whether a group that runs is below its minimum; `coming`: members that have a place and are not there yet."""
    spec = leaf.spec
    if spec is None or spec.composite or not leaf.once:
        return False
    there = len(staying(leaf))
    return bool(there) and there + coming + leaf.done < spec.need


def _own(group: Group) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, asked in said(group, is_healing):
        try:
            found = {**read_healing(asked), **found}
        except HealingError:
            continue
    return found
