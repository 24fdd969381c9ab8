"""What alerts look at: how long a gang waits, what is half bound, what was refused, how old the picture is."""

from __future__ import annotations

import re

from tests.scheduler.short import create
from tests.scheduler.sim import Sim

from kohort.scheduler.metrics import Metrics


def shown(sim: Sim, *failing_since: float) -> dict[str, float]:
    metrics = Metrics(sim.core, "p", lambda: sim.now, lambda: failing_since)
    text = metrics.text().decode()
    return {name: float(value) for name, value in re.findall(r"^kohort_scheduler_(\S+) (\S+)$", text, re.MULTILINE)}


def two_on_a_node_for_two(sim: Sim, cpu: str = "1") -> None:
    create(sim, {"node": "n1", "cpu": "2"})
    create(sim, {"group": "g", "gang": 2})
    for name in ("g-0", "g-1"):
        create(sim, {"pod": name, "in": "g", "cpu": cpu})


def test_a_gang_that_waits() -> None:
    sim = Sim()
    two_on_a_node_for_two(sim, cpu="2")
    sim.settle()
    assert shown(sim)["longest_wait_seconds"] == 0.0
    sim.settle(900)
    assert shown(sim)["longest_wait_seconds"] == 900.0
    sim.delete("pod", "g-0")
    sim.delete("pod", "g-1")
    sim.settle()
    assert shown(sim)["longest_wait_seconds"] == 0.0


def test_a_gang_that_is_half_bound() -> None:
    sim = Sim()
    two_on_a_node_for_two(sim)
    sim.refuse["g-1"] = 1_000_000
    sim.settle()
    found = shown(sim)
    assert found["half_bound_groups"] == 1.0
    assert found['bindings_total{result="bound"}'] == 1.0
    assert found['bindings_total{result="refused"}'] >= 1.0
    sim.refuse.clear()
    sim.settle(900)
    found = shown(sim)
    assert (found["half_bound_groups"], found['bindings_total{result="bound"}']) == (0.0, 2.0)


def test_a_picture_that_is_old() -> None:
    sim = Sim()
    sim.settle(100)
    assert shown(sim)["cache_stale_seconds"] == 0.0
    assert shown(sim, 90.0, 30.0)["cache_stale_seconds"] == 70.0
