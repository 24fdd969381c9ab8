"""Pods of exclusive placement: what upstream's pod webhooks answered, and what they say of each other."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kohort.api import formats
from kohort.api.kind import Object
from kohort.kinds.jobset.api import placement

RECORDED = Path(__file__).parents[3] / "recorded" / "jobset.json"
TRIES: list[dict[str, Any]] = json.loads(RECORDED.read_text())["cases"]["e-exclusive-direct"]["tries"]
PRIORITIES = {"petty": 5, "grand": 900}


@pytest.mark.parametrize("tried", TRIES, ids=lambda tried: str(tried["try"]))
def test_as_the_webhooks_answered(tried: dict[str, Any]) -> None:
    """No other pod was there."""
    pod = deepcopy(tried["object"])
    pod["spec"].setdefault("priority", PRIORITIES.get(pod["spec"].get("priorityClassName", ""), 0))
    placement.complete(pod, None, lambda _: None)
    refused = placement.refusal(pod, None)
    assert (403 if refused else 201) == tried["code"], refused
    stored = tried.get("stored") or {}
    assert {name: pod["metadata"]["labels"].get(name) for name in stored.get("labels") or {}} == stored.get(
        "labels", {}
    )
    for member in ("nodeSelector", "affinity"):
        if member in stored:
            assert pod["spec"].get(member) == stored[member]


def pod(index: int, *, node: str = "", owner: str = "u1", **meta: Any) -> Object:
    labels = {"jobset.sigs.k8s.io/jobset-name": "js", placement.JOB_KEY: "key", **meta.pop("labels", {})}
    labels |= {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "0"}
    notes = {
        "jobset.sigs.k8s.io/jobset-name": "js",
        "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
        placement.INDEX: str(index),
    }
    owners = [{"kind": "Job", "name": "js-a-0", "uid": owner, "controller": True}]
    found = {"name": f"js-a-0-{index}-x", "labels": labels, "annotations": notes, "ownerReferences": owners, **meta}
    return {"metadata": found, "spec": {"priority": 0, **({"nodeName": node} if node else {})}}


@pytest.mark.parametrize(("priority", "label"), [(900, "900"), (0, "0"), (-10, "minus-10")])
def test_any_priority_makes_a_label(priority: int, label: str) -> None:
    found = pod(0)
    found["spec"]["priority"] = priority
    placement.mark(found)
    assert found["metadata"]["labels"][placement.PRIORITY] == label
    assert not formats.label_value(label)


def test_a_follower_goes_where_its_leader_is() -> None:
    leader, follower = pod(0, node="n1"), pod(1)
    assert leader["metadata"]["name"].startswith(placement.leader_prefix(follower))
    assert placement.leader_of(follower, [pod(0, node="n2", owner="u2"), leader]) is leader
    placement.complete(follower, leader, {"n1": {"rack": "r7"}}.get)
    assert follower["spec"]["nodeSelector"] == {"rack": "r7"}
    assert placement.refusal(follower, leader) == ""


@pytest.mark.parametrize(
    ("leader", "labels"),
    [
        (None, {"rack": "r7"}),
        (pod(0), {"rack": "r7"}),
        (pod(0, node="n1"), {}),
    ],
    ids=["none", "not bound", "no such label"],
)
def test_a_follower_waits(leader: Object | None, labels: dict[str, str]) -> None:
    follower = pod(1)
    placement.complete(follower, leader, lambda _: labels)
    assert "rack" in placement.refusal(follower, leader)


def test_leaders_that_do_not_count() -> None:
    ending = pod(0, node="n1", deletionTimestamp="2026-11-15T00:00:00Z")
    ended = {**pod(0, node="n1"), "status": {"phase": "Succeeded"}}
    assert placement.leader_of(pod(1), [ending, ended, pod(2, node="n1")]) is None


def test_where_the_template_says_it_nobody_waits() -> None:
    template: Object = {"metadata": {"labels": {placement.JOB_KEY: "key"}}, "spec": {}}
    placement.spread(template, "rack", 0)
    follower = pod(1, labels={placement.PRIORITY: "0"})
    follower["spec"] |= deepcopy(template["spec"])
    before = deepcopy(follower)
    placement.complete(follower, None, lambda _: None)
    assert follower == before
    assert placement.refusal(follower, None) == ""
