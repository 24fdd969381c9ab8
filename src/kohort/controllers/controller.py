"""What a controller is made of: what it watches, which keys a change enqueues, and the reconcile of one key.

A kind is added by one module with a function that makes such a Controller, named in the family's `bundle`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from kohort.api.kind import Object
from kohort.controllers.reconcile import Reconcile


class Key(NamedTuple):
    """What is worked on: one object, whether it is still there or not."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Enqueue(NamedTuple):
    """Reconcile `key` in `after` seconds: waiting a little lets several changes be one reconcile."""

    key: Key
    after: float = 0.0


EventHandler = Callable[[Object | None, Object | None], Iterable[Enqueue]]
Indexer = Callable[[Object], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind, the keys that a change of it enqueues (old, new; None: was not, is no more), and how it is indexed.

    `optional`: where the server does not have it, the controller does without. `alias`: what readers call it, where
    another group has a kind of the same name.

    `controllers`, `label`, `annotation`: a predicate. Only objects that a controller of such a kind has (empty: that
    nobody has, which may be adopted), or that have the label or annotation, are indexed and handled; without any of
    the three, all are. A pod may be watched by twenty controllers and be of interest to five: asking the others costs
    more than all that those five do.

    `contents_of`: kinds of controllers. Of objects that no such controller has, nothing is read but who it is; where
    every watch of a kind says so, no more than that stays in memory. A cluster has many ConfigMaps and Secrets, few of
    which are any controller's.
    """

    api_version: str
    kind: str
    handler: EventHandler
    indexers: Mapping[str, Indexer] = field(default_factory=dict)
    optional: bool = False
    alias: str = ""
    controllers: tuple[str, ...] = ()
    label: str = ""
    annotation: str = ""
    contents_of: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        return self.alias or self.kind


class Reader(Protocol):
    """The observed state: informers, with our own writes already in. What it gives must not be changed."""

    def get(self, kind: str, key: Key) -> Object | None: ...

    def indexed(self, kind: str, index: str, value: Hashable) -> list[Object]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """`reconcile` gets key, state and time. Failures are retried after `base_delay` to `max_delay` seconds.

    `subject`: the object that a key is about, which is marked when a reconcile of it meets a fault; else the one of the
    first watch that has the key. `conditions`: whether its status has conditions, to say so there. `counters`: metrics
    of its own, name -> what is counted, each by name and namespace of the object (`Result.counted`).
    """

    name: str
    watches: tuple[Watch, ...]
    reconcile: Callable[[Key, Reader, datetime], Reconcile]
    workers: int = 5
    base_delay: float = 1.0
    max_delay: float = 60.0
    subject: Callable[[Key, Reader], Object | None] | None = None
    conditions: bool = True
    counters: Mapping[str, str] = field(default_factory=dict)

    def object_of(self, key: Key, reader: Reader) -> Object | None:
        if self.subject is not None:
            return self.subject(key, reader)
        return reader.get(self.watches[0].named, key)


def key_of(obj: Object) -> Key:
    meta = obj["metadata"]
    return Key(str(meta.get("namespace") or ""), str(meta["name"]))


# ---- event handlers that several controllers have


def enqueue_nothing(_: Object | None, __: Object | None) -> Iterable[Enqueue]:
    """Of kinds that are only read."""
    return ()


def enqueue_itself(_: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """The object, while it is there."""
    return [Enqueue(key_of(new))] if new is not None else []
