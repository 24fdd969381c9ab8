"""Runs controllers on the simulated API in virtual time: no event loop, every order the same each time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from tests.controllers.simapi import Change, SimApi

from kohort.api.kind import Object
from kohort.controllers.controller import Controller, Key, Reader
from kohort.controllers.reconcile import Answer, Event, ReconcileError, Result, Step, Write


class KilledError(Exception):
    """The process ended here."""


@dataclass
class Reading:
    """The state as the API has it. Nobody copies: a reconcile that changed what it reads would change the store."""

    api: SimApi
    controller: Controller

    def get(self, kind: str, key: Key) -> Object | None:
        return self.api.objects.get((kind, key.namespace, key.name))

    def indexed(self, kind: str, index: str, value: Hashable) -> list[Object]:
        indexers = [
            one.indexers[index] for one in self.controller.watches if one.named == kind and index in one.indexers
        ]
        if not indexers:
            return []
        state = self.api.objects
        return [obj for key, obj in state.items() if key[0] == kind and value in set(indexers[0](obj))]


@dataclass
class Driver:
    api: SimApi
    controllers: list[Controller] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    before_write: Callable[[Write], None] = lambda write: None
    on: bool = True
    between: bool = False  # others reconcile between two writes of one, as they do where processes are many
    _under_way: set[tuple[str, Key]] = field(default_factory=set)
    _due: dict[tuple[str, Key], float] = field(default_factory=dict)
    _failures: dict[tuple[str, Key], int] = field(default_factory=dict)
    _epoch: int = 0

    def __post_init__(self) -> None:
        self.api.watchers.append(self._changed)

    def start(self, *controllers: Controller) -> None:
        """A new process: nothing is remembered, everything is enqueued."""
        self.stop()
        self.on = True
        # As the runtime does it: a controller begins when the server has all that it watches.
        self.controllers = [
            one
            for one in controllers
            if all(watch.optional or watch.kind not in self.api.unserved for watch in one.watches)
        ]
        for controller in self.controllers:
            for watch in controller.watches:
                for obj in self.api.every(watch.named):
                    for key, after in watch.handler(None, obj):
                        self._add(controller, key, after)

    def stop(self) -> None:
        self.on = False
        self._epoch += 1
        self._due.clear()
        self._failures.clear()

    def _changed(self, change: Change) -> None:
        if not self.on:
            return
        for controller in self.controllers:
            for watch in controller.watches:
                if watch.named == change.kind:
                    for key, after in watch.handler(change.old, change.new):
                        self._add(controller, key, after)

    def _add(self, controller: Controller, key: Key, after: float) -> None:
        """Of several times for one key the earliest counts."""
        at, slot = self.api.clock.seconds + after, (controller.name, key)
        if slot in self._due and self._due[slot] <= at:
            return
        self._due[slot] = at
        epoch = self._epoch
        self.api.clock.later(after, lambda: self._reconcile(controller, key, at, epoch))

    def _reconcile(self, controller: Controller, key: Key, at: float, epoch: int) -> None:
        slot = (controller.name, key)
        if not self.on or epoch != self._epoch or self._due.get(slot) != at:
            return
        del self._due[slot]
        self._under_way.add(slot)
        try:
            result = self.run(controller, key)
        except ReconcileError as error:
            failures = self._failures.get(slot, 0)
            self._failures[slot] = failures + 1
            self.errors.append(str(error))
            self._add(controller, key, min(controller.max_delay, controller.base_delay * 2.0**failures))
            return
        except KilledError:
            self.stop()
            raise
        finally:
            self._under_way.discard(slot)
        self._failures.pop(slot, None)
        if result.requeue_after is not None:
            self._add(controller, key, result.requeue_after)

    def reader(self, controller: Controller) -> Reader:
        return Reading(self.api, controller)

    def run(self, controller: Controller, key: Key) -> Result:
        """One reconcile to its end."""
        steps = controller.reconcile(key, self.reader(controller), self.api.clock.now)
        answers: Sequence[Answer] | None = None
        while True:
            try:
                step: Step = next(steps) if answers is None else steps.send(answers)
            except StopIteration as end:
                result: Result = end.value
                return result
            self.events += step.events
            answers = [self._write(write) for write in step.writes]
            if self.between and step.writes:
                self._others(controller)

    def _others(self, controller: Controller) -> None:
        now = self.api.clock.seconds
        for name, key in [slot for slot, at in self._due.items() if at <= now and slot[0] != controller.name]:
            other = next(one for one in self.controllers if one.name == name)
            if (name, key) not in self._under_way and (name, key) in self._due:
                self._reconcile(other, key, self._due[name, key], self._epoch)

    def _write(self, write: Write) -> Answer:
        self.before_write(write)
        return self.api.do(write)
