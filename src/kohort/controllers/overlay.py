"""Read your writes: what was just written is put over the informer cache until the watch has brought it.

This takes the place of counting what is expected: the state that a reconcile sees is what the informers know, with the
answers to our own writes put over it where they are newer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final

from kohort.api.kind import Object
from kohort.controllers.controller import Key, key_of

FORGET: Final = 300.0  # seconds after which the watch is believed, whatever was answered


@dataclass(frozen=True, slots=True)
class _Written:
    """`object` None: it is gone."""

    object: Object | None
    uid: str
    version: int
    at: float


Indexer = Callable[[Object], Iterable[Hashable]]


class WriteOverlay:
    """The writes to one kind. `seen` is told of every change that the informer knows.

    Writes of one namespace may wait for the watch by the thousand; who reads another must not look at all of them. So
    they are indexed, too, by every index that was asked for.
    """

    def __init__(self) -> None:
        self._written: dict[Key, _Written] = {}
        self._indexes: dict[Indexer, dict[Hashable, set[Key]]] = {}

    def __len__(self) -> int:
        """Writes that the watch has not brought."""
        return len(self._written)

    def _put(self, key: Key, written: _Written) -> None:
        self._drop(key)
        self.forget(written.at)
        self._written[key] = written
        for indexer, index in self._indexes.items():
            _add(indexer, index, key, written)

    def forget(self, now: float, most: int = 4) -> list[Object | None]:
        """What the watch should have brought long ago, so many of them. It does not bring what was gone before it was
        read. -> what is forgotten: it may be large."""
        found: list[Object | None] = []
        while self._written and len(found) < most:
            key, oldest = next(iter(self._written.items()))
            if now - oldest.at <= FORGET:
                break
            self._drop(key)
            found.append(oldest.object)
        return found

    def _drop(self, key: Key) -> None:
        known = self._written.pop(key, None)
        if known is None or known.object is None:
            return
        for indexer, index in self._indexes.items():
            for value in indexer(known.object):
                keys = index.get(value)
                if keys is not None:
                    keys.discard(key)
                    if not keys:
                        del index[value]

    def _index(self, indexer: Indexer) -> dict[Hashable, set[Key]]:
        found = self._indexes.get(indexer)
        if found is None:
            found = {}
            for key, written in list(self._written.items()):
                _add(indexer, found, key, written)
            self._indexes[indexer] = found
        return found

    def wrote(self, obj: Object, reached: str, now: float) -> None:
        """The answer to a create, update or patch. `reached`: the version up to which the informer knows everything."""
        version = _number(obj["metadata"].get("resourceVersion"))
        if version <= _number(reached):
            return
        key = key_of(obj)
        known = self._written.get(key)
        if known is None or known.version < version:
            self._put(key, _Written(obj, str(obj["metadata"].get("uid") or ""), version, now))

    def deleted(self, key: Key, uid: str, answer: Object | None, reached: str, now: float) -> None:
        """The answer to a delete: the object on its way out, or something that says that it is out."""
        meta = (answer or {}).get("metadata") or {}
        same = bool(uid) and meta.get("uid") == uid
        if answer is not None and same and (meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")):
            self.wrote(answer, reached, now)
            return
        version = _number(meta.get("resourceVersion")) if same else 0
        self._put(key, _Written(None, uid, version, now))

    def seen(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is None:
            return
        key = key_of(obj)
        known = self._written.get(key)
        if known is None:
            return
        version = _number(obj["metadata"].get("resourceVersion"))
        if known.uid != obj["metadata"].get("uid"):
            if version > known.version > 0:
                self._drop(key)
        elif new is None or (known.version and version >= known.version):
            self._drop(key)

    def get(self, key: Key, found: Object | None, now: float) -> Object | None:
        known = self._current(key, now)
        if known is None:
            return found
        if known.object is None:
            return None if found is None or found["metadata"].get("uid") == known.uid else found
        return known.object

    def over(self, found: list[Object], indexer: Indexer, value: Hashable, now: float) -> list[Object]:
        """What the informer has under an index, as it is after our writes."""
        if not self._written:
            return found
        kept = {key_of(obj): obj for obj in found}
        hits = set(self._index(indexer).get(value, ()))
        for key in [key for key in kept if key in self._written and key not in hits]:
            known = self._current(key, now)
            if known is not None and (known.object is not None or kept[key]["metadata"].get("uid") == known.uid):
                del kept[key]
        for key in sorted(hits):
            known = self._current(key, now)
            if known is not None and known.object is not None:
                kept[key] = known.object
        return list(kept.values())

    def _current(self, key: Key, now: float) -> _Written | None:
        known = self._written.get(key)
        if known is not None and now - known.at > FORGET:
            self._drop(key)  # a long reconcile may look from its own thread
            return None
        return known


def _add(indexer: Indexer, index: dict[Hashable, set[Key]], key: Key, written: _Written) -> None:
    if written.object is not None:
        for value in indexer(written.object):
            index.setdefault(value, set()).add(key)


def _number(version: str | None) -> int:
    """Versions are numbers that only grow, on every server that we know."""
    return int(version) if version and version.isdecimal() else 0
