"""How many pods each ReplicaSet of a Deployment gets, what its status says, what is kept of old revisions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllermanager.build import NOW, ago, owner

from kohort.api.kind import Object
from kohort.controllermanager.deployment import constants, numbers, revisions, status
from kohort.controllers.conditions import condition


def deployment(replicas: int, surge: Any = "25%", unavailable: Any = "25%", **spec: Any) -> Object:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    found = owner("Deployment", **{"replicas": replicas, "strategy": rolling, "progressDeadlineSeconds": 60, **spec})
    found["metadata"] |= {"namespace": "lab", "uid": "d", "generation": 1}
    return found


def rs(name: str, size: int, available: int | None = None, *, age: float = 0.0, notes: Any = None) -> Object:
    up = size if available is None else available
    state = {"replicas": size, "readyReplicas": up, "availableReplicas": up, "observedGeneration": 1}
    meta = {"name": name, "uid": name, "creationTimestamp": ago(age), "generation": 1, "annotations": dict(notes or {})}
    return {"metadata": meta, "spec": {"replicas": size}, "status": {**state, "terminatingReplicas": 0}}


def sized(found: numbers.Sizes) -> dict[str, int]:
    return {one["metadata"]["name"]: size for one, size in found}


@pytest.mark.parametrize(
    ("wanted", "surge", "unavailable", "numbers_"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (4, 0, 0, (0, 1)),
        (3, 2, "200%", (2, 3)),
        (0, 1, 1, (1, 0)),
    ],
)
def test_bounds(wanted: int, surge: Any, unavailable: Any, numbers_: tuple[int, int]) -> None:
    """Surge is rounded up, unavailable down, and not both may be nothing."""
    found = deployment(wanted, surge, unavailable)
    assert (numbers.max_surge(found), numbers.max_unavailable(found)) == numbers_


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 20),
    st.integers(0, 8),
    st.integers(0, 8),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=4),
)
def test_a_rolling_update_never_exceeds_its_bounds(
    wanted: int, surge: int, unavailable: int, olds: list[tuple[int, int]]
) -> None:
    """Whatever is there: no more pods than allowed are asked for, and no available pod goes that is needed."""
    found = deployment(wanted, surge, unavailable)
    old = [rs(f"o{index}", size, min(size, up), age=index) for index, (size, up) in enumerate(olds)]
    new = rs("new", 0)
    size = numbers.new_size(found, [*old, new], new)
    total = numbers.total(old)
    assert 0 <= size <= wanted
    assert total + size <= max(total, wanted + numbers.max_surge(found))
    grown = rs("new", size, 0)
    losses = {one["metadata"]["name"]: numbers.replicas(one) - left for one, left in numbers.shrunk(found, old, grown)}
    least = wanted - numbers.max_unavailable(found)
    healthy = numbers.counted(old, "availableReplicas")
    lost = sum(
        max(0, losses.get(one["metadata"]["name"], 0) - (numbers.replicas(one) - numbers.available(one))) for one in old
    )
    assert healthy - lost >= min(healthy, least)


def test_pods_that_are_not_available_go_first_of_the_oldest() -> None:
    found = deployment(10, 3, 2)
    old = [rs("younger", 5, 2, age=1), rs("older", 5, 5, age=9)]
    assert sized(numbers.shrunk(found, old, rs("new", 3, 3))) == {"younger": 2, "older": 3}


def test_pods_that_were_just_given_up_are_not_counted_again() -> None:
    """Scaled from 6 to 3, its status still tells of 4 that are available: one may go, not two."""
    old = rs("old", 3)
    old["status"]["availableReplicas"] = 4
    assert sized(numbers.shrunk(deployment(4, 3, 2), [old], rs("new", 4, 0))) == {"old": 2}


def test_a_stuck_new_set_takes_nothing_from_the_old() -> None:
    assert numbers.shrunk(deployment(4, 1, 0), [rs("old", 4)], rs("new", 1, 0)) == []


# ---- scaling while a rollout is under way


def noted(desired: int, most: int) -> dict[str, str]:
    return {constants.DESIRED: str(desired), constants.MAXIMUM: str(most)}


def test_scaling_goes_by_shares() -> None:
    """Upstream's example: 10 + 3 of surge as 8 and 5, scaled to 15 of 18."""
    sets = [rs("old", 8, age=9, notes=noted(10, 13)), rs("new", 5, age=1, notes=noted(10, 13))]
    found = deployment(15, 3, 2)
    assert numbers.is_scaled(found, sets)
    assert sized(numbers.spread(found, sets[1], sets[:1])) == {"old": 11, "new": 7}
    assert sized(numbers.spread(deployment(5, 3, 2), sets[1], sets[:1])) == {"old": 5, "new": 3}
    assert sized(numbers.spread(deployment(0, 3, 2), sets[1], sets[:1])) == {"old": 0, "new": 0}
    assert not numbers.is_scaled(deployment(10, 3, 2), sets)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 40), st.integers(0, 5), st.lists(st.integers(1, 12), min_size=2, max_size=5))
def test_shares_add_up(wanted: int, surge: int, sizes: list[int]) -> None:
    before = sum(sizes)
    sets = [rs(f"s{index}", size, 0, age=index, notes=noted(before, before)) for index, size in enumerate(sizes)]
    found = deployment(wanted, surge, 1)
    spread = numbers.spread(found, sets[0], sets[1:])
    target, total = wanted + surge if wanted else 0, sum(size for _, size in spread)
    assert total == target if target >= before else target <= total <= before  # the newest alone gives up the remainder
    assert all(size >= 0 for _, size in spread)


def test_one_set_simply_follows() -> None:
    only = rs("only", 3, notes=noted(3, 4))
    assert sized(numbers.spread(deployment(7), only, [])) == {"only": 7}
    assert sized(numbers.spread(deployment(7), rs("new", 0), [rs("old", 0, age=5)])) == {"new": 7}
    assert sized(numbers.spread(deployment(7), None, [rs("a", 0, age=5), rs("b", 0, age=1)])) == {"b": 7}


# ---- what is kept


def test_the_lowest_revisions_beyond_the_limit_go_unless_they_have_pods() -> None:
    old = [rs(f"r{number}", 0, notes={constants.REVISION: str(number)}) for number in (3, 1, 2, 4)]
    old[1]["status"]["replicas"] = 1  # r1 still has a pod
    names = [one["metadata"]["name"] for one in numbers.to_clean(deployment(1, revisionHistoryLimit=1), old)]
    assert names == ["r2", "r3"]
    assert numbers.to_clean(deployment(1, revisionHistoryLimit=9), old) == []


def test_a_set_that_is_rolled_back_to_remembers_its_numbers() -> None:
    found = deployment(1)
    found["metadata"]["annotations"] = {"team": "a", constants.REVISION: "3"}
    other = rs("y", 0, notes={constants.REVISION: "3"})
    known = revisions.new_annotations(found, rs("x", 1, notes={constants.REVISION: "1"}), [other])
    assert known == {"team": "a", constants.REVISION: "4", constants.REVISION_HISTORY: "1"}
    other = rs("y", 0, notes={constants.REVISION: "7"})
    long = {**known, constants.REVISION_HISTORY: "9," * 999 + "9"}
    again = revisions.new_annotations(found, rs("x", 1, notes=long), [other])
    assert again[constants.REVISION] == "8"
    assert again[constants.REVISION_HISTORY].endswith("9,4")
    assert len(again[constants.REVISION_HISTORY]) <= constants.LONGEST_HISTORY


def test_a_name_that_is_taken_leads_to_another() -> None:
    found = deployment(1)
    names = {
        revisions.new_set({**found, "status": {"collisionCount": count}})["metadata"]["name"] for count in range(9)
    }
    assert len(names) == 9
    made = revisions.new_set(found)
    assert revisions.is_same(found, made)
    assert made["spec"]["selector"]["matchLabels"].items() <= made["spec"]["template"]["metadata"]["labels"].items()


def test_amounts_in_another_spelling_are_the_same_template() -> None:
    found = deployment(1)
    found["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    made = revisions.new_set(found)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000m"}}
    assert revisions.is_same(found, made)


# ---- conditions


def told(found: Object, sets: list[Object], new: Object | None, seconds: float = 0.0) -> dict[str, tuple[str, str]]:
    """Counts and conditions are written into the Deployment, as a reconcile would."""
    now = NOW + timedelta(seconds=seconds)
    state = status.counts(found, found.get("status") or {}, sets, new, now)
    status.follow_rollout(found, state, sets, new, now)
    found["status"] = state
    return {one["type"]: (one["status"], one["reason"]) for one in state["conditions"]}


def test_a_rollout_progresses_and_ends() -> None:
    found, new = deployment(2, 1, 0), rs("new", 2, 0)
    found["status"] = {"conditions": []}
    assert told(found, [new], new)["Available"] == ("False", constants.TOO_FEW)
    new["status"]["readyReplicas"] = new["status"]["availableReplicas"] = 1
    assert told(found, [new], new)["Progressing"] == ("True", constants.UPDATED)
    new["status"]["readyReplicas"] = new["status"]["availableReplicas"] = 2
    done = told(found, [new], new)
    assert done == {"Available": ("True", constants.ENOUGH), "Progressing": ("True", constants.COMPLETE)}
    new["status"]["availableReplicas"] = 1  # a pod that fails later is no new rollout
    assert told(found, [new], new, 1000)["Progressing"] == ("True", constants.COMPLETE)


def test_a_rollout_that_does_not_move_has_timed_out_until_it_moves() -> None:
    found, new = deployment(2), rs("new", 2, 1)
    found["status"] = {}
    assert told(found, [new], new)["Progressing"] == ("True", constants.UPDATED)
    assert status.deadline_in(found, found["status"], NOW) == 60
    assert told(found, [new], new, 60)["Progressing"] == ("True", constants.UPDATED)
    assert told(found, [new], new, 61)["Progressing"] == ("False", constants.TIMED_OUT)
    assert status.deadline_in(found, found["status"], NOW + timedelta(seconds=61)) is None
    new["status"]["readyReplicas"] = 2
    assert told(found, [new], new, 99)["Progressing"] == ("True", constants.UPDATED)


def test_without_a_deadline_nobody_counts() -> None:
    found, new = deployment(2, progressDeadlineSeconds=constants.NO_DEADLINE), rs("new", 2)
    assert "Progressing" not in told(found, [new], new)


def test_what_the_new_set_cannot_do_is_said_of_the_deployment() -> None:
    found, new, old = deployment(2), rs("new", 2, 0), rs("old", 1)
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    new["status"]["conditions"] = [{**failure, "lastTransitionTime": ago(0)}]
    assert told(found, [old, new], new)["ReplicaFailure"] == ("True", "FailedCreate")
    assert (condition(found["status"], "ReplicaFailure") or {})["message"] == "quota"
    new["status"]["conditions"] = []
    assert "ReplicaFailure" not in told(found, [old, new], new)
