"""The arithmetic of rollouts by itself: whatever the numbers, enough groups stay ready, and all become new."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.api.kind import Object
from kohort.kinds.leaderworkerset.control import rollout
from kohort.kinds.leaderworkerset.control.rollout import Rollout, Seen


def lws(replicas: int, **rolling: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    return {"metadata": {"name": "rev"}, "spec": {"replicas": replicas, "rolloutStrategy": strategy}}


def roll(obj: Object, state: Rollout, new: set[int], ready: set[int]) -> list[tuple[Rollout, set[int]]]:
    """Groups that are to be new go, and are ready in the next step; until nothing moves. -> states, ready groups"""
    seen: list[tuple[Rollout, set[int]]] = []
    old = ready - new
    while True:
        facts = Seen(frozenset(ready), frozenset(new), frozenset(old))
        moved = rollout.go_on(obj, state, facts)
        going = {index for index in old if moved.is_new(index)}
        coming = {index for index in range(moved.groups) if index not in old | new}
        gone = {index for index in old | new if index >= moved.groups}
        old, new, ready = old - going - gone, (new | coming | going) - gone, ready - going - gone
        seen.append((moved, set(ready)))
        late = set(range(moved.groups)) - ready
        if moved == state and not late:
            return seen
        ready = ready | (late & new)
        state = moved
        assert len(seen) < 200, "it does not come to an end"


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_enough_groups_stay_ready_and_all_become_new(replicas: int, most: int, surge: int, partition: int) -> None:
    if most == surge == 0:
        most = 1
    obj = lws(replicas, maxUnavailable=most, maxSurge=surge, partition=partition)
    state = rollout.begin(obj, Rollout(replicas, replicas, 0, "old"), "old")
    every = set(range(replicas))
    seen = roll(obj, state, set(), set(every))
    assert min(len(ready) for _, ready in seen) >= replicas - most
    assert max(state.groups for state, _ in seen) <= replicas + min(surge, replicas)
    last, ready = seen[-1]
    assert last.partition == partition
    assert len([index for index in every if last.is_new(index)]) == max(0, replicas - partition)
    assert every <= ready
    if partition == 0:
        assert last.groups == replicas


def test_l_42_an_unready_group_goes_first() -> None:
    obj = lws(3, maxUnavailable=1, maxSurge=0)
    state = rollout.begin(obj, Rollout(3, 3, 0, "old"), "old")
    moved = rollout.go_on(obj, state, Seen(frozenset({0, 2}), frozenset(), frozenset({0, 1, 2})))
    assert (moved.partition, moved.ahead) == (3, (1,))
    again = rollout.go_on(obj, moved, Seen(frozenset({0, 2}), frozenset({1}), frozenset({0, 2})))
    assert (again.partition, again.ahead) == (3, (1,))  # one at a time
    done = rollout.go_on(obj, again, Seen(frozenset({0, 1, 2}), frozenset({1}), frozenset({0, 2})))
    assert (done.partition, done.ahead) == (2, (1,))


@pytest.mark.parametrize("partition", [0, 3])
def test_base_is_what_most_groups_have(partition: int) -> None:
    """A second change before the first has come to its end: groups that come back are as they were."""
    obj = lws(3, maxUnavailable=1, maxSurge=0)
    before = Rollout(3, 3, partition, "first")
    assert rollout.begin(obj, before, "second").base == ("second" if partition == 0 else "first")


def test_what_is_written_is_read_again() -> None:
    state = Rollout(3, 4, 2, "abc", (1, 0))
    stored = {"metadata": {"name": "rev-abc-1", "annotations": {rollout.ANNOTATION: state.text()}}}
    assert rollout.read(stored, lws(3), "abc") == state
    for text in ("", "{}", "[]", '{"replicas": "x"}'):
        stored["metadata"]["annotations"] = {rollout.ANNOTATION: text}
        assert rollout.read(stored, lws(3), "abc") == Rollout(3, 3, 0, "abc")
