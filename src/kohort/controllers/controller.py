"""What a controller is made of: what it watches, which keys that concerns, and the script of one key.

A kind is added by one module with a function that makes such a Controller, and one line in `registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from kohort.api.kind import Object
from kohort.controllers.script import Script


class Key(NamedTuple):
    """What is worked on: one object, whether it is still there or not."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Due(NamedTuple):
    """Look at `key` in `after` seconds: waiting a little lets several changes be one."""

    key: Key
    after: float = 0.0


Concerns = Callable[[Object | None, Object | None], Iterable[Due]]
Indexer = Callable[[Object], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind, whose keys a change of it concerns (old, new; None: was not, is no more), and how it is looked up.

    `optional`: where the server does not have it, the controller does without. `alias`: what readers call it, where
    another group has a kind of the same name.
    """

    api_version: str
    kind: str
    concerns: Concerns
    indexers: Mapping[str, Indexer] = field(default_factory=dict)
    optional: bool = False
    alias: str = ""

    @property
    def named(self) -> str:
        return self.alias or self.kind


class Reader(Protocol):
    """The observed state: informers, with our own writes already in. What it gives must not be changed."""

    def get(self, kind: str, key: Key) -> Object | None: ...

    def indexed(self, kind: str, index: str, value: Hashable) -> list[Object]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """`script` is called with a key, the state and the time. Failures are retried after `first` to `most` seconds."""

    name: str
    watches: tuple[Watch, ...]
    script: Callable[[Key, Reader, datetime], Script]
    workers: int = 5
    first: float = 1.0
    most: float = 60.0


def key_of(obj: Object) -> Key:
    meta = obj["metadata"]
    return Key(str(meta.get("namespace") or ""), str(meta["name"]))
