"""What kube-scheduler 1.37.1 bound in the recorded scenarios, the engine places as well, or better.

Here: the scenarios that need no preemption and no timing. The others are for the scheduler around the engine; the test
at the end makes sure that none is forgotten.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.place.cluster import Cluster

SCENARIOS = json.loads((Path(__file__).parent.parent / "recorded" / "scheduler-1.37.json").read_text())["scenarios"]
BY_ID = {scenario["id"]: scenario for scenario in SCENARIOS}

# For the scheduler around the engine: what each of these needs that the engine does not have.
LATER = {
    "binding that fails": [s["id"] for s in SCENARIOS if s["section"] == "8.4"],
    "events during a decision, a live clock, a stopped scheduler": [
        s["id"]
        for s in SCENARIOS
        if any(step.keys() & {"during", "live", "refuseBinding", "kubelet", "scheduler", "wait"} for step in s["steps"])
    ],
    "validation of members and trees": [
        "F18",
        "F19",
        "F20",
        "F21",
        "F22",
        "F23",
        "P16",
        "Q13",
        "Q14",
        "X1",
        "X9",
        "X16",
        "V15b",
    ],
}


def _engine_scenarios() -> list[str]:
    later = {name for names in LATER.values() for name in names}
    return [scenario["id"] for scenario in SCENARIOS if scenario["id"] not in later]


# Kohort binds what kube-scheduler left pending; each is a line of docs/differences.md.
BETTER = {
    "F16": "several orders of unlike pods are tried",
    "T5": "a domain that takes all pods is preferred to a tighter one that takes fewer",
    "P12": "minimums are placed before extras",
    "M11": "orders of siblings are tried",
}


# Kohort evicts fewer.
GENTLER = {
    "V24": "among domains, the one whose victims are fewest",
    "X4": "nobody goes for a group that does not fit anyway",
}


def _play(step: dict[str, Any], cluster: Cluster) -> None:
    for item in step.get("create", ()):
        cluster.create(item)
    for name in step.get("delete", ()):
        cluster.delete(*name.split("/"))
    for name, what in step.get("set", ()):
        kind, _, called = name.partition("/")
        cluster.change(kind, called, what)


@pytest.mark.parametrize("name", _engine_scenarios())
def test_recorded(name: str) -> None:
    scenario = BY_ID[name]
    cluster = Cluster()
    for node in scenario["nodes"]:
        cluster.node(node)
    for step in scenario["steps"]:
        _play(step, cluster)
        if "outcome" in step:
            cluster.settle()
            _compare(scenario, step, cluster)


def _compare(scenario: dict[str, Any], step: dict[str, Any], cluster: Cluster) -> None:
    wanted = step["outcome"]["bound"]
    if scenario["id"] in BETTER:
        assert wanted.keys() < cluster.bound.keys(), "listed as better, but it is not"
        return
    evicted = set(step["outcome"].get("evicted", ()))
    if scenario["id"] in GENTLER:
        assert len(cluster.evicted) < len(evicted), "listed as gentler, but it is not"
        assert wanted.keys() - cluster.evicted <= cluster.bound.keys()
        return
    assert cluster.evicted == evicted
    assert sorted(cluster.bound) == sorted(wanted)
    if "open" not in scenario:
        seen = [wanted, *({**wanted, **other.get("bound", {})} for other in step.get("alsoSeen", ()))]
        assert cluster.bound in seen
