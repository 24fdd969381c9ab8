"""Every recorded scenario of kube-scheduler 1.37.1, played on a simulated API: what it bound we bind, or more.

Where we differ, the scenario is in one of the tables below, each a line of docs/scheduler.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scheduler.short import create, play
from tests.scheduler.sim import Sim

SCENARIOS = json.loads((Path(__file__).parent.parent / "recorded" / "scheduler-1.37.json").read_text())["scenarios"]
BY_ID = {scenario["id"]: scenario for scenario in SCENARIOS}
U, E = "Unschedulable", "SchedulerError"
TRUE, FALSE = ("True", "Scheduled"), ("False", U)

# We bind what kube-scheduler left pending.
BETTER = {
    "Q12": "members that succeeded count for the minimum",
    "F16": "several orders of unlike pods are tried",
    "T5": "a domain that takes all pods is preferred to a tighter one that takes fewer",
    "X18": "as T5",
    "P12": "minimums are placed before extras",
    "M11": "orders of siblings are tried",
    "X10": "a PodGroup and a CompositePodGroup may have the same name",
}

# We evict fewer.
GENTLER = {
    "V24": "among domains, the one whose victims are fewest",
    "X4": "nobody goes for a group that does not fit anyway",
}

# We bind and evict the same but say something truer. By step: what we say.
TRUER: dict[str, tuple[str, dict[int, dict[str, Any]]]] = {
    "F23": (
        "a member that is being deleted is none: its gang waits for members",
        {1: {"pending": {"g-0": None, "g-1": None}, "groups": {"g": None}}},
    ),
    "F24": (
        "no node is no error",
        {1: {"pending": {"g-0": U, "g-1": U}, "groups": {"g": FALSE}}},
    ),
    "X1": ("a missing claim is no error", {1: {"pending": {"g-0": U, "g-1": U}, "groups": {"g": FALSE}}}),
    "X11": ("missing members are no error", {3: {"pending": {"g-0": U, "g-1": U}, "groups": {"g": FALSE}}}),
    "X12": (
        "missing members are no error",
        {3: {"pending": {"g-0": U, "g-1": U, "g-2": U}, "groups": {"g": FALSE}}},
    ),
    "B3": ("a gang of which one of two is bound is not scheduled, and says why", {2: {"groups": {"g": ("False", E)}}}),
    "B5": ("a gang that is not started is not scheduled", {1: {"nominated": {}, "groups": {"g": None}}}),
    "B5b": (
        "nobody is held for five minutes",
        {
            1: {"nominated": {}, "groups": {"g": None}},
            2: {"pending": {"g-0": None, "g-1": None}, "groups": {"g": None}},
        },
    ),
    "V28": (
        "as B5: there is nobody to be sent back",
        {
            1: {"nominated": {}, "groups": {"low": None}},
            3: {"pending": {"low-0": None, "low-1": None}, "groups": {"g": TRUE, "low": None}},
        },
    ),
    "X3": (
        "a member deleted in mid-cycle does not hold its siblings",
        {
            1: {"nominated": {}, "groups": {"g": None}},
            2: {"pending": {"g-0": None, "g-2": None}, "groups": {"g": None}},
        },
    ),
    "X14": ("a nomination that will not come true is taken back", {6: {"nominated": {}}}),
}

# Groups whose members had nodes before anybody scheduled them: enough of them run, so the condition is True.
RUN_ALREADY = {
    **{name: ["v"] for name in ("V7", "V8", "V9", "V10", "V16", "V16b", "X7")},
    **{name: ["g"] for name in ("T6", "T7")},
    **{name: ["a"] for name in ("W1", "W2", "W9")},
    **{name: ["a", "b"] for name in ("W3", "W4", "W5", "W6", "W8", "W10", "M5")},
    "V11": ["k", "x"],
    "V12": ["big", "sml"],
}


@pytest.mark.parametrize("name", BY_ID)
def test_recorded(name: str) -> None:
    scenario = BY_ID[name]
    sim = Sim()
    for node in scenario["nodes"]:
        create(sim, node)
    for number, step in enumerate(scenario["steps"]):
        play(sim, step)
        if "outcome" in step:
            sim.settle(6.0)
            _reasons(sim)
            _compare(scenario, number, step, sim)


def _reasons(sim: Sim) -> None:
    """Whatever waits has a reason."""
    for one in sim.core.pending():
        assert one.reason != "Queued", one
        assert one.detail, one


def _compare(scenario: dict[str, Any], number: int, step: dict[str, Any], sim: Sim) -> None:
    wanted = step["outcome"]
    if scenario["id"] in BETTER:
        assert wanted["bound"].keys() <= sim.bound.keys()
        if number == len(scenario["steps"]) - 1 and scenario["id"] != "X18":
            assert wanted["bound"].keys() < sim.bound.keys(), "listed as better, but it is not"
        return
    evicted = set(wanted.get("evicted", ()))
    if scenario["id"] in GENTLER:
        assert len(sim.evicted) < len(evicted), "listed as gentler, but it is not"
        assert wanted["bound"].keys() - sim.evicted.keys() <= sim.bound.keys()
        return
    if evicted and "open" in scenario:  # where the preemptor goes is open, and with it who has to go
        assert len(sim.evicted) == len(evicted)
        assert len(sim.bound) == len(wanted["bound"])
    else:
        assert sorted(sim.bound) == sorted(wanted["bound"])
        assert set(sim.evicted) == evicted
    if "open" not in scenario:
        seen = [wanted["bound"], *({**wanted["bound"], **one.get("bound", {})} for one in step.get("alsoSeen", ()))]
        assert sim.bound in seen
    _compare_words(scenario["id"], number, wanted, sim)


def _compare_words(name: str, number: int, wanted: dict[str, Any], sim: Sim) -> None:
    theirs = {
        "pending": {pod: one and one[0] for pod, one in wanted.get("pending", {}).items()},
        "nominated": wanted.get("nominated", {}),
        "groups": {group: one and tuple(one[:2]) for group, one in wanted.get("groups", {}).items()},
    }
    theirs["groups"] |= {group: TRUE for group in RUN_ALREADY.get(name, ()) if group in theirs["groups"]}
    ours = {"pending": sim.pending, "nominated": sim.nominated, "groups": sim.groups()}
    differs = TRUER[name][1].get(number, {}) if name in TRUER else {}
    assert all(theirs[key] != value for key, value in differs.items()), "listed as truer, but it says the same"
    assert ours == {**theirs, **differs}


def test_composites_are_told_what_kube_scheduler_leaves_out() -> None:
    sim = Sim()
    scenario = BY_ID["P7"]
    for node in scenario["nodes"]:
        create(sim, node)
    play(sim, scenario["steps"][0])
    sim.settle()
    assert sim.groups("composite") == {"root": TRUE, "s1": TRUE, "s2": TRUE, "s3": FALSE}
