"""Which pods of a ReplicaSet go first, and what its status counts."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from tests.controllermanager.build import NOW, owner, pod

from kohort.api.kind import Object
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.replicaset.ranking import DELETION_COST, deletion_cost, to_delete
from kohort.controllermanager.replicaset.reconcile import View, reconcile
from kohort.controllers.reconcile import Answer, ReconcileError, Refusal, Result, Step


def cost(value: Any) -> dict[str, Any]:
    return {"annotations": {DELETION_COST: str(value)}}


FIRST_TO_LAST = [
    pod("unassigned", node="", phase="Pending", ready=None),
    pod("pending", phase="Pending", ready=None),
    pod("unknown", phase="Unknown", ready=None),
    pod("not-ready", ready=None),
    pod("cheap", **cost(-5)),
    pod("crowded", node="full"),
    pod("just-ready", ready=1.0),
    pod("restarted", restarts=7),
    pod("young", age=1.0),
    pod("old", age=100.0),
    pod("dear", **cost(10)),
]
CROWD = [pod(f"other-{index}", node="full") for index in range(20)]


@pytest.mark.parametrize("seed", range(5))
def test_the_pods_that_have_done_least_go_first(seed: int) -> None:
    shuffled = random.Random(seed).sample(FIRST_TO_LAST, len(FIRST_TO_LAST))
    names = [one["metadata"]["name"] for one in FIRST_TO_LAST]
    for count in range(1, len(names)):
        found = to_delete(shuffled, [*shuffled, *CROWD], count, NOW)
        assert [one["metadata"]["name"] for one in found] == names[:count]


def test_pods_of_about_the_same_age_go_by_chance_and_not_the_youngest_of_them() -> None:
    """60 and 61 seconds are one power of two: their uids decide, so a rollout does not empty one zone."""
    older, younger = pod("a", ready=61.0), pod("b", ready=60.0)
    assert to_delete([younger, older], [], 1, NOW) == [older]
    assert to_delete([pod("a", ready=61.0), pod("b", ready=20.0)], [], 1, NOW)[0]["metadata"]["name"] == "b"


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("-7", -7), ("", 0), ("+7", 0), ("007", 0), ("x", 0), ("99999999999", 0), ("-2147483648", -(2**31))],
)
def test_a_deletion_cost_that_cannot_be_read_is_none(text: str, value: int) -> None:
    assert deletion_cost(pod("a", annotations={DELETION_COST: text})) == value


def test_available_is_ready_for_long_enough() -> None:
    assert pods_.available_in(pod("a", ready=5.0), 0, NOW) == 0.0
    assert pods_.available_in(pod("a", ready=5.0), 8, NOW) == 3.0
    assert pods_.available_in(pod("a", ready=None), 8, NOW) is None
    assert pods_.next_available([pod("a", ready=5.0), pod("b", ready=7.0), pod("c")], 8, NOW) == 1.0
    assert pods_.is_available(pod("a", ready=5.0), 8, NOW + timedelta(seconds=3))


# ---- one reconcile


class Refusing:
    """Answers the writes of a reconcile: accepts so many pods, then refuses."""

    def __init__(self, accepted: int) -> None:
        self.accepted, self.tried, self.steps = accepted, 0, 0
        self.statuses: list[Object] = []

    def run(self, view: View) -> Result:
        steps = reconcile(view)
        answers = None
        while True:
            try:
                step: Step = next(steps) if answers is None else steps.send(answers)
            except StopIteration as end:
                result: Result = end.value
                return result
            self.steps += bool(step.writes)
            answers = [self.answer(write) for write in step.writes]

    def answer(self, write: Any) -> Answer:
        if write.verb == "update":
            self.statuses.append(write.body["status"])
            return Answer(write.body)
        self.tried += 1
        if self.tried > self.accepted:
            return Answer(refusal=Refusal(403, "Forbidden", "exceeded quota"))
        return Answer({**(write.body or {}), "metadata": {"name": f"p{self.tried}"}})


def replicaset(replicas: int, **meta: Any) -> Object:
    found = owner("ReplicaSet", replicas=replicas)
    found["metadata"] |= {"namespace": "lab", "uid": "rs", "generation": 3, **meta}
    return found


def view(obj: Object, *pods: Object) -> View:
    return View(obj, obj["spec"]["selector"], pods, pods, NOW)


def test_refused_pods_are_not_tried_a_thousand_times_and_the_status_says_why() -> None:
    server = Refusing(5)
    with pytest.raises(ReconcileError, match="exceeded quota"):
        server.run(view(replicaset(1000)))
    assert server.tried == 7  # 1 + 2 + 4
    (status,) = server.statuses
    (failure,) = status["conditions"]
    assert {name: failure[name] for name in ("type", "status", "reason", "message")} == {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "exceeded quota",
    }


def test_one_reconcile_makes_at_most_500_pods() -> None:
    server = Refusing(10_000)
    assert server.run(view(replicaset(1200))).requeue_after == 0.0
    assert server.tried == 500


def test_the_status_counts_active_pods_and_keeps_to_its_generation() -> None:
    reference = [{"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True, "apiVersion": "apps/v1"}]
    pods = [
        pod("ready", ownerReferences=reference),
        pod("bare", ready=None, ownerReferences=reference),
        pod("going", deletionTimestamp="2026-11-16T12:00:00Z", ownerReferences=reference),
        pod("done", phase="Succeeded", ownerReferences=reference),
    ]
    server = Refusing(0)
    server.run(view(replicaset(2), *pods))
    assert server.tried == 0
    assert server.statuses == [
        {
            "replicas": 2,
            "fullyLabeledReplicas": 2,
            "readyReplicas": 1,
            "availableReplicas": 1,
            "observedGeneration": 3,
            "terminatingReplicas": 1,
        }
    ]


def test_a_set_that_is_going_makes_no_pods() -> None:
    server = Refusing(10)
    server.run(view(replicaset(3, deletionTimestamp="2026-11-16T12:00:00Z")))
    assert server.tried == 0
