"""Runs a trace: events in order of their time, and after each the scheduler's core until it has nothing left to do."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, Final

import msgspec

from kohort.apimachinery import times
from kohort.place.profile import Profile
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import (
    Constraints,
    Container,
    Gang,
    GroupObject,
    GroupObjectSpec,
    GroupStatus,
    Node,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    Policy,
    SchedulingGroup,
)
from kohort.scheduler.schedulingcycle import Step
from kohort.scheduler.settings import KOHORT, SchedulerSettings
from kohort.sim.behaviour import FOR_EVER
from kohort.simulate.trace import NodeFailure, Trace, TraceJob

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
SPACE: Final = "default"
_STOP: Final = FOR_EVER.stop_seconds  # from being told to stop to having stopped
_HOPE: Final = 2 * SchedulerSettings().retry_after  # seconds of the scheduler's timers alone, then it is over
_PENDING: Final = PodStatus(phase="Pending")
_NO_STATUS: Final = GroupStatus()
_DAY: Final = 86_400  # seconds
_ROUNDS: Final = 10_000_000  # a queue that never ends is a fault of ours
Progress = Callable[[int, int], None]  # jobs that have ended, of so many
_Event = tuple[float, int, Callable[[], None]]  # when, the first of those at one time first, and what


@dataclass(slots=True, eq=False)
class JobRun:
    """What became of a job. `nodes`: of its pods, in their order, when it last started."""

    job: TraceJob
    number: int
    started: float = -1.0  # when its last start had its minimum; -1: not yet
    first_started: float = -1.0
    ended: float = -1.0
    preemptions: int = 0
    restarts: int = 0  # nodes that were lost under it
    nodes: dict[int, str] = field(default_factory=dict)
    attempt: int = 0
    pods: list[Pod] = field(default_factory=list)  # as they came, while it is there
    running: dict[str, Pod] = field(default_factory=dict)  # by uid
    waiting: dict[str, Pod] = field(default_factory=dict)
    done: int = 0


@dataclass(slots=True)
class Outcome:
    """`usage`: (time, amount in use, amount there, jobs that wait, amount free on nodes that are partly used)."""

    runs: list[JobRun]
    resource: str
    usage: list[tuple[float, int, int, int, int]]
    decisions: int
    end: float

    @property
    def never_started(self) -> list[JobRun]:
        return [one for one in self.runs if one.started < 0]


class Simulation:
    """`nodes`: API objects. `progress` is told now and then."""

    def __init__(
        self,
        trace: Trace,
        nodes: Iterable[dict[str, Any]],
        profile: Profile | None = None,
        progress: Progress | None = None,
        *,
        one_by_one: bool = False,
    ) -> None:
        """`one_by_one`: the scheduler sees each of the things that happen at one time before the next of them."""
        self.now = 0.0
        self._stamped = (0, times.seconds(START))  # the last second, as it is written
        self._day = (-1, "")
        self._trace, self._progress, self._one_by_one = trace, progress, one_by_one
        settings = SchedulerSettings(names=frozenset({KOHORT}), profile=profile or Profile(), explains=False)
        self.core = SchedulerCore(settings, self._stamp)
        self._nodes = {str(one["metadata"]["name"]): msgspec.convert(_stored(one), Node) for one in nodes}
        for node in self._nodes.values():
            self.core.cache.set_node(node)
        self.runs = [JobRun(job, number) for number, job in enumerate(trace.jobs)]
        self._of: dict[str, JobRun] = {}  # pod uid -> whose
        self._specs: dict[tuple[object, ...], PodSpec] = {}
        self._group_specs: dict[tuple[int, str, int], GroupObjectSpec] = {}
        self._events: list[_Event] = []
        self._foreseen: list[_Event] = []
        self._numbers = itertools.count()
        self._ended = self._waiting = self._decisions = 0
        self._usage: list[tuple[float, int, int, int, int]] = []
        self._resource = _counted(trace, self.core)
        self._touched = set(self._nodes)  # nodes that may not be what they were when they were last counted
        self._counts: dict[str, tuple[int, int]] = {}  # node -> (there, used)
        self._sums = (0, 0, 0)  # of all nodes: used, there, free on those that are partly used
        self._leaving: set[str] = set()
        self._progressed = 0.0  # when something last started or ended

    def run(self) -> Outcome:
        self._foreseen = self._written()
        for _ in range(_ROUNDS):
            moment = self._next()
            if moment is None:
                break
            self.now = moment
            while (event := self._due(moment)) is not None:
                event()
                if self._one_by_one:
                    self._drain()
            self._drain()
            self._measure()
        return Outcome(self.runs, self._resource, self._usage, self._decisions, self.now)

    # ---- time

    def _written(self) -> list[_Event]:
        """What the trace says, the first last. Apart from what comes of it, which is little at any time."""
        found: list[_Event] = [(run.job.at, next(self._numbers), partial(self._arrive, run)) for run in self.runs]
        found += ((one.at, next(self._numbers), partial(self._fail, one)) for one in self._trace.failures)
        return sorted(found, key=itemgetter(0, 1), reverse=True)

    def _due(self, moment: float) -> Callable[[], None] | None:
        """What happens next, if that is by then. Of what is at one time, the trace's comes first."""
        written, events = self._foreseen, self._events
        if written and written[-1][0] <= moment and not (events and events[0][0] < written[-1][0]):
            return written.pop()[2]
        return heapq.heappop(events)[2] if events and events[0][0] <= moment else None

    def _at(self, moment: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), call))

    def _next(self) -> float | None:
        """The next event, or the scheduler's own timer; when nothing but timers is left and all of them have rung
        without a start, nothing more will come."""
        timer = self.core.next_timer()
        following = self._foreseen[-1][0] if self._foreseen else None
        if self._events and (following is None or self._events[0][0] < following):
            following = self._events[0][0]
        if following is None:
            if timer is None or not self._waiting or timer > self._progressed + _HOPE:
                return None
            return max(timer, self.now)
        return following if timer is None else max(min(timer, following), self.now)

    def _stamp(self) -> str:
        second = int(self.now)
        if second != self._stamped[0]:
            day, rest = divmod(second, _DAY)
            if day != self._day[0]:
                self._day = (day, times.seconds(START + timedelta(days=day))[: -len("00:00:00Z")])
            hour, rest = divmod(rest, 3600)
            self._stamped = (second, f"{self._day[1]}{hour:02}:{rest // 60:02}:{rest % 60:02}Z")
        return self._stamped[1]

    # ---- what happens

    def _arrive(self, run: JobRun) -> None:
        """As its controller would make it: the group first, then the pods."""
        job, name = run.job, _name(run)
        run.attempt += 1
        run.done = 0
        run.nodes = {}
        run.pods = []
        self._waiting += 1
        group = None
        if job.pods > 1 or job.topology:
            group = name
            meta = ObjectMeta(name=name, namespace=SPACE, uid=f"g-{name}", creation_timestamp=self._stamp())
            self.core.cache.set_group(GroupObject(meta, self._group_spec(job), _NO_STATUS))
        shared, stamp = self._spec(job, group), self._stamp()
        for index in range(job.pods):
            uid = f"p-{name}-{run.attempt}-{index}"
            meta = ObjectMeta(name=f"{name}-{index}", namespace=SPACE, uid=uid, creation_timestamp=stamp)
            pod = Pod(meta, shared, _PENDING)
            self._of[uid] = run
            run.pods.append(pod)
            run.waiting[uid] = pod
            self.core.cache.set_pod(pod)

    def _group_spec(self, job: TraceJob) -> GroupObjectSpec:
        """Shared by groups that ask for the same: nobody writes to it."""
        key = (job.minimum or job.pods, job.topology, job.priority)
        spec = self._group_specs.get(key)
        if spec is None:
            constraints = Constraints(topology=[{"key": job.topology}]) if job.topology else None
            spec = GroupObjectSpec(Policy(gang=Gang(min_count=key[0])), constraints, priority=job.priority)
            self._group_specs[key] = spec
        return spec

    def _spec(self, job: TraceJob, group: str | None) -> PodSpec:
        """Shared by pods that ask for the same: nobody writes to it."""
        key = (job.priority, *job.requests.items())
        spec = self._specs.get(key)
        if spec is None:
            containers = [Container(resources={"requests": dict(job.requests)})]
            spec = PodSpec(scheduler_name=KOHORT, priority=job.priority, containers=containers)
            self._specs[key] = spec
        if group is None:
            return spec
        return msgspec.structs.replace(spec, scheduling_group=SchedulingGroup(group))

    def _finish_together(self, run: JobRun, uids: list[str], attempt: int) -> None:
        """Pods that have started together end together; where all of a job do, it ends as a whole."""
        whole = attempt == run.attempt and not run.waiting and len(uids) == len(run.running)
        if not whole or self._leaving & run.running.keys():
            for uid in uids:
                self._finish(run, uid, attempt)
            return
        run.done += len(uids)
        run.running = {}
        self._progressed = self.now
        self._end(run)

    def _finish(self, run: JobRun, uid: str, attempt: int) -> None:
        pod = run.running.pop(uid, None)
        if pod is None or attempt != run.attempt or uid in self._leaving:
            if pod is not None:
                run.running[uid] = pod
            return
        run.done += 1
        self._progressed = self.now
        if not run.running and not run.waiting:
            self._end(run)
            return
        self._touched.add(pod.spec.node_name)
        status = msgspec.structs.replace(pod.status, phase="Succeeded")
        self.core.cache.set_pod(msgspec.structs.replace(pod, status=status))

    def _end(self, run: JobRun) -> None:
        run.ended = self.now
        self._ended += 1
        self._touched.update(run.nodes.values())
        for pod in run.pods:
            self._of.pop(pod.metadata.uid, None)
            self.core.drop_pod(pod)
        run.pods = []
        self.core.drop_group(f"{SPACE}/{_name(run)}")
        if self._progress is not None and self._ended % 256 == 0:
            self._progress(self._ended, len(self.runs))

    def _fail(self, failure: NodeFailure) -> None:
        node = self._nodes.get(failure.node)
        if node is None:
            return
        lost = {id(run): run for run in self.runs if run.running and failure.node in run.nodes.values()}
        self.core.cache.drop_node(failure.node)
        self._touched.add(failure.node)
        for run in lost.values():
            if any(pod.spec.node_name == failure.node for pod in run.running.values()):
                run.restarts += 1
                self._restart(run)
        if failure.seconds:
            self._at(failure.at + failure.seconds, lambda: self._return(node))

    def _return(self, node: Node) -> None:
        self.core.cache.set_node(node)
        self._touched.add(node.metadata.name)

    def _restart(self, run: JobRun) -> None:
        """It lost a pod: all of it stops and comes anew. What it had done is lost."""
        if run.started < 0 or run.attempt < 1:
            self._waiting -= 1
        pods = [*run.running.values(), *run.waiting.values()]
        self._touched.update(run.nodes.values())
        run.running, run.waiting = {}, {}
        run.started = -1.0
        for pod in pods:
            self._leaving.discard(pod.metadata.uid)
            self._of.pop(pod.metadata.uid, None)
            self.core.drop_pod(pod)
        self.core.drop_group(f"{SPACE}/{_name(run)}")
        self._arrive(run)

    # ---- the scheduler

    def _drain(self) -> None:
        while (step := self.core.step(self.now)) is not None:
            self._carry_out(step)
            if self.core.faults:
                raise self.core.faults[0].error

    def _carry_out(self, step: Step) -> None:
        if step.decision is not None:
            self._decisions += 1
            if step.decision.assignments:
                self._start(self.core.confirm(step.decision))
        for eviction in step.evictions:
            self._evict(eviction.pod.uid)

    def _start(self, nodes: Mapping[str, str]) -> None:
        """Pods of one job."""
        if not nodes:
            return
        run, uids = self._of[next(iter(nodes))], list(nodes)
        status = msgspec.structs.replace(_PENDING, phase="Running", start_time=self._stamp())
        for uid, node in nodes.items():
            self._bind(run, uid, node, status)
        attempt, ends = run.attempt, self.now + run.job.duration
        self._progressed = self.now
        if self._one_by_one:
            for one in uids:
                self._at(ends, lambda uid=one: self._finish(run, uid, attempt))  # type: ignore[misc]
        else:
            self._at(ends, lambda: self._finish_together(run, uids, attempt))

    def _bind(self, run: JobRun, uid: str, node: str, status: PodStatus) -> None:
        pod = run.waiting.pop(uid)
        bound = Pod(pod.metadata, msgspec.structs.replace(pod.spec, node_name=node), status)
        run.running[uid] = bound
        run.nodes[int(uid.rpartition("-")[2])] = node
        self._touched.add(node)
        self.core.bound(uid, node)
        self.core.cache.set_pod(bound)
        if run.started < 0 and len(run.nodes) >= (run.job.minimum or run.job.pods):
            run.started = self.now
            self._waiting -= 1
            if run.first_started < 0:
                run.first_started = self.now

    def _evict(self, uid: str) -> None:
        run = self._of.get(uid)
        if run is None or uid not in run.running or uid in self._leaving:
            return
        if not self.core.still_wanted(uid, self.now):
            self.core.not_sent(uid)
            return
        pod = run.running[uid]
        self._leaving.add(uid)
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=self._stamp())
        self.core.cache.set_pod(msgspec.structs.replace(pod, metadata=meta))
        attempt = run.attempt
        self._at(self.now + _STOP, lambda: self._stopped(run, attempt))

    def _stopped(self, run: JobRun, attempt: int) -> None:
        if run.attempt == attempt and run.ended < 0:
            run.preemptions += 1
            self._restart(run)

    # ---- numbers

    def _measure(self) -> None:
        column = self.core.cache.state.resources.find(self._resource)
        if column is None:
            return
        self._count(column)
        taken, total, scraps = self._sums
        point = (self.now, taken, total, self._waiting, scraps)
        if self._usage and self._usage[-1][0] == self.now:
            self._usage[-1] = point
        elif not self._usage or self._usage[-1][1:] != point[1:]:
            self._usage.append(point)

    def _count(self, column: int) -> None:
        """Nodes that were touched, into the sums."""
        state, counts, (taken, total, scraps) = self.core.cache.state, self._counts, self._sums
        alloc, used = state.alloc, state.used
        for name in self._touched:
            row, before = state.row(name), counts.get(name, (0, 0))
            now = (alloc.item(row, column), used.item(row, column)) if row is not None else (0, 0)
            if now != before:
                counts[name] = now
                total += now[0] - before[0]
                taken += now[1] - before[1]
                scraps += _scraps(*now) - _scraps(*before)
        self._touched.clear()
        self._sums = (taken, total, scraps)


def _scraps(there: int, used: int) -> int:
    """What is free on a node that is partly used."""
    return there - used if 0 < used < there else 0


def _name(run: JobRun) -> str:
    return f"j{run.number}"


def _stored(node: dict[str, Any]) -> dict[str, Any]:
    meta = {**node["metadata"], "uid": f"n-{node['metadata']['name']}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**node, "metadata": meta}


def _counted(trace: Trace, core: SchedulerCore) -> str:
    """What utilisation is told of: the extended resource that most jobs ask for, else cpu."""
    asked: dict[str, int] = {}
    for job in trace.jobs:
        for name in job.requests:
            if "/" in name and core.cache.state.resources.find(name) is not None:
                asked[name] = asked.get(name, 0) + 1
    return max(sorted(asked), key=lambda name: asked[name]) if asked else "cpu"
