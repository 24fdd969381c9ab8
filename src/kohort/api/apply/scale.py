"""The scale endpoint writes one field of its parent: owners of `replicas` there and here are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kohort.api.apply import fields as sets
from kohort.api.apply import managed
from kohort.api.apply.fields import Fields, Path
from kohort.api.apply.managed import Managed, Owned
from kohort.api.kind import Object

SCALE_VERSION: Final = "autoscaling/v1"
_IN_SCALE: Final[Path] = ("f:spec", "f:replicas")


def path_of(dotted: str) -> Path:
    """ ".spec.replicas" of a CRD, or "spec.replicas" """
    return tuple(sets.named(name) for name in dotted.removeprefix(".").split("."))


def scale_entries(parent: Object, replicas: Path) -> list[Object]:
    """managedFields of the Scale object: owners of the parent's replicas."""
    owners = managed.stored(parent)
    shown: Managed = {
        who: Owned(sets.of(_IN_SCALE), SCALE_VERSION, owned.time)
        for who, owned in owners.items()
        if sets.has(owned.fields, replicas)
    }
    return managed.encode(shown)


def parent_entries(parent: Object, scale: Object, replicas: Path, api_version: str) -> list[Object]:
    """managedFields of the parent after its Scale object was written."""
    before, there = managed.stored(parent), managed.stored(scale)
    mine: Fields = sets.of(replicas)
    after: Managed = {}
    for who, owned in before.items():
        if not sets.has(owned.fields, replicas) or there.pop(who, None) is not None:
            after[who] = owned
            continue
        left = sets.difference(owned.fields, mine)
        if left:
            after[who] = replace(owned, fields=left)
    for who, owned in there.items():
        if sets.has(owned.fields, _IN_SCALE):
            # Without a time, unless this was somebody's entry before: upstream's way to sort it first.
            after[who] = Owned(mine, api_version, before[who].time if who in before else None)
    return managed.encode(after)
