"""What each controller does, in numbers."""

from __future__ import annotations

from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

_JOBSET: Final = ("jobset_name", "namespace")


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
        # By the names, and with the labels, that dashboards of upstream's controller know.
        self.ends = {
            name: Counter(name, f"JobSets that have {name.partition('_')[2]}.", _JOBSET, registry=registry)
            for name in ("jobset_completed", "jobset_failed")
        }
        self.waiting = Gauge(
            "kohort_controller_queue_length", "Objects that wait for a reconcile.", labels, registry=registry
        )
