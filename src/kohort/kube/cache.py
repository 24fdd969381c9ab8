"""The state of a collection as the server last told it, and what each news changes. Pure: no I/O, no waiting.

News come from lists and watches, and may come twice, late, or about an object whose name was given to another since.
What comes out is, for every object, each of its states at most once and in the server's order: added, updated any
number of times, deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

    from kohort.kube.codec import Identity, Key

T = TypeVar("T")
U_contra = TypeVar("U_contra", contravariant=True)

_NOTHING: Final[dict[str, tuple[Hashable, ...]]] = {}


class Change(NamedTuple, Generic[T]):
    """Added: only `new`. Deleted: only `old`, and in `last` what the server said of it at the end. Updated: both."""

    key: Key
    old: T | None
    new: T | None
    last: T | None = None


class Sorts(Protocol[U_contra]):
    """Sorts of objects, few, told by what rarely changes. An object of one sort is nothing to many an index and to many
    a handler, whatever it says: they are not asked. Both are known by name here; without one, everything concerns."""

    def of(self, item: U_contra, /) -> Hashable: ...

    def concerns(self, name: str, sort: Hashable, /) -> bool: ...


class Cache(Generic[T]):
    """Objects by key and by the indexes one asks for. Who reads it must not change what it holds."""

    def __init__(
        self,
        identify: Callable[[T], Identity],
        indexers: Mapping[str, Callable[[T], Iterable[Hashable]]] | None = None,
        sorts: Sorts[T] | None = None,
    ) -> None:
        """`sorts`: which indexes have nothing of an object, by their names."""
        self._identify = identify
        self._objects: dict[Key, T] = {}
        self._indexers = dict(indexers or {})
        self._sorts = sorts
        self._of_sort: dict[Hashable, tuple[tuple[str, Callable[[T], Iterable[Hashable]]], ...]] = {}
        self._every = tuple(self._indexers.items())
        self._indexes: dict[str, dict[Hashable, dict[Key, T]]] = {name: {} for name in self._indexers}
        # Under which values an object stands in an index is remembered: computing it again would need the same object.
        self._values: dict[Key, dict[str, tuple[Hashable, ...]]] = {}
        self.version = ""

    # ---- reading

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def get(self, key: tuple[str, str]) -> T | None:
        """Of `(namespace, name)`."""
        return self._objects.get(key)  # type: ignore[call-overload, no-any-return]

    def keys(self) -> Collection[Key]:
        return self._objects.keys()

    def values(self) -> Collection[T]:
        return self._objects.values()

    def items(self) -> Collection[tuple[Key, T]]:
        return self._objects.items()

    def indexed(self, index: str, value: Hashable) -> list[T]:
        return list(self._indexes[index].get(value, {}).values())

    # ---- what news changes: to be committed one by one, before the next news

    def differences(self, items: Iterable[T]) -> list[Change[T]]:
        """From this state to that of a list. Who is gone goes first: what they held is free for those who come."""
        here = {identity.key: (identity, item) for item in items for identity in (self._identify(item),)}
        gone = [Change(key, old, None, old) for key, old in self._objects.items() if key not in here]
        rest: list[Change[T]] = []
        for key, (identity, item) in here.items():
            old = self._objects.get(key)
            before = self._identify(old) if old is not None else None
            if old is None or before is None:
                rest.append(Change(key, None, item))
            elif before.uid != identity.uid:
                gone.append(Change(key, old, None, old))
                rest.append(Change(key, None, item))
            elif before.version != identity.version:
                rest.append(Change(key, old, item))
        return gone + rest

    def written(self, item: T, *, late: bool = False) -> tuple[Change[T], ...]:
        """After an ADDED or MODIFIED event; nothing if it is old news. `late`: newer ones may have come before."""
        key, uid, version = self._identify(item)
        old = self._objects.get(key)
        known = self.version
        self.reached(version)
        if old is None:
            return () if not late and not_after(version, known) else (Change(key, None, item),)
        before = self._identify(old)
        if not_after(version, before.version):
            return ()
        if before.uid == uid:
            return (Change(key, old, item),)
        return (Change(key, old, None, old), Change(key, None, item))

    def deleted(self, item: T) -> tuple[Change[T], ...]:
        """After a DELETED event; nothing if it is about an earlier object of that name."""
        key, uid, version = self._identify(item)
        self.reached(version)
        old = self._objects.get(key)
        if old is None:
            return ()
        before = self._identify(old)
        if before.uid == uid:
            return (Change(key, old, None, item),)
        return () if not_after(version, before.version) else (Change(key, old, None, old),)

    def lost(self, key: Key) -> tuple[Change[T], ...]:
        """After news about an object that cannot be read any more."""
        old = self._objects.get(key)
        return () if old is None else (Change(key, old, None, old),)

    # ---- changing

    def commit(self, change: Change[T]) -> None:
        key, new = change.key, change.new
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        after: dict[str, tuple[Hashable, ...]] = {}
        if new is not None:
            for name, values_of in self._every if self._sorts is None else self._concerned(self._sorts, new):
                if values := tuple(values_of(new)):
                    after[name] = values
        before = self._values.get(key, _NOTHING)
        if before != after:
            for name, values in before.items():
                if after.get(name) != values:
                    for value in values:
                        _remove(self._indexes[name], value, key)
            if after:
                self._values[key] = after
            else:
                del self._values[key]
        for name, values in after.items():
            index = self._indexes[name]
            for value in values:
                index.setdefault(value, {})[key] = new  # type: ignore[assignment]

    def _concerned(self, sorts: Sorts[T], item: T) -> tuple[tuple[str, Callable[[T], Iterable[Hashable]]], ...]:
        sort = sorts.of(item)
        found = self._of_sort.get(sort)
        if found is None:
            chosen = (one for one in self._every if sorts.concerns(one[0], sort))
            found = self._of_sort[sort] = tuple(chosen)
        return found

    def reached(self, version: str) -> None:
        """The server's collection was at `version`; it never goes back but by `replaced`."""
        if version and not (self.version and not_after(version, self.version)):
            self.version = version

    def replaced(self, version: str) -> None:
        """A list was taken over. Its version counts even if it is lower: the server may have been restored."""
        self.version = version


def not_after(version: str, other: str) -> bool:
    """Resource versions are numbers that only grow; where a server uses something else, only equality is known."""
    if version == other:
        return bool(version)
    return version.isdecimal() and other.isdecimal() and (len(version), version) < (len(other), other)


def _remove(index: dict[Hashable, dict[Key, Any]], value: Hashable, key: Key) -> None:
    group = index.get(value)
    if group is not None:
        group.pop(key, None)
        if not group:
            del index[value]
