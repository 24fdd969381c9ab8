"""A driver whose watches are late: each kind by a time of its own, some events twice, and our own writes over it.

So kinds overtake each other, as they do when every kind has a connection of its own.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from copy import deepcopy
from dataclasses import dataclass, field

from tests.controllers.driver import Driver
from tests.controllers.simapi import Change

from kohort.api.kind import Object
from kohort.controllers.controller import Controller, Key, Reader, key_of
from kohort.controllers.overlay import WriteOverlay
from kohort.controllers.reconcile import Answer, Write

LATEST = 0.8  # seconds


@dataclass
class Cache:
    """What a process knows of one kind."""

    objects: dict[Key, Object] = field(default_factory=dict)
    recent: WriteOverlay = field(default_factory=WriteOverlay)
    reached: str = "0"
    due: float = 0.0  # events of one kind keep their order


@dataclass
class LateDriver(Driver):
    seed: int = 0
    caches: dict[str, Cache] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chance = random.Random(self.seed)

    def start(self, *controllers: Controller) -> None:
        self.caches = {}
        for key, obj in self.api.objects.items():
            cache = self.caches.setdefault(key[0], Cache())
            cache.objects[key_of(obj)] = deepcopy(obj)
            cache.reached = max(cache.reached, obj["metadata"].get("resourceVersion") or "0", key=int)
        super().start(*controllers)

    def _changed(self, change: Change) -> None:
        if not self.on:
            return
        cache, epoch, now = self.caches.setdefault(change.kind, Cache()), self._epoch, self.api.clock.seconds
        cache.due = max(cache.due, now + self.chance.uniform(0, LATEST))
        for _ in range(2 if self.chance.random() < 0.2 else 1):
            self.api.clock.later(cache.due - now, lambda: self._arrives(change, epoch))

    def _arrives(self, change: Change, epoch: int) -> None:
        if epoch != self._epoch:
            return
        cache = self.caches[change.kind]
        obj = change.object
        old = cache.objects.get(key_of(obj))
        if change.new is None:
            cache.objects.pop(key_of(obj), None)
        else:
            cache.objects[key_of(obj)] = change.new
        cache.reached = max(cache.reached, obj["metadata"].get("resourceVersion") or "0", key=int)
        cache.recent.seen(old, change.new)
        super()._changed(Change(change.kind, old, change.new))

    def reader(self, controller: Controller) -> Reader:
        return LateReading(self, controller)

    def _write(self, write: Write) -> Answer:
        answer = super()._write(write)
        cache, now = self.caches.setdefault(write.kind, Cache()), self.api.clock.seconds
        if answer.refusal is None and write.verb == "delete":
            cache.recent.deleted(Key(write.namespace, write.name), write.uid, answer.object, cache.reached, now)
        elif answer.refusal is None and answer.object is not None:
            cache.recent.wrote(answer.object, cache.reached, now)
        return answer


@dataclass
class LateReading:
    driver: LateDriver
    controller: Controller

    def get(self, kind: str, key: Key) -> Object | None:
        cache = self.driver.caches.get(kind)
        return cache.recent.get(key, cache.objects.get(key), self.driver.api.clock.seconds) if cache else None

    def indexed(self, kind: str, index: str, value: Hashable) -> list[Object]:
        indexer = next(
            (one.indexers[index] for one in self.controller.watches if one.named == kind and index in one.indexers),
            None,
        )
        cache = self.driver.caches.get(kind)
        if indexer is None or cache is None:
            return []
        found = [obj for obj in cache.objects.values() if value in set(indexer(obj))]
        return cache.recent.over(found, indexer, value, self.driver.api.clock.seconds)
