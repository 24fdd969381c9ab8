"""Our own writes over what the watch has told, in every order in which the two can come."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kohort.api.kind import Object
from kohort.controllers.controller import Key, key_of
from kohort.controllers.overlay import FORGET, WriteOverlay

KEY = Key("lab", "p")


def pod(version: int, uid: str = "u", job: str = "j", **meta: object) -> Object:
    own = {"name": "p", "namespace": "lab", "uid": uid, "resourceVersion": str(version), "labels": {"job": job}}
    return {"metadata": {**own, **meta}}


def jobs(obj: Object) -> list[str]:
    return [obj["metadata"]["labels"]["job"]]


def test_what_was_made_is_there_before_the_watch_says_so() -> None:
    recent = WriteOverlay()
    recent.wrote(pod(5), reached="4", now=0)
    assert recent.get(KEY, None, 0) == pod(5)
    assert recent.over([], jobs, "j", 0) == [pod(5)]
    assert recent.over([], jobs, "other", 0) == []
    recent.seen(None, pod(5))
    assert recent.get(KEY, None, 0) is None  # the informer's word counts now


def test_the_watch_was_faster_than_the_answer() -> None:
    recent = WriteOverlay()
    recent.wrote(pod(5), reached="7", now=0)
    assert recent.get(KEY, None, 0) is None


def test_an_older_state_does_not_hide_ours() -> None:
    recent = WriteOverlay()
    recent.wrote(pod(5), reached="2", now=0)
    recent.seen(pod(2), pod(3))
    assert recent.get(KEY, pod(3), 0) == pod(5)
    recent.seen(pod(3), pod(6))
    assert recent.get(KEY, pod(6), 0) == pod(6)


def test_a_change_can_move_an_object_out_of_an_index() -> None:
    recent = WriteOverlay()
    recent.wrote(pod(5, job="new"), reached="4", now=0)
    assert recent.over([pod(3)], jobs, "j", 0) == []
    assert recent.over([], jobs, "new", 0) == [pod(5, job="new")]


def test_what_was_deleted_is_gone() -> None:
    recent = WriteOverlay()
    recent.deleted(KEY, "u", {"kind": "Status"}, "4", 0)
    assert recent.get(KEY, pod(3), 0) is None
    assert recent.over([pod(3)], jobs, "j", 0) == []
    assert recent.get(KEY, pod(9, uid="another"), 0) == pod(9, uid="another")
    recent.seen(pod(3), None)
    assert recent.get(KEY, pod(9, uid="another"), 0) == pod(9, uid="another")


def test_what_is_on_its_way_out_is_seen_so() -> None:
    recent = WriteOverlay()
    going = pod(6, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=30)
    recent.deleted(KEY, "u", going, "4", 0)
    assert recent.get(KEY, pod(3), 0) == going
    recent.seen(pod(3), going)
    recent.seen(going, None)
    assert recent.get(KEY, None, 0) is None


def test_nothing_is_believed_for_ever() -> None:
    recent = WriteOverlay()
    recent.wrote(pod(5), reached="4", now=0)
    assert recent.get(KEY, None, FORGET + 1) is None
    recent.wrote(pod(5), reached="4", now=0)
    assert recent.over([], jobs, "j", FORGET + 1) == []


def test_keys() -> None:
    assert key_of(pod(1)) == KEY
    assert str(KEY) == "lab/p"


_STEPS = st.lists(
    st.tuples(st.sampled_from(["wrote", "deleted", "seen", "gone", "later"]), st.integers(0, 3), st.integers(0, 2)),
    max_size=40,
)


@given(_STEPS)
def test_an_index_finds_what_a_look_at_everything_finds(steps: list[tuple[str, int, int]]) -> None:
    overlay, cache, now = WriteOverlay(), dict[Key, Object](), 0.0
    asked: list[str] = []

    def counted(obj: Object) -> list[str]:
        asked.append(obj["metadata"]["name"])
        return jobs(obj)

    for version, (what, number, job) in enumerate(steps, 1):
        key, name = Key("lab", f"p{number}"), f"p{number}"
        one = pod(version, uid=f"u{number}", job=f"j{job}", name=name)
        if what == "wrote":
            overlay.wrote(one, "0", now)
        elif what == "deleted":
            overlay.deleted(key, f"u{number}", None, "0", now)
        elif what == "later":
            now += FORGET / 2
        elif what == "seen":
            overlay.seen(cache.get(key), one)
            cache[key] = one
        elif key in cache:
            overlay.seen(cache.pop(key), None)
        for value in ("j0", "j1", "j2"):
            found = [obj for obj in cache.values() if value in jobs(obj)]
            assert _by_name(overlay.over(found, counted, value, now)) == _by_name(_all(overlay, cache, value, now))
    asked.clear()
    overlay.over([], counted, "j0", now)
    assert asked == []  # what waits is not read again for every question


def _all(overlay: WriteOverlay, cache: dict[Key, Object], value: str, now: float) -> list[Object]:
    keys = {*cache, *(Key("lab", f"p{number}") for number in range(4))}
    seen = [overlay.get(key, cache.get(key), now) for key in keys]
    return [obj for obj in seen if obj is not None and value in jobs(obj)]


def _by_name(objects: list[Object]) -> list[Any]:
    return sorted((obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for obj in objects)


def test_what_the_watch_never_brings_is_not_kept_for_ever() -> None:
    overlay = WriteOverlay()
    for number in range(1000):
        overlay.wrote(pod(number + 1, uid=f"u{number}", name=f"p{number}"), "0", number * 10.0)
    assert len(overlay) <= FORGET / 10 + 1


def test_what_the_watch_never_brings_is_forgotten_without_another_write() -> None:
    """A large pod that was gone before its event was read is told to nobody."""
    recent = WriteOverlay()
    recent.wrote(pod(5), reached="4", now=0)
    recent.over([], jobs, "j", 0)
    recent.forget(FORGET - 1)
    assert len(recent) == 1
    recent.forget(FORGET + 1)
    assert len(recent) == 0
    assert not any(recent._indexes.values()), "nor is it in an index"


def test_so_many_are_forgotten_at_a_time() -> None:
    """Taking a large object out of every index is work, and nobody waits for all of it."""
    recent = WriteOverlay()
    for number in range(10):
        recent.wrote(pod(number + 1, uid=f"u{number}", name=f"p{number}"), "0", 0.0)
    left = []
    while recent.forget(FORGET + 1, 4):
        left.append(len(recent))
    assert left == [6, 2, 0]
