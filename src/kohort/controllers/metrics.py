"""What each controller does, in numbers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

OBJECTS: Final = 1000  # that counters of their own are shown of: those that were last counted


class Metrics:
    """One set for all controllers of a process; they are told apart by the label `controller`."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        labels = ["controller"]
        self.reconciles = Counter(
            "kohort_controller_reconciles",
            "Reconciles of an object, by how they ended.",
            [*labels, "result"],
            registry=registry,
        )
        self.errors = Counter(
            "kohort_controller_reconcile_errors",
            "Reconciles that did not work: a write was refused, or a fault was met (reconciles, result error).",
            labels,
            registry=registry,
        )
        self.seconds = Histogram(
            "kohort_controller_reconcile_seconds",
            "How long a reconcile takes, its writes included.",
            labels,
            registry=registry,
        )
        self.writes = Counter(
            "kohort_controller_writes",
            "Writes, by what was written and how the server answered (code 0: it did not).",
            [*labels, "verb", "kind", "code"],
            registry=registry,
        )
        self.waiting = Gauge(
            "kohort_controller_queue_length", "Objects that wait for a reconcile.", labels, registry=registry
        )
        self.counters: dict[str, Counter] = {}
        self._counted: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._registry = registry

    def add_counters(self, kind: str, counters: Mapping[str, str]) -> None:
        """Counters of a controller's own (`Result.counted`), by name and namespace of the object."""
        for name, says in counters.items():
            labels = (f"{kind.lower()}_name", "namespace")
            self.counters[name] = Counter(name, says, labels, registry=self._registry)

    def count(self, counter: str, name: str, namespace: str) -> None:
        """Objects come and go without end; what is shown of them does not grow without one."""
        self.counters[counter].labels(name, namespace).inc()
        self._counted[counter, name, namespace] = None
        self._counted.move_to_end((counter, name, namespace))
        if len(self._counted) > OBJECTS:
            (oldest, *labels), _ = self._counted.popitem(last=False)
            self.counters[oldest].remove(*labels)
