"""Counts are not materialised: whatever number an object asks for, one reconcile is short and creates a few hundred.

Each of these objects passes admission on a real server too. The reconciles are answered here, not stored: what is
measured is what the controller itself does with the number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.e2e.grove_short import clique, cliqueset, group
from tests.support.steps import counted

from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS
from kohort.controllers.controller import Controller, Key
from kohort.controllers.reconcile import CREATES_AT_MOST, Answer, Event, ReconcileError, Refusal, Result, Write
from kohort.gang.compile import CompileContext
from kohort.kinds.batch.control.job.controller import job_controller
from kohort.kinds.grove.control.controller import (
    podcliqueset_controller,
)
from kohort.kinds.jobset.control.controller import jobset_controller
from kohort.kinds.leaderworkerset.control.controller import leaderworkerset_controller

MOST = 2**31 - 1
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
STEPS = 8_000_000  # about a second: a thousand times less than what the numbers here took once
SLACK = 20  # writes that belong to the object itself: finalizer, status, Workload, Service
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}


@dataclass
class Known:
    """A reader of what a server would hold, and the answers it would give."""

    objects: list[Object] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def get(self, kind: str, key: Key) -> Object | None:
        found = (one for one in self.objects if (one["kind"], one["metadata"]["name"]) == (kind, key.name))
        return next(found, None)

    def indexed(self, kind: str, index: str, value: Hashable) -> list[Object]:
        indexers = [one.indexers for one in self.controller.watches if one.named == kind and index in one.indexers]
        if not indexers:
            return []
        return [one for one in self.objects if one["kind"] == kind and value in set(indexers[0][index](one))]

    def answer(self, write: Write) -> Answer:
        self.writes.append(write)
        known = self.get(write.kind, Key(write.namespace, write.name)) or {}
        if write.verb == "create":
            meta = {**write.body["metadata"], "uid": f"{write.kind}-{len(self.writes)}", "resourceVersion": "1"}
            return Answer({**write.body, "metadata": {"name": f"drawn-{len(self.writes)}", **meta}})
        if write.verb in {"update", "apply"}:
            return Answer({**known, **write.body})
        body = write.body or {}
        meta = {**(known.get("metadata") or {}), **(body.get("metadata") or {})}
        return Answer({**known, **body, "metadata": meta})

    def reconcile(self, controller: Controller, name: str) -> Result:
        self.controller = controller
        steps = controller.reconcile(Key("lab", name), self, NOW)
        answers: list[Answer] | None = None
        while True:
            try:
                step = next(steps) if answers is None else steps.send(answers)
            except StopIteration as end:
                found: Result = end.value
                return found
            self.events += step.events
            answers = [self.answer(write) for write in step.writes]

    def created(self, kind: str = "") -> list[Write]:
        return [one for one in self.writes if one.verb == "create" and kind in {"", one.kind}]


def context() -> CompileContext:
    base = Context.of("1.37")
    return replace(CompileContext(base.release, base.gates, base.options), options=base.options | DEFAULT_OPTIONS)


def stored(body: Object, **status: Any) -> Object:
    meta = {"namespace": "lab", "uid": f"uid-{body['kind']}", "generation": 1, "resourceVersion": "1"}
    return {**body, "metadata": {**meta, **body["metadata"]}, **({"status": status} if status else {})}


def job(**spec: Any) -> Object:
    whole = {"completionMode": "Indexed", "template": {"spec": POD}, **spec}
    return stored({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": whole})


def jobset(replicas: int, **spec: Any) -> Object:
    template = {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": POD}}}
    parts = [{"name": "w", "replicas": replicas, "template": template}]
    whole = {"replicatedJobs": parts, **spec}
    return stored(
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "x"}, "spec": whole}
    )


def lws(replicas: int, size: int, **spec: Any) -> Object:
    template = {"size": size, "workerTemplate": {"spec": {"containers": POD["containers"]}}}
    whole = {"replicas": replicas, "startupPolicy": "LeaderCreated", "leaderWorkerTemplate": template, **spec}
    return stored(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "x"},
            "spec": whole,
        }
    )


def of_jobs() -> Controller:
    return job_controller(context())


def of_sets() -> Controller:
    return jobset_controller(context())


def of_leaders() -> Controller:
    return leaderworkerset_controller(context())


def of_cliquesets() -> Controller:
    return podcliqueset_controller(context())


SHORT: dict[str, tuple[Callable[[], Controller], Object]] = {
    "Job parallelism": (of_jobs, job(parallelism=MOST, completions=MOST)),
    "Job success policy": (
        of_jobs,
        job(parallelism=1, completions=MOST, successPolicy={"rules": [{"succeededIndexes": f"0-{MOST - 2}"}]}),
    ),
    "Job completed indexes": (
        of_jobs,
        {**job(parallelism=4, completions=MOST), "status": {"completedIndexes": f"0-{MOST - 9}", "succeeded": 9}},
    ),
    "JobSet replicas": (of_sets, jobset(MOST)),
    "JobSet replicas in a gang": (of_sets, jobset(MOST, scheduling=GANG)),
    "LeaderWorkerSet replicas": (of_leaders, lws(MOST, 1)),
    "LeaderWorkerSet size": (of_leaders, lws(1, 2_000_000)),
    "LeaderWorkerSet replicas and size": (of_leaders, lws(MOST, MOST)),
    "LeaderWorkerSet gangs": (
        of_leaders,
        lws(MOST, 2, scheduling={"replica": {"schedulingPolicy": {"gang": {}}}}),
    ),
    "LeaderWorkerSet partition": (
        of_leaders,
        lws(MOST, 1, rolloutStrategy={"rollingUpdateConfiguration": {"partition": 5, "maxUnavailable": "100%"}}),
    ),
    "PodCliqueSet replicas": (of_cliquesets, stored(cliqueset("x", clique("a", 1), replicas=MOST))),
    "PodCliqueSet of 5,000": (of_cliquesets, stored(cliqueset("x", clique("a", 1), replicas=5000))),
    "PodCliqueSet scaling group": (
        of_cliquesets,
        stored(cliqueset("x", clique("a", 1), groups=[group("g", ["a"], replicas=MOST, least=MOST)])),
    ),
}


@pytest.mark.parametrize("case", SHORT)
def test_one_reconcile_is_short_whatever_the_number(case: str) -> None:
    controller, obj = SHORT[case]
    known, made = Known([obj]), controller()
    with counted() as steps, suppress(ReconcileError):
        known.reconcile(made, "x")
    assert steps.count < STEPS
    by_kind = {one.kind for one in known.created()}
    assert all(len(known.created(kind)) <= 2 * CREATES_AT_MOST for kind in by_kind)  # leaders, then workers
    assert len(known.writes) <= 3 * CREATES_AT_MOST + SLACK
    assert known.writes or known.events  # it has begun, or says why not


@pytest.mark.parametrize(
    ("controller", "body", "kind"),
    [
        (of_jobs, job(parallelism=600, completions=600), "Pod"),
        (of_sets, jobset(600), "Job"),
        (of_leaders, lws(600, 1), "Pod"),
        (of_leaders, lws(1, 601), "Pod"),
        (of_cliquesets, stored(cliqueset("x", clique("a", 1), replicas=600)), "PodClique"),
    ],
)
def test_what_is_left_is_made_by_the_next_reconciles(
    controller: Callable[[], Controller], body: Object, kind: str
) -> None:
    known, made = Known([body]), controller()
    for _ in range(4):
        before = len(known.writes)
        result = known.reconcile(made, "x")
        objects = {(one["kind"], one["metadata"]["name"]): one for one in known.objects}
        for write, answer in [(one, known.answer(one)) for one in known.writes[before:] if one.verb == "create"]:
            assert answer.object is not None
            objects[write.kind, answer.object["metadata"]["name"]] = answer.object
        known.objects = list(objects.values())
        if result.requeue_after != 0.0:
            break
    names = {one["metadata"]["name"] for one in known.objects if one["kind"] == kind}
    assert len(names) >= 600


class _Quota(Known):
    """A namespace in which nothing more may be made."""

    def answer(self, write: Write) -> Answer:
        if write.verb != "create" or write.kind != "Job":
            return super().answer(write)
        self.writes.append(write)
        return Answer(refusal=Refusal(403, "Forbidden", "exceeded quota: jobs, used: 100, limited: 100"))


def test_jobs_that_a_quota_refuses_are_not_all_tried() -> None:
    """Every reconcile would send hundreds of requests of which each is refused for the same reason."""
    known = _Quota([jobset(MOST)])
    with pytest.raises(ReconcileError, match="exceeded quota") as caught:
        known.reconcile(of_sets(), "x")
    assert len(known.created("Job")) <= 50
    assert len(str(caught.value)) < 10_000
    assert [one.reason for one in known.events].count("JobCreationFailed") <= 50
