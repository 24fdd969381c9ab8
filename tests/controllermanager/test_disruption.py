"""How many pods a budget expects and allows to go, one reconcile at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.controllermanager.build import NOW, ago, owner, pod

from kohort.api.kind import Object
from kohort.controllermanager.disruption.reconcile import DELETION_TIMEOUT, reconcile
from kohort.controllers.reconcile import Answer, Refusal, Result, Write

SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-rs", "controller": True}
CUSTOM = {"apiVersion": "example.com/v1", "kind": "Farm", "name": "farm", "uid": "uid-farm", "controller": True}


def budget(status: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    meta = {"name": "web", "namespace": "lab", "uid": "uid-pdb", "generation": 2, "resourceVersion": "7"}
    given = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": given,
        "status": dict(status or {}),
    }


def replicas(kind: str, name: str, uid: str, count: int, above: Mapping[str, Any] | None = None) -> Object:
    found = owner(kind, name, replicas=count)
    found["metadata"] |= {"uid": uid, "namespace": "lab", **({"ownerReferences": [above]} if above else {})}
    return found


class Run:
    """What one reconcile wrote and said."""

    def __init__(
        self,
        obj: Object,
        pods: list[Object],
        owners: list[Object] | None = None,
        answers: Mapping[str, Answer] | None = None,
    ) -> None:
        known = {(one["kind"], one["metadata"]["name"]): one for one in owners or ()}
        self.writes: list[Write] = []
        self.reasons: list[str] = []
        steps = reconcile(obj, pods, lambda kind, _, name: known.get((kind, name)), NOW)
        given: list[Answer] | None = None
        try:
            while True:
                step = next(steps) if given is None else steps.send(given)
                self.writes += step.writes
                self.reasons += [event.reason for event in step.events]
                given = [(answers or {}).get(f"{one.verb} {one.subresource}", Answer(one.body)) for one in step.writes]
        except StopIteration as end:
            self.result: Result = end.value

    @property
    def status(self) -> dict[str, Any]:
        (write,) = [one for one in self.writes if one.verb == "update"]
        assert write.body["metadata"]["resourceVersion"] == "7"  # an eviction in between is a conflict
        found: dict[str, Any] = write.body["status"]
        return found

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
        one, two, three, four = (self.status[name] for name in names)
        return one, two, three, four


def pods(count: int, ready: int | None = None, owner: Mapping[str, Any] = SET) -> list[Object]:
    least = count if ready is None else ready
    return [pod(f"p{n}", ready=10.0 if n < least else None, ownerReferences=[owner]) for n in range(count)]


@pytest.mark.parametrize(
    ("spec", "ready", "expected"),
    [
        ({"minAvailable": 2}, 4, (4, 2, 4, 2)),
        ({"minAvailable": 5}, 4, (4, 5, 4, 0)),
        ({"minAvailable": "50%"}, 4, (5, 3, 4, 1)),  # of 5 replicas, rounded up
        ({"maxUnavailable": 1}, 4, (5, 4, 4, 0)),
        ({"maxUnavailable": "40%"}, 4, (5, 3, 4, 1)),
        ({"maxUnavailable": 9}, 1, (5, 0, 1, 1)),
        ({}, 4, (0, 0, 4, 0)),
    ],
)
def test_numbers_and_percentages(spec: dict[str, Any], ready: int, expected: tuple[int, int, int, int]) -> None:
    sets = [replicas("ReplicaSet", "web", "uid-rs", 5)]
    assert Run(budget(**spec), pods(4, ready), sets).numbers == expected


def test_the_replicas_of_a_deployment_count_once_for_all_its_sets() -> None:
    above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "dep", "uid": "uid-dep", "controller": True}
    other = {**SET, "name": "next", "uid": "uid-next"}
    owners = [
        replicas("Deployment", "dep", "uid-dep", 6),
        replicas("ReplicaSet", "web", "uid-rs", 3, above),
        replicas("ReplicaSet", "next", "uid-next", 4, above),
    ]
    run = Run(budget(maxUnavailable=1), [*pods(3), *pods(4, owner=other)], owners)
    assert run.numbers[:2] == (6, 5)


def test_the_scale_of_any_other_kind_is_asked_for() -> None:
    scale = {"metadata": {"name": "farm", "uid": "uid-farm"}, "spec": {"replicas": 4}}
    run = Run(budget(maxUnavailable=1), pods(3, owner=CUSTOM), answers={"get scale": Answer(scale)})
    assert run.numbers == (4, 3, 3, 0)
    assert len([one for one in run.writes if one.verb == "get"]) == 1  # once, however many pods


def test_without_a_scale_nothing_is_allowed() -> None:
    missing = Answer(refusal=Refusal(404, "NotFound", "the server could not find the requested resource"))
    there = Answer({"metadata": {"name": "farm", "uid": "uid-farm"}})
    known = {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
    run = Run(budget(known, maxUnavailable=1), pods(3, owner=CUSTOM), answers={"get scale": missing, "get ": there})
    (said,) = run.status["conditions"]
    assert run.status["disruptionsAllowed"] == 0
    assert run.status["expectedPods"] == 3  # the rest is as it was
    assert (said["status"], said["reason"]) == ("False", "SyncFailed")
    assert said["message"] == "farms.example.com does not implement the scale subresource"
    assert run.reasons == ["CalculateExpectedPodCountFailed"]


def test_an_owner_that_is_gone_allows_nothing() -> None:
    run = Run(budget(maxUnavailable=1), pods(1))
    assert run.status["conditions"][0]["message"] == 'found no controllers for pod "p0"'


def test_pods_that_nobody_controls_are_named() -> None:
    run = Run(budget(maxUnavailable=1), [pod("loose")])
    assert run.numbers == (0, 0, 1, 0)
    assert run.reasons == ["UnmanagedPods"]


def test_granted_evictions_count_as_gone_for_two_minutes() -> None:
    granted = {"p0": ago(10), "p1": ago(DELETION_TIMEOUT + 1), "p9": ago(1)}
    run = Run(budget({"disruptedPods": granted}, minAvailable=1), pods(4))
    assert run.status["disruptedPods"] == {"p0": ago(10)}
    assert run.numbers == (4, 1, 3, 2)
    assert run.reasons == ["NotDeleted"]
    assert run.result.requeue_after == pytest.approx(DELETION_TIMEOUT - 10 + 1)


def test_pods_that_are_going_are_not_healthy() -> None:
    going = pod("p9", deletionTimestamp=ago(1), ownerReferences=[SET])
    assert Run(budget(minAvailable=1), [*pods(2), going]).numbers == (3, 1, 2, 1)


def test_nothing_is_written_twice() -> None:
    first = Run(budget(minAvailable=1), pods(2))
    assert first.status["conditions"][0]["reason"] == "SufficientPods"
    again = Run(budget(first.status, minAvailable=1), pods(2))
    assert not again.writes


def test_a_conflict_is_looked_at_again_soon() -> None:
    conflict = Answer(refusal=Refusal(409, "Conflict", "changed"))
    run = Run(budget(minAvailable=1), pods(2), answers={"update status": conflict})
    assert run.result.requeue_after
