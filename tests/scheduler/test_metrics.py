"""Numbers under kube-scheduler's names, as recorded for O5 to O8."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.scheduler.short import create, play
from tests.scheduler.sim import Sim

from kohort.scheduler.metrics import Metrics

SCENARIOS = json.loads((Path(__file__).parent.parent / "recorded" / "scheduler-1.37.json").read_text())["scenarios"]
RECORDED = {
    scenario["id"]: scenario
    for scenario in SCENARIOS
    if any("metrics" in step.get("outcome", {}) for step in scenario["steps"])
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_metrics(name: str) -> None:
    scenario, sim = RECORDED[name], Sim()
    metrics = Metrics(sim.core, "p")
    seen = 0
    for node in scenario["nodes"]:
        create(sim, node)
    for step in scenario["steps"]:
        play(sim, step)
        if "outcome" not in step:
            continue
        sim.settle()
        for one in sim.steps[seen:]:
            if one.decision is not None:
                metrics.decided(one.decision, 0.001)
        seen = len(sim.steps)
        for line, value in step["outcome"].get("metrics", {}).items():
            series, _, labels = line.partition("{")
            wanted = set(labels.rstrip("}").split(",")) - {""}
            found = [
                float(text.rpartition(" ")[2])
                for text in metrics.text().decode().splitlines()
                if text.startswith(f"scheduler_{series}")
                and text[len("scheduler_" + series)] in "{ "
                and all(label in text for label in wanted)
            ]
            if 'result="unschedulable"' in line:
                assert 1 <= sum(found) <= value, "kube-scheduler tries again by the clock"
            else:
                assert sum(found) == value, line
