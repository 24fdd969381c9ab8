"""What the server counts, in Prometheus' words and upstream's names where they are the same thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from kohort.server.store import Store

_BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30)
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class Metrics:
    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        self._store = store
        self._requests = Counter(
            "apiserver_request_total", "Requests by verb, resource and code.", ("verb", "resource", "code"),
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "apiserver_request_duration_seconds", "Time to answer, watches aside.", ("verb",),
            buckets=_BUCKETS, registry=self.registry,
        )  # fmt: skip
        self.watchers = Gauge("apiserver_longrunning_requests", "Open watches.", registry=self.registry)
        self._objects = Gauge(
            "apiserver_storage_objects", "Objects by resource.", ("resource",), registry=self.registry
        )
        self._revision = Gauge("kohort_store_revision", "The newest resourceVersion.", registry=self.registry)
        self._kept = Gauge("kohort_store_history_bytes", "Values kept for watches.", registry=self.registry)
        self._known: dict[tuple[str, str, int], Counter] = {}
        self._timers: dict[str, Histogram] = {}

    def count(self, verb: str, resource: str, code: int, seconds: float) -> None:
        key = (verb, resource, code)
        counter = self._known.get(key)
        if counter is None:
            counter = self._known[key] = self._requests.labels(verb, resource, str(code))
        counter.inc()
        if verb != "watch":
            timer = self._timers.get(verb)
            if timer is None:
                timer = self._timers[verb] = self._seconds.labels(verb)
            timer.observe(seconds)

    def text(self) -> bytes:
        for name, table in self._store.tables.items():
            self._objects.labels(name).set(table.size)
        self._revision.set(self._store.revision)
        self._kept.set(self._store.kept)
        return generate_latest(self.registry)
