"""Our own writes over what the watch has told, in every order in which the two can come."""

from __future__ import annotations

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
