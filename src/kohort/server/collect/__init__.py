"""What the server does by itself: garbage, namespaces, pods and groups on their way out.

    jobs = Jobs(api)
    jobs.start()
    ...
    await jobs.stop()

Every job sees every committed change, in order, and starts from what is stored; nothing is lost between the two. Where
there are custom resources, start them first: an owner of a kind that is not served counts as being there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kohort.kube.clock import REAL
from kohort.server.collect.garbage import GarbageCollector
from kohort.server.collect.groups import GroupProtection
from kohort.server.collect.lost import LostPods
from kohort.server.collect.namespaces import NamespaceTerminator
from kohort.server.collect.pods import PodEnder

if TYPE_CHECKING:
    from kohort.kube.clock import Clock
    from kohort.server.api import Api
    from kohort.server.collect.job import Job
    from kohort.server.store.records import Entry

log = logging.getLogger(__name__)

__all__ = ["GarbageCollector", "GroupProtection", "Jobs", "LostPods", "NamespaceTerminator", "PodEnder"]

ALL: tuple[type[Job[Any]], ...] = (GarbageCollector, NamespaceTerminator, PodEnder, LostPods, GroupProtection)


class Jobs:
    """`kinds`: leave some out where others do their work (a real kube-controller-manager, kubelets of a simulation)."""

    def __init__(self, api: Api, clock: Clock = REAL, kinds: Sequence[type[Job[Any]]] = ALL) -> None:
        self._store = api.store
        self.jobs: list[Job[Any]] = [kind(api, clock) for kind in kinds]

    def start(self) -> None:
        for name, table in list(self._store.tables.items()):
            for item in table.items():
                for job in self.jobs:
                    job.see(name, item, None)
        self._store.listeners.append(self._listen)
        for job in self.jobs:
            job.start()

    async def stop(self) -> None:
        if self._listen in self._store.listeners:
            self._store.listeners.remove(self._listen)
        for job in self.jobs:
            await job.stop()

    def _listen(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            for job in self.jobs:
                try:
                    job.see(entry.table, entry.event.item, entry.event)
                except Exception:  # the write is done; its writer must not suffer
                    log.exception("%s: %s %s", job.name, entry.table, entry.event.item.key)
