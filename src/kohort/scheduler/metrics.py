"""Numbers under the names that kube-scheduler uses for them (spec scheduler 6.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kohort.place.demand import Reason
from kohort.scheduler.decision import Decision, DecisionKind
from kohort.scheduler.model import is_pod_key
from kohort.scheduler.queue import SubQueue
from kohort.scheduler.trees import Group

if TYPE_CHECKING:
    from kohort.scheduler.core import SchedulerCore

_SECONDS: Final = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096)
_VICTIMS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# kube-scheduler has no place of its own for a root that waits for its victims: it is gated meanwhile.
_SHOWN: Final = {SubQueue.PREEMPTING: SubQueue.GATED.value, SubQueue.IN_FLIGHT: SubQueue.ACTIVE.value}
_QUEUES: Final = ("active", "backoff", "unschedulable", "gated")


class Metrics:
    """Of one scheduler."""

    def __init__(
        self,
        core: SchedulerCore,
        profile: str,
        now: Callable[[], float] = lambda: 0.0,
        failing_since: Callable[[], Iterable[float]] = tuple,
    ) -> None:
        """`now`: of the core's clock; `failing_since`: of informers that hear nothing from the API server."""
        self.registry = CollectorRegistry()
        self._profile = profile
        registry = self.registry
        self._attempts = Counter(
            "scheduler_podgroup_schedule_attempts",
            "Decisions about roots that are groups, by result",
            ["result", "profile"],
            registry=registry,
        )
        self._attempt_seconds = Histogram(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "Time of a decision about a root that is a group",
            ["result", "profile"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._pod_attempts = Counter(
            "scheduler_schedule_attempts", "Decisions about pods, by result", ["result", "profile"], registry=registry
        )
        self._pod_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Time of a decision about a single pod",
            ["result", "profile"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._errors = Counter(
            "kohort_scheduler_decision_errors", "Decisions that ended in a fault of the scheduler", registry=registry
        )
        self._searches = Counter(
            "kohort_scheduler_search_results",
            "Decisions about groups by what is known: placed, impossible, searching (still), not_found (in time)",
            ["result"],
            registry=registry,
        )
        self._generated = Counter(
            "scheduler_generated_placements", "Domains that groups could be placed in", ["profile"], registry=registry
        )
        self._evaluated = Counter(
            "scheduler_placement_evaluations",
            "Such domains, by whether they may do",
            ["result", "profile"],
            registry=registry,
        )
        self._preemptions = Counter(
            "scheduler_workload_preemption_attempts",
            "Preemptions planned for groups, by result",
            ["result"],
            registry=registry,
        )
        self._victims = Histogram(
            "scheduler_workload_preemption_victims", "Pods evicted for a group", buckets=_VICTIMS, registry=registry
        )
        self._disruptions = Histogram(
            "scheduler_preemption_workload_disruptions",
            "Units disrupted by a preemption",
            ["preemptor"],
            buckets=_VICTIMS,
            registry=registry,
        )
        self._over_budget = Counter(
            "scheduler_preemption_pdb_violations",
            "Victims beyond a disruption budget",
            ["preemptor"],
            registry=registry,
        )
        registry.register(_Now(core))
        registry.register(_Ages(core, now, failing_since))

    def faulted(self) -> None:
        self._errors.inc()

    def decided(self, decision: Decision, seconds: float) -> None:
        if decision.kind is DecisionKind.NOTHING:
            return
        alone = decision.is_pod
        if not alone:
            self._attempts.labels(decision.kind.value, self._profile).inc()
            self._searches.labels(_known(decision)).inc()
            there, may = decision.placements or (0, 0)
            self._generated.labels(self._profile).inc(there)
            self._evaluated.labels("feasible", self._profile).inc(may)
            self._evaluated.labels("infeasible", self._profile).inc(there - may)
            self._attempt_seconds.labels(decision.kind.value, self._profile).observe(seconds)
        else:
            self._pod_seconds.labels(_of_pod(decision.kind), self._profile).observe(seconds)
        placed, left = len(decision.assignments), len(decision.leftovers)
        self._pod_attempts.labels("scheduled", self._profile).inc(placed)
        failed = "error" if decision.kind is DecisionKind.ERROR else "unschedulable"
        if not decision.minimum_only or not placed:
            self._pod_attempts.labels(failed, self._profile).inc(left)
        self._preempted(decision, alone)

    def _preempted(self, decision: Decision, alone: bool) -> None:
        plan = decision.preemption
        if plan is None:
            return
        preemptor = "pod" if alone else "podgroup"
        if not alone:
            self._preemptions.labels("success").inc()
            self._victims.observe(plan.evictions)
        self._disruptions.labels(preemptor).observe(len(plan.victims))
        self._over_budget.labels(preemptor).inc(plan.over_budget)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Now(Collector):
    """What is read when it is asked for."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core

    def collect(self) -> Iterable[Metric]:
        roots = {(queue, kind): 0 for queue in _QUEUES for kind in ("pod", "podgroup")}
        pods = dict.fromkeys((*_QUEUES, "incomplete"), 0)
        for entry in self._core.queue:
            queue = _SHOWN.get(entry.queue, entry.queue.value)
            roots[queue, "pod" if is_pod_key(entry.key) else "podgroup"] += 1
            pods[queue] += entry.size
        pods["incomplete"] = sum(1 for _ in self._core.cache.parked())
        queued = GaugeMetricFamily("scheduler_queued_entities", "Roots by place", labels=["queue", "type"])
        for (queue, kind), count in roots.items():
            queued.add_metric([queue, kind], count)
        yield queued
        pending = GaugeMetricFamily("scheduler_pending_pods", "Pending pods by place of their root", labels=["queue"])
        for queue, count in pods.items():
            pending.add_metric([queue], count)
        yield pending
        open_now = 0 if self._core.questions is None else len(self._core.questions)
        yield GaugeMetricFamily("kohort_scheduler_searches", "Roots that are still being searched for", open_now)
        incoming = CounterMetricFamily(
            "scheduler_queue_incoming_entities", "Roots that came to a place", labels=["queue", "event"]
        )
        for (queue, event), count in self._core.queue.incoming.items():
            incoming.add_metric([queue, event], count)
        yield incoming


class _Ages(Collector):
    """How long something has not been as it should be: what alerts look at."""

    def __init__(
        self, core: SchedulerCore, now: Callable[[], float], failing_since: Callable[[], Iterable[float]]
    ) -> None:
        self._core, self._now, self._failing_since = core, now, failing_since

    def collect(self) -> Iterable[Metric]:
        now = self._now()
        longest, half = 0.0, 0
        for entry in self._core.queue:
            if is_pod_key(entry.key):
                continue
            if entry.failing_since is not None:
                longest = max(longest, now - entry.failing_since)
            half += sum(1 for group in _below(self._core.root(entry.key)) if group.placed and not group.settled)
        text = "Time since the first vain decision about the group that has waited longest"
        yield GaugeMetricFamily("kohort_scheduler_longest_wait_seconds", text, longest)
        text = "Groups of which some members have a place and fewer than the minimum"
        yield GaugeMetricFamily("kohort_scheduler_half_bound_groups", text, half)
        stale = max((now - since for since in self._failing_since()), default=0.0)
        text = "Time for which what is known of the cluster has not been kept current; 0: it is"
        yield GaugeMetricFamily("kohort_scheduler_cache_stale_seconds", text, stale)
        bindings = CounterMetricFamily(
            "kohort_scheduler_bindings", "Bindings by the answer of the API server", labels=["result"]
        )
        for result in ("bound", "refused", "unanswered"):
            bindings.add_metric([result], self._core.bindings[result])
        yield bindings


def _below(root: object) -> Iterator[Group]:
    """The leaves of a tree."""
    if not isinstance(root, Group):
        return
    if not root.children:
        yield root
    for child in root.children.values():
        yield from _below(child)


def _known(decision: Decision) -> str:
    if decision.kind is DecisionKind.SCHEDULED:
        return "placed"
    if decision.searching:
        return "searching"
    return "not_found" if decision.reason is Reason.NOT_FOUND else "impossible"


def _of_pod(kind: DecisionKind) -> str:
    return "unschedulable" if kind is DecisionKind.PREEMPTING else kind.value
