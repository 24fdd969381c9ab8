"""Who owns whom, and what follows from it. Pure: changes go in, decisions come out.

An owner is there if an object of its kind and name, in the namespace of its dependent or in none, has its uid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kohort.server.controllers.partial_objects import FOREGROUND, ORPHAN, OwnerReference, PartialMetadata

Key = tuple[str, str, str]  # table, namespace, name


@dataclass(frozen=True, slots=True)
class ResourceScope:
    """Where objects of a kind are."""

    table: str
    namespaced: bool


Find = Callable[[str, str], ResourceScope | None]  # group and kind -> where; None if there is no such kind


@dataclass(frozen=True, slots=True)
class Node:
    """An object as far as ownership goes."""

    key: Key
    uid: str
    owners: tuple[OwnerReference, ...] = ()
    deleting: bool = False
    finalizers: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: Key, meta: PartialMetadata) -> Node:
        return cls(
            key, meta.uid, meta.ownerReferences or (), meta.deletionTimestamp is not None, tuple(meta.finalizers or ())
        )

    @property
    def deleting_dependents(self) -> bool:
        """For its dependents to go first."""
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def deleting_orphans(self) -> bool:
        return self.deleting and ORPHAN in self.finalizers


class Action(StrEnum):
    DELETE = "delete"
    LOSE_OWNERS = "lose owners"  # remove references to them
    RELEASE = "release"  # remove a finalizer
    ORPHAN = "orphan"  # dependents lose this owner, then the finalizer goes
    UNBLOCK = "unblock"  # references no longer block, then delete: a circle


@dataclass(frozen=True, slots=True)
class Decision:
    action: Action
    node: Node
    policy: str = ""  # of a deletion
    owners: tuple[str, ...] = ()  # uids
    finalizer: str = ""
    dependents: tuple[Node, ...] = ()


class OwnerGraph:
    def __init__(self, find: Find) -> None:
        self._find = find
        self._things: dict[Key, Node] = {}
        self._dependents: dict[str, dict[Key, None]] = {}  # by the owner's uid
        self._foreground: set[str] = set()  # uids of those that wait for their dependents to go

    def get(self, key: Key) -> Node | None:
        return self._things.get(key)

    def dependents(self, uid: str) -> list[Node]:
        return [self._things[key] for key in self._dependents.get(uid, ())]

    # ---- changes

    def is_kept(self, key: Key, meta: PartialMetadata) -> bool:
        """Whether an object is known with just these owners, they are there, and so nothing follows from the change."""
        known = self._things.get(key)
        return (
            known is not None
            and meta.deletionTimestamp is None
            and not known.deleting
            and known.uid == meta.uid
            and known.owners == (meta.ownerReferences or ())
            and known.finalizers == (meta.finalizers or ())
            and self._is_kept(known)
        )

    def put(self, node: Node) -> Iterator[Key]:
        """A new or changed object. Whom to look at now."""
        before = self._things.get(node.key)
        if before == node and not node.deleting and self._is_kept(node):
            return  # the usual change: of a status
        if before is not None and before.uid != node.uid:  # deleted and made anew between two looks
            yield from self.drop(before.key)
            before = None
        self._things[node.key] = node
        if node.deleting_dependents:
            self._foreground.add(node.uid)
        else:
            self._foreground.discard(node.uid)
        self._link(node, before)
        if node.deleting_dependents and not (
            before is not None and before.deleting_dependents
        ):  # dependents first, while it still waits
            yield from self._dependents.get(node.uid, ())
        if node.owners or node.deleting_dependents or node.deleting_orphans:
            yield node.key
        if before is not None:  # an owner may have waited for this reference
            gone = {owner.uid for owner in before.owners} - {owner.uid for owner in node.owners}
            unblocked = {owner.uid for owner in before.owners if owner.blocks}
            yield from self._waiting(before, gone | unblocked)

    def drop(self, key: Key) -> Iterator[Key]:
        """An object is gone. Whom to look at now."""
        node = self._things.pop(key, None)
        if node is None:
            return
        self._foreground.discard(node.uid)
        for owner in node.owners:
            found = self._dependents.get(owner.uid)
            if found is not None:
                found.pop(key, None)
                if not found:
                    del self._dependents[owner.uid]
        yield from list(self._dependents.get(node.uid, ()))
        yield from self._waiting(node, {owner.uid for owner in node.owners})

    def _link(self, node: Node, before: Node | None) -> None:
        now = {owner.uid for owner in node.owners}
        for owner in before.owners if before is not None else ():
            if owner.uid not in now and owner.uid in self._dependents:
                self._dependents[owner.uid].pop(node.key, None)
                if not self._dependents[owner.uid]:
                    del self._dependents[owner.uid]
        for uid in now:
            self._dependents.setdefault(uid, {})[node.key] = None

    def _is_kept(self, node: Node) -> bool:
        """Whether all whom it belongs to are there, and stay."""
        for reference in node.owners:
            owner = self._owner(node, reference)
            if not isinstance(owner, Node) or owner.deleting_dependents:
                return False
        return True

    def _waiting(self, node: Node, uids: set[str]) -> Iterator[Key]:
        wanted = uids & self._foreground
        for reference in node.owners if wanted else ():
            owner = self._owner(node, reference) if reference.uid in wanted else None
            if isinstance(owner, Node) and owner.deleting_dependents:
                yield owner.key

    # ---- decisions

    def decide(self, key: Key) -> Decision | None:
        node = self._things.get(key)
        if node is None:
            return None
        if node.deleting_orphans:
            return Decision(Action.ORPHAN, node, finalizer=ORPHAN, dependents=tuple(self.dependents(node.uid)))
        if node.deleting_dependents:
            blocked = any(
                owner.blocks for one in self.dependents(node.uid) for owner in one.owners if owner.uid == node.uid
            )
            return None if blocked else Decision(Action.RELEASE, node, finalizer=FOREGROUND)
        if node.deleting or not node.owners:
            return None
        return self._collected(node)

    def _collected(self, node: Node) -> Decision | None:
        solid, gone, waiting = 0, list[str](), list[str]()
        for reference in node.owners:
            owner = self._owner(node, reference)
            if owner is None:
                gone.append(reference.uid)
            elif isinstance(owner, Node) and owner.deleting_dependents:
                waiting.append(reference.uid)
            else:
                solid += 1
        if solid:
            return Decision(Action.LOSE_OWNERS, node, owners=(*gone, *waiting)) if gone or waiting else None
        below = self.dependents(node.uid)
        if waiting and below:
            circle = any(one.deleting_dependents for one in below)
            return Decision(Action.UNBLOCK if circle else Action.DELETE, node, "Foreground")
        policy = "Background"
        if ORPHAN in node.finalizers or FOREGROUND in node.finalizers:  # what somebody already chose
            policy = "Orphan" if ORPHAN in node.finalizers else "Foreground"
        return Decision(Action.DELETE, node, policy)

    def _owner(self, node: Node, reference: OwnerReference) -> Node | bool | None:
        """The owner; None if it is not there; True if nobody can tell."""
        place = self._find(reference.group, reference.kind)
        if place is None:  # a kind that is not served (yet)
            return True
        namespace = node.key[1]
        if place.namespaced and not namespace:  # what is outside of namespaces cannot belong to something inside
            return True
        found = self._things.get((place.table, namespace if place.namespaced else "", reference.name))
        return found if found is not None and found.uid == reference.uid else None
