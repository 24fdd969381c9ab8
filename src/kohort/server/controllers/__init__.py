"""The built-in controllers, as kube-controller-manager runs them: garbage collection, namespaces, terminating pods.

    controllers = ControllerManager(api)
    controllers.start()
    ...
    await controllers.stop()

Every controller observes every committed change, in the order of its namespace, and starts from what is stored; nothing
is lost between the two. Where there are custom resources, start them first: an owner of a kind that is not served
counts as being there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kohort.kube.clock import REAL
from kohort.server.controllers.garbage_collector import GarbageCollector
from kohort.server.controllers.late_changes import LateChanges
from kohort.server.controllers.namespace import NamespaceController
from kohort.server.controllers.pod_gc import PodTermination, UnscheduledTerminatingPods
from kohort.server.controllers.pod_group_protection import PodGroupProtection
from kohort.server.controllers.policy_status import PolicyStatus

if TYPE_CHECKING:
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.controllers.controller import Controller
    from kohort.server.store.records import Entry

log = logging.getLogger(__name__)

__all__ = [
    "ControllerManager",
    "GarbageCollector",
    "NamespaceController",
    "PodGroupProtection",
    "PodTermination",
    "PolicyStatus",
    "UnscheduledTerminatingPods",
]

ALL: tuple[type[Controller[Any]], ...] = (
    GarbageCollector,
    NamespaceController,
    PodTermination,
    UnscheduledTerminatingPods,
    PodGroupProtection,
    PolicyStatus,
)


class ControllerManager:
    """`controllers`: leave some out where others run them (a real kube-controller-manager, simulated kubelets)."""

    def __init__(self, api: Api, clock: Clock = REAL, controllers: Sequence[type[Controller[Any]]] = ALL) -> None:
        self._api, self._store = api, api.store
        self.controllers: list[Controller[Any]] = [kind(api, clock) for kind in controllers]
        self._observing: dict[str, tuple[Controller[Any], ...]] = {}  # by table
        self._late = LateChanges(self._observe) if clock is REAL else None  # other clocks have all at once

    def start(self) -> None:
        for name, table in list(self._store.tables.items()):
            for item in table.items():
                for controller in self._observers(name):
                    controller.observe(name, item, None)
        self._store.listeners.append(self._listen)
        for controller in self.controllers:
            controller.start()

    async def stop(self) -> None:
        if self._listen in self._store.listeners:
            self._store.listeners.remove(self._listen)
        if self._late is not None:
            await self._late.stop()
        for controller in self.controllers:
            await controller.stop()

    def _observers(self, table: str) -> tuple[Controller[Any], ...]:
        found = self._observing.get(table)
        if found is None:  # tables are as many as there are kinds
            chosen = (one for one in self.controllers if one.tables is None or table in one.tables)
            found = self._observing[table] = tuple(chosen)
        return found

    def _listen(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if self._late is None or not self._late.keeps(entry):
                self._observe(entry)

    def _observe(self, entry: Entry) -> None:
        began = time.perf_counter()
        for controller in self._observers(entry.table):
            try:
                controller.observe(entry.table, entry.event.item, entry.event)
            except Exception:  # the write is done; its writer must not suffer
                log.exception("%s: %s %s", controller.name, entry.table, entry.event.item.key)
        if self._api.pace is not None:
            self._api.pace.spent(entry.event.item.namespace, time.perf_counter() - began)
