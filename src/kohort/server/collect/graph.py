"""Who owns whom, and what follows from it. Pure: changes go in, decisions come out.

An owner is there if an object of its kind and name, in the namespace of its dependent or in none, has its uid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kohort.server.collect.heads import FOREGROUND, ORPHAN, Meta, Reference

Key = tuple[str, str, str]  # table, namespace, name


@dataclass(frozen=True, slots=True)
class Place:
    """Where objects of a kind are."""

    table: str
    namespaced: bool


Find = Callable[[str, str], Place | None]  # group and kind -> where; None if there is no such kind


@dataclass(frozen=True, slots=True)
class Thing:
    """An object as far as ownership goes."""

    key: Key
    uid: str
    owners: tuple[Reference, ...] = ()
    going: bool = False
    finalizers: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: Key, meta: Meta) -> Thing:
        return cls(
            key, meta.uid, meta.ownerReferences or (), meta.deletionTimestamp is not None, tuple(meta.finalizers or ())
        )

    @property
    def waits(self) -> bool:
        """For its dependents to go first."""
        return self.going and FOREGROUND in self.finalizers

    @property
    def orphans(self) -> bool:
        return self.going and ORPHAN in self.finalizers


class Do(StrEnum):
    DELETE = "delete"
    LOSE_OWNERS = "lose owners"  # remove references to them
    RELEASE = "release"  # remove a finalizer
    ORPHAN = "orphan"  # dependents lose this owner, then the finalizer goes
    UNBLOCK = "unblock"  # references no longer block, then delete: a circle


@dataclass(frozen=True, slots=True)
class Step:
    do: Do
    thing: Thing
    policy: str = ""  # of a deletion
    owners: tuple[str, ...] = ()  # uids
    finalizer: str = ""
    dependents: tuple[Thing, ...] = ()


class Graph:
    def __init__(self, find: Find) -> None:
        self._find = find
        self._things: dict[Key, Thing] = {}
        self._dependents: dict[str, dict[Key, None]] = {}  # by the owner's uid

    def get(self, key: Key) -> Thing | None:
        return self._things.get(key)

    def dependents(self, uid: str) -> list[Thing]:
        return [self._things[key] for key in self._dependents.get(uid, ())]

    # ---- changes

    def put(self, thing: Thing) -> Iterator[Key]:
        """A new or changed object. Whom to look at now."""
        before = self._things.get(thing.key)
        if before is not None and before.uid != thing.uid:  # deleted and made anew between two looks
            yield from self.drop(before.key)
            before = None
        self._things[thing.key] = thing
        self._link(thing, before)
        if thing.waits and not (before is not None and before.waits):  # dependents first, while it still waits
            yield from self._dependents.get(thing.uid, ())
        if thing.owners or thing.waits or thing.orphans:
            yield thing.key
        if before is not None:  # an owner may have waited for this reference
            gone = {owner.uid for owner in before.owners} - {owner.uid for owner in thing.owners}
            unblocked = {owner.uid for owner in before.owners if owner.blocks}
            yield from self._waiting(before, gone | unblocked)

    def drop(self, key: Key) -> Iterator[Key]:
        """An object is gone. Whom to look at now."""
        thing = self._things.pop(key, None)
        if thing is None:
            return
        for owner in thing.owners:
            found = self._dependents.get(owner.uid)
            if found is not None:
                found.pop(key, None)
                if not found:
                    del self._dependents[owner.uid]
        yield from list(self._dependents.get(thing.uid, ()))
        yield from self._waiting(thing, {owner.uid for owner in thing.owners})

    def _link(self, thing: Thing, before: Thing | None) -> None:
        now = {owner.uid for owner in thing.owners}
        for owner in before.owners if before is not None else ():
            if owner.uid not in now and owner.uid in self._dependents:
                self._dependents[owner.uid].pop(thing.key, None)
                if not self._dependents[owner.uid]:
                    del self._dependents[owner.uid]
        for uid in now:
            self._dependents.setdefault(uid, {})[thing.key] = None

    def _waiting(self, thing: Thing, uids: set[str]) -> Iterator[Key]:
        for reference in thing.owners:
            owner = self._owner(thing, reference) if reference.uid in uids else None
            if isinstance(owner, Thing) and owner.waits:
                yield owner.key

    # ---- decisions

    def decide(self, key: Key) -> Step | None:
        thing = self._things.get(key)
        if thing is None:
            return None
        if thing.orphans:
            return Step(Do.ORPHAN, thing, finalizer=ORPHAN, dependents=tuple(self.dependents(thing.uid)))
        if thing.waits:
            blocked = any(
                owner.blocks for one in self.dependents(thing.uid) for owner in one.owners if owner.uid == thing.uid
            )
            return None if blocked else Step(Do.RELEASE, thing, finalizer=FOREGROUND)
        if thing.going or not thing.owners:
            return None
        return self._collected(thing)

    def _collected(self, thing: Thing) -> Step | None:
        solid, gone, waiting = 0, list[str](), list[str]()
        for reference in thing.owners:
            owner = self._owner(thing, reference)
            if owner is None:
                gone.append(reference.uid)
            elif isinstance(owner, Thing) and owner.waits:
                waiting.append(reference.uid)
            else:
                solid += 1
        if solid:
            return Step(Do.LOSE_OWNERS, thing, owners=(*gone, *waiting)) if gone or waiting else None
        below = self.dependents(thing.uid)
        if waiting and below:
            circle = any(one.waits for one in below)
            return Step(Do.UNBLOCK if circle else Do.DELETE, thing, "Foreground")
        policy = "Background"
        if ORPHAN in thing.finalizers or FOREGROUND in thing.finalizers:  # what somebody already chose
            policy = "Orphan" if ORPHAN in thing.finalizers else "Foreground"
        return Step(Do.DELETE, thing, policy)

    def _owner(self, thing: Thing, reference: Reference) -> Thing | bool | None:
        """The owner; None if it is not there; True if nobody can tell."""
        place = self._find(reference.group, reference.kind)
        if place is None:  # a kind that is not served (yet)
            return True
        namespace = thing.key[1]
        if place.namespaced and not namespace:  # what is outside of namespaces cannot belong to something inside
            return True
        found = self._things.get((place.table, namespace if place.namespaced else "", reference.name))
        return found if found is not None and found.uid == reference.uid else None
