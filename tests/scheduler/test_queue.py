"""Whose turn it is: order, backoff, what wakes, and that nobody is lost."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.place.profile import Profile
from kohort.scheduler.queue import Queue, QueuedRoot, SubQueue
from kohort.scheduler.settings import SchedulerSettings


def put(queue: Queue, key: str, **more: Any) -> QueuedRoot:
    facts = {"priority": 0, "age": ("2026", len(queue)), "size": 1, "gated": False, "now": 0.0, **more}
    return queue.put(key, **facts)


def turns(queue: Queue, now: float = 0.0) -> list[str]:
    found = []
    while (entry := queue.pop(now)) is not None:
        found.append(entry.key)
        queue.placed(entry, now, more=False)
    return found


def test_c3_priority_first_then_age() -> None:
    queue = Queue(SchedulerSettings())
    put(queue, "young", age=("2026", 2))
    put(queue, "old", age=("2025", 9))
    put(queue, "high", priority=5, age=("2027", 0))
    assert turns(queue) == ["high", "old", "young"]


def test_a_root_that_becomes_older_moves_up() -> None:
    queue = Queue(SchedulerSettings())
    put(queue, "a", age=("2026", 1))
    put(queue, "b", age=("2026", 2))
    put(queue, "b", age=("2026", 0))
    assert turns(queue) == ["b", "a"]


def test_q9_a_gate_holds_a_root_that_is_active() -> None:
    queue = Queue(SchedulerSettings())
    put(queue, "g")
    put(queue, "g", gated=True)
    assert queue.pop(0.0) is None
    put(queue, "g")
    assert turns(queue) == ["g"]


def test_c7_leftovers_keep_their_age() -> None:
    queue = Queue(SchedulerSettings())
    put(queue, "g", age=("2026", 1))
    put(queue, "z", age=("2026", 2))
    first = queue.pop(0.0)
    assert first is not None
    queue.placed(first, 0.0, more=True)
    assert turns(queue) == ["g", "z"]


@pytest.mark.parametrize(("size", "longest"), [(1, 10.0), (4, 20.0), (100, 100.0)])
def test_c6_backoff_doubles_up_to_a_limit_that_grows_with_the_group(size: int, longest: float) -> None:
    queue = Queue(SchedulerSettings())
    entry = put(queue, "g", size=size)
    waits = []
    for _ in range(9):
        queue.failed(entry, "lack", 0.0)
        waits.append(entry.until)
    assert waits == [min(2.0**n, longest) for n in range(9)]


def test_a_failed_root_waits_for_what_it_lacked_not_for_a_timer() -> None:
    queue = Queue(SchedulerSettings(profile=Profile(patience=0)))
    put(queue, "g")
    entry = queue.pop(0.0)
    assert entry is not None
    queue.failed(entry, "lack", 0.0)
    assert queue.pop(100.0) is None
    queue.wake(100.0, lambda *_: False)
    assert queue.pop(100.0) is None
    queue.wake(100.0, lambda hint, _: hint == "lack")
    assert turns(queue, 100.0) == ["g"]


def test_a_root_that_is_woken_in_its_backoff_goes_when_that_ends() -> None:
    queue = Queue(SchedulerSettings())
    entry = put(queue, "g")
    queue.failed(entry, "lack", 0.0)
    queue.wake(0.5, lambda *_: True)
    assert queue.pop(0.9) is None
    assert queue.next_timer() == 1.0
    assert turns(queue, 1.0) == ["g"]


def test_of_many_that_lack_the_same_one_is_woken_and_the_next_after_it() -> None:
    queue = Queue(SchedulerSettings())
    for number in range(100):
        queue.failed(put(queue, f"g{number:02}"), "lack", 0.0)
    queue.wake(5.0, lambda *_: True)
    first = queue.pop(5.0)
    assert first is not None
    assert first.key == "g00"
    assert queue.pop(5.0) is None
    queue.placed(first, 5.0, more=False)
    queue.wake_next("lack", 5.0, lambda *_: True)
    second = queue.pop(5.0)
    assert second is not None
    assert second.key == "g01"
    queue.failed(second, "lack", 5.0)
    assert queue.pop(5.0) is None, "what did not help one does not help its equals"


def test_failing_does_not_make_a_root_younger() -> None:
    queue = Queue(SchedulerSettings())
    old = put(queue, "old", age=("2025", 0))
    put(queue, "young", age=("2026", 0))
    queue.failed(old, "lack", 0.0)
    queue.wake(2.0, lambda *_: True)
    assert turns(queue, 2.0) == ["old", "young"]


def test_whoever_waits_is_tried_again_after_a_while_in_any_case() -> None:
    queue = Queue(SchedulerSettings(retry_after=300.0, profile=Profile(patience=0)))
    queue.failed(put(queue, "a"), "lack", 0.0)
    queue.erred(put(queue, "b"), 0.0)
    queue.preempting(put(queue, "c"), "lack", 0.0)
    assert queue.pop(299.0) is None
    assert turns(queue, 300.0) == ["a", "b", "c"]


def test_whoever_is_proven_not_to_fit_and_nobody_reads_why_waits_for_a_gain() -> None:
    queue = Queue(SchedulerSettings(profile=Profile(patience=0)))
    queue.failed(put(queue, "a"), "lack", 0.0, by_clock=False)
    assert queue.next_timer() is None
    assert queue.pop(86_400.0) is None
    queue.wake(86_400.0, lambda *_: True)
    assert turns(queue, 86_400.0) == ["a"]


def test_a_try_by_the_clock_costs_no_pause() -> None:
    """It has waited for long, and what is gained right after it is for it."""
    queue = Queue(SchedulerSettings(retry_after=300.0, profile=Profile(patience=0)))
    queue.failed(put(queue, "a"), "lack", 0.0)
    entry = queue.pop(300.0)
    assert entry is not None
    queue.failed(entry, "lack", 300.0)
    queue.wake(300.1, lambda *_: True)
    assert turns(queue, 300.1) == ["a"]


def test_of_those_that_lack_the_same_the_next_may_have_room_held_while_the_first_rests() -> None:
    queue = Queue(SchedulerSettings(profile=Profile(patience=60.0)))
    for name in ("a", "b"):
        queue.failed(put(queue, name), "lack", 0.0)
    assert [one.key for one in queue.impatient(60.0)] == ["a"]
    assert [one.key for one in queue.impatient(60.0, {"a"})] == ["b"]
    assert queue.impatient(60.0, {"a", "b"}) == []


def test_a_misconfigured_root_waits_for_its_own_tree() -> None:
    queue = Queue(SchedulerSettings())
    entry = put(queue, "g")
    queue.erred(entry, 0.0)
    queue.wake(5.0, lambda *_: True)
    assert entry.queue is SubQueue.UNSCHEDULABLE
    put(queue, "g", now=5.0)
    assert turns(queue, 5.0) == ["g"]


def test_b3_a_refused_binding_is_no_hot_loop() -> None:
    queue = Queue(SchedulerSettings())
    entry = put(queue, "g")
    waits = []
    for _ in range(5):
        queue.later(entry, 0.0)
        waits.append(entry.until)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0]


def test_when_its_patience_ends_a_root_is_tried_once_more() -> None:
    queue = Queue(SchedulerSettings(profile=Profile(patience=60.0)))
    entry = put(queue, "g")
    queue.failed(entry, "lack", 0.0)
    assert queue.pop(59.0) is None
    assert queue.pop(60.0) is entry
    queue.failed(entry, "lack", 60.0)
    assert queue.pop(200.0) is None


def test_failures_that_take_long_pause_their_namespace_and_nobody_else() -> None:
    queue = Queue(SchedulerSettings(first_backoff=0.1, longest_backoff=0.1))
    dear = put(queue, "dear", namespace="loud")
    queue.pop(0.0)
    queue.failed(dear, "lack", 0.0)
    queue.charge("dear", 0.205, 0.0)
    put(queue, "fresh", namespace="loud")
    put(queue, "other", namespace="quiet")
    queue.wake(0.15, lambda *_: True)
    assert turns(queue, 0.15) == ["other"]
    assert turns(queue, 0.21) == ["fresh"], "a first try waits as long as the failure took"
    assert turns(queue, 1.9) == []
    assert turns(queue, 2.01) == ["dear"], "a retry ten times as long"


def test_a_gang_that_was_begun_does_not_pause() -> None:
    queue = Queue(SchedulerSettings())
    dear = put(queue, "dear", namespace="loud")
    queue.pop(0.0)
    queue.failed(dear, "lack", 0.0)
    queue.charge("dear", 1.0, 0.0)
    put(queue, "begun", namespace="loud", begun=True)
    assert turns(queue, 0.1) == ["begun"]


def test_failures_that_are_cheap_pause_nobody() -> None:
    queue = Queue(SchedulerSettings())
    cheap = put(queue, "cheap", namespace="space")
    queue.pop(0.0)
    queue.failed(cheap, "lack", 0.0)
    queue.charge("cheap", 0.004, 0.0)
    put(queue, "next", namespace="space")
    assert turns(queue, 0.0) == ["next"]


def test_a_namespace_that_rests_is_passed_by_those_as_important_only() -> None:
    queue = Queue(SchedulerSettings())
    queue.rests = lambda namespace: 0.1 if namespace == "heavy" else 0.0
    put(queue, "heavy", namespace="heavy", priority=5)
    put(queue, "same", namespace="light", priority=5)
    assert turns(queue) == ["same"]
    assert queue.next_timer() == pytest.approx(0.1)
    put(queue, "less", namespace="light", priority=4)
    put(queue, "again", namespace="light", priority=5)
    assert turns(queue) == ["again", "heavy", "less"]


def test_one_that_has_rested_has_its_turn() -> None:
    queue = Queue(SchedulerSettings())
    queue.rests = lambda namespace: 0.1 if namespace == "heavy" else 0.0
    put(queue, "heavy", namespace="heavy")
    put(queue, "light", namespace="light")
    assert turns(queue) == ["light"]
    queue.rests = lambda _: 0.0
    assert turns(queue, 0.09) == []
    assert turns(queue, 0.11) == ["heavy"]


def test_a_gang_that_was_begun_does_not_rest() -> None:
    queue = Queue(SchedulerSettings())
    queue.rests = lambda _: 0.1
    put(queue, "begun", namespace="heavy", begun=True)
    assert turns(queue, 0.0) == ["begun"]


@pytest.mark.parametrize(("all_gone", "at"), [(True, 1.1), (False, 1.2)])
def test_a_root_waits_a_moment_for_the_rest_of_those_who_go_for_it(all_gone: bool, at: float) -> None:
    """Victims go together, and are seen to go one by one: between two of them it would start elsewhere than planned."""
    queue = Queue(SchedulerSettings())
    entry = put(queue, "g")
    queue.preempting(entry, "lack", 0.0)
    queue.wake(1.0, lambda _, root: root == "g")
    assert queue.pop(1.0) is None
    if all_gone:
        queue.activate("g", at, "VictimsGone")
    assert queue.pop(1.1) is (entry if all_gone else None)
    assert queue.pop(at) is (None if all_gone else entry)
