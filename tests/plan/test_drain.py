"""What a drain would do to gangs, told before it is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from tests.scheduler.short import create, group_body, pod_body
from tests.scheduler.sim import Sim
from tests.scheduler.test_topology import INDEX, RACK, cluster

from kohort.cli.main import app
from kohort.plan.drain import Drained, plan_drain, verdict
from kohort.scheduler.model import Node

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job", "controller": True}


def gang(sim: Sim, name: str, pods: int, said: dict[str, str], *, mode: str = "single", owned: bool = True) -> None:
    body = group_body({"gang": pods, "disruption": mode}, composite=False)
    sim.put("group", name, {**body, "metadata": {"annotations": said}})
    for rank in range(pods):
        pod = pod_body({"in": name, "cpu": "1", "labels": {INDEX: str(rank), "app": name}})
        if owned:
            pod["metadata"]["ownerReferences"] = [OWNER]
        sim.put("pod", f"{name}-{rank}", pod)
    sim.settle()


def drained(sim: Sim, *nodes: str) -> list[Drained]:
    sim.restart()
    sim.core.sync(sim.now)
    return plan_drain(sim.core, [msgspec.convert(sim.objects["node"][name], Node) for name in nodes])


def required(**more: str) -> dict[str, str]:
    return {"kohort.dev/topology": "rack=required", **{f"kohort.dev/{key}": text for key, text in more.items()}}


def test_a_member_finds_another_node_of_its_rack() -> None:
    sim = cluster(a=4, b=2)
    gang(sim, "g", 3, required())
    node = sim.bound["g-1"]
    (one,) = drained(sim, node)
    assert (one.goes, one.stays, one.waits) == (["g-1"], 2, [])
    assert one.lands["g-1"] != node
    assert one.domain == f"{RACK} a, as before"
    assert verdict(one) == "runs again"


@pytest.mark.parametrize(
    ("policy", "told", "done"),
    [
        ("Wait", "1 pod would wait", ""),
        ("Widen", "runs again", "placed outside of the group's domain"),
        ("Move", "runs again", "kohort.dev/replacement Move"),
        ("Fail", "1 pod would wait", "kohort.dev/replacement Fail"),
    ],
)
def test_a_full_rack_asks_the_policy(policy: str, told: str, done: str) -> None:
    sim = cluster(a=3, b=3)
    gang(sim, "g", 3, required(replacement=policy))
    (one,) = drained(sim, sim.bound["g-1"])
    assert one.goes == ["g-1"]
    assert verdict(one) == told
    assert done in one.done


def test_mode_all_takes_the_whole_gang() -> None:
    sim = cluster(a=3, b=3)
    gang(sim, "g", 3, required(), mode="all")
    (one,) = drained(sim, sim.bound["g-1"])
    assert (len(one.goes), one.stays, one.mode) == (3, 0, "all")
    assert one.domain == f"{RACK} b, before a"


def test_budgets_that_do_not_allow_it_and_pods_that_nobody_makes_anew() -> None:
    sim = cluster(a=4)
    gang(sim, "g", 3, required())
    create(sim, {"pdb": "keep", "match": {"app": "g"}, "allowed": 0})
    create(sim, {"pod": "alone", "cpu": "1"})
    sim.settle()
    found = {one.name: one for one in drained(sim, sim.bound["g-1"], sim.bound["alone"])}
    assert verdict(found["g"]) == "kept by PodDisruptionBudget default/keep"
    assert verdict(found["alone"]) == "1 pod would not come back: no controller makes such pods anew"


def test_daemons_stay() -> None:
    sim = cluster(a=1)
    body = pod_body({"cpu": "1"})
    body["metadata"]["ownerReferences"] = [{**OWNER, "kind": "DaemonSet"}]
    sim.put("pod", "daemon", body)
    sim.settle()
    assert drained(sim, "a-0") == []


# ---- the command


def snapshot(sim: Sim, folder: Path) -> str:
    kinds = {"nodes": "node", "pods": "pod", "podgroups": "group", "poddisruptionbudgets": "pdb"}
    objects: dict[str, Any] = {name: list(sim.objects[kind].values()) for name, kind in kinds.items()}
    document = {"version": 1, "schedulerNames": ["default-scheduler"], "objects": objects}
    path = folder / "state.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_the_command_prints_what_would_happen(tmp_path: Path) -> None:
    sim = cluster(a=3, b=2)
    gang(sim, "g", 3, required())
    done = CliRunner().invoke(app, ["plan", "--drain", sim.bound["g-1"], "--state", snapshot(sim, tmp_path)])
    assert done.exit_code == 1
    assert "PodGroup g in default: 1 pod would wait" in done.output
    assert "evicted    1 pod (g-1); 2 stay" in done.output
    assert f"{RACK}=a, where its members run, is too small" in " ".join(done.output.split())
    assert "policy     kohort.dev/replacement Wait, kohort.dev/below-minimum Wait" in done.output


def test_mistakes_of_the_command(tmp_path: Path) -> None:
    sim = cluster(a=1)
    state = snapshot(sim, tmp_path)
    for words, said in (
        (["--drain", "zz", "--state", state], "--drain zz: no such node is there"),
        (["--drain", "a-0", "--cluster", "x.yaml"], "--drain and --cluster: a drain is asked about alone"),
        ([], "-f FILE or --drain NODE: one of the two is wanted"),
    ):
        done = CliRunner().invoke(app, ["plan", *words])
        assert done.exit_code == 2
        assert said in " ".join(done.output.split())
