"""What the server counts, in Prometheus' words and upstream's names where they are the same thing.

Counting happens on every request, so it is plain arithmetic here; Prometheus' own classes come in when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from kohort.api.releases import stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from kohort.api.kind import Context
    from kohort.kube.watchdog import Watchdog
    from kohort.server.flowcontrol import FlowControl
    from kohort.server.store import Store
    from kohort.server.workers.pool import WorkerPool

_BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0)


class Metrics:
    """`watchers`: how many watches are open."""

    def __init__(self, store: Store, ctx: Context) -> None:
        self._store, self._ctx = store, ctx
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[str, list[int]] = {}  # by verb: requests in each bucket, the last without a bound
        self._sums: dict[str, float] = {}
        self.watchers = 0
        self.flow: FlowControl | None = None  # where requests come over HTTP
        self.watchdog: Watchdog | None = None  # of the event loop, where one runs
        self.workers: WorkerPool | None = None  # where there are any

    def count(self, verb: str, resource: str, code: int, seconds: float) -> None:
        key = (verb, resource, code)
        self._requests[key] = self._requests.get(key, 0) + 1
        if verb == "watch":
            return
        buckets = self._seconds.get(verb)
        if buckets is None:
            buckets = self._seconds[verb] = [0] * (len(_BUCKETS) + 1)
            self._sums[verb] = 0.0
        buckets[bisect_left(_BUCKETS, seconds)] += 1
        self._sums[verb] += seconds

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        names = ["verb", "resource", "code"]
        requests = CounterMetricFamily("apiserver_request", "Requests by verb, resource and code.", labels=names)
        for (verb, resource, code), number in self._requests.items():
            requests.add_metric([verb, resource, str(code)], number)
        yield requests
        seconds = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "Time to answer, watches aside.", labels=["verb"]
        )
        for verb, buckets in self._seconds.items():
            seconds.add_metric([verb], _cumulated(buckets), self._sums[verb])
        yield seconds
        stored = GaugeMetricFamily("apiserver_storage_objects", "Objects by resource.", labels=["resource"])
        for name, table in self._store.tables.items():
            stored.add_metric([name], table.size)
        yield stored
        enabled = GaugeMetricFamily("kubernetes_feature_enabled", "Feature gates: 1 if on.", labels=["name", "stage"])
        for gate in sorted(self._ctx.release.gates):
            enabled.add_metric([gate, stage(self._ctx.release.minor, gate)], int(self._ctx.on(gate)))
        yield enabled
        for name, text, value in (
            ("apiserver_longrunning_requests", "Open watches.", self.watchers),
            ("kohort_store_revision", "The newest resourceVersion.", self._store.revision),
            ("kohort_store_history_bytes", "Values kept for watches.", self._store.kept),
        ):
            yield GaugeMetricFamily(name, text, value)
        if self.flow is not None:
            yield from self._in_flight(self.flow)
        if self.workers is not None:
            yield from self.workers.collect()
        if self.watchdog is not None:
            yield from self.watchdog.collect()

    def _in_flight(self, flow: FlowControl) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        kinds = (("readOnly", flow.reading), ("mutating", flow.mutating))
        names = ["request_kind"]
        seats = GaugeMetricFamily("apiserver_current_inflight_requests", "Requests that hold a seat.", labels=names)
        queued = GaugeMetricFamily("apiserver_current_inqueue_requests", "Requests that wait for one.", labels=names)
        rejected = CounterMetricFamily(
            "apiserver_flowcontrol_rejected_requests", "Requests answered with 429 for want of a seat.", labels=names
        )
        for kind, one in kinds:
            seats.add_metric([kind], one.taken)
            queued.add_metric([kind], one.waiting)
            rejected.add_metric([kind], one.rejected)
        yield from (seats, queued, rejected)

    def text(self) -> tuple[bytes, str]:
        """All of it, and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry), CONTENT_TYPE_LATEST


def _cumulated(buckets: list[int]) -> list[tuple[str, float]]:
    total, found = 0, []
    for bound, number in zip((*map(str, _BUCKETS), "+Inf"), buckets, strict=True):
        total += number
        found.append((bound, float(total)))
    return found
