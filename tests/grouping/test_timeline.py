"""How the beds with real operators judge whether a gang was started as a whole."""

from __future__ import annotations

from typing import Any

from tests.support.operators.timeline import Gang

Json = dict[str, Any]


def pod(name: str, node: str = "", *, deleted: bool = False, why: str = "") -> Json:
    meta: Json = {"name": name, "uid": name}
    if deleted:
        meta["deletionTimestamp"] = "now"
    conditions = [{"type": "PodScheduled", "message": why}] if why else []
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": {"conditions": conditions}}


def test_a_gang_that_loses_a_node_between_two_bindings_was_started_as_a_whole() -> None:
    gang = Gang(3)
    gang.see("ADDED", pod("a", "n1"), 1.0)
    gang.see("ADDED", pod("b", "n1"), 1.1)
    assert gang.partly(1.2) > 0
    gang.see("MODIFIED", pod("a", "n1", deleted=True), 1.2)
    gang.see("ADDED", pod("c", "n2"), 1.3)
    assert gang.whole
    assert gang.partly(100.0) == 0.0


def test_a_part_that_stays_one_is_told_with_its_pods() -> None:
    gang = Gang(2)
    gang.see("ADDED", pod("a", "n1"), 1.0)
    gang.see("ADDED", pod("b", why="no room"), 1.1)
    assert gang.partly(61.0) == 60.0
    assert not gang.ran
    assert "bound to n1" in gang.told(0.0)
    assert "waits: no room" in gang.told(0.0)


def test_a_gang_that_lost_all_must_be_whole_again() -> None:
    gang = Gang(2)
    for name in ("a", "b"):
        gang.see("ADDED", pod(name, "n1"), 1.0)
    for name in ("a", "b"):
        gang.see("DELETED", pod(name, "n1"), 2.0)
    gang.see("ADDED", pod("c", "n2"), 3.0)
    assert gang.ran
    assert gang.partly(5.0) == 2.0


def test_a_pod_without_a_reason_is_silent_until_it_has_one() -> None:
    gang = Gang(1)
    gang.see("ADDED", pod("a"), 1.0)
    assert gang.silent
    gang.see("MODIFIED", pod("a", why="waits for a node"), 2.0)
    assert not gang.silent
