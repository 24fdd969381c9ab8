"""Domains that are freed by moving gangs: the fewest of them, checked by trying all sets of gangs."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from random import Random

from click.testing import CliRunner
from tests.plan.test_drain import gang, required, snapshot
from tests.scheduler.short import create
from tests.scheduler.sim import Sim
from tests.scheduler.test_topology import RACK, ZONE, cluster

from kohort.cli.main import app
from kohort.scheduler.defrag import Defragmentation, Defragmenter


def freed(sim: Sim, size: int | None = None) -> Defragmentation:
    """Asked twice: a question changes nothing."""
    sim.restart()
    sim.core.sync(sim.now)
    first = Defragmenter(sim.core.cache).plan(RACK, size)
    again = Defragmenter(sim.core.cache).plan(RACK, size)
    assert (first.domain, first.moves, first.nodes) == (again.domain, again.moves, again.nodes)
    return first


def test_a_rack_that_is_free_needs_no_moves() -> None:
    found = freed(cluster(a=2, b=3))
    assert (found.ok, found.moves, found.nodes) == (True, [], ["b-0", "b-1", "b-2"])


def test_one_gang_moves_and_not_two() -> None:
    """Rack a has two gangs of two, b one of three on four nodes, c is half empty."""
    sim = cluster(a=4)
    gang(sim, "g", 2, required())
    gang(sim, "h", 2, required())
    for number in range(4):
        create(sim, {"node": f"b-{number}", "cpu": "1", "labels": {RACK: "b", ZONE: "z"}})
    gang(sim, "i", 3, required())
    for number in range(5):
        create(sim, {"node": f"c-{number}", "cpu": "1", "labels": {RACK: "c", ZONE: "z"}})
    gang(sim, "j", 2, required())
    found = freed(sim)
    assert found.ok
    assert found.proven
    assert len(found.moves) == 1
    assert {move.name for move in found.moves} <= {"i", "j"}
    assert not set(found.moves[0].lands.values()) & set(found.nodes)
    assert set(found.moves[0].leaves.values()) <= set(found.nodes)


def test_so_many_nodes_of_a_rack_and_the_smaller_gang_goes() -> None:
    sim = cluster(a=5)
    gang(sim, "g", 3, required())
    gang(sim, "h", 2, required())
    for number in range(3):
        create(sim, {"node": f"b-{number}", "cpu": "1", "labels": {RACK: "b", ZONE: "z"}})
    create(sim, {"pod": "alone", "cpu": "1"})
    sim.settle()
    found = freed(sim, 2)
    assert [move.name for move in found.moves] in ([], ["h"])
    assert len(found.nodes) == 2


def test_a_budget_and_pods_without_a_gang_keep_their_nodes() -> None:
    sim = cluster(a=2, b=2)
    gang(sim, "g", 1, {})
    gang(sim, "h", 1, {})
    create(sim, {"pod": "alone", "cpu": "1"})
    create(sim, {"pdb": "keep", "match": {"app": "g"}, "allowed": 0})
    create(sim, {"pdb": "keep-h", "match": {"app": "h"}, "allowed": 0})
    sim.settle()
    found = freed(sim)
    if len({node[0] for node in sim.bound.values()}) == 2:
        assert not found.ok
        assert "kept by budgets: default/g, default/h" in found.why


def test_a_label_that_no_node_has() -> None:
    sim = cluster(a=2)
    assert Defragmenter(sim.core.cache).plan("example.com/row").why == "no node has the label example.com/row"


def _best(sim: Sim, racks: int, size: int) -> int | None:
    """The fewest gangs whose pods all fit on nodes that are left; gangs ask for no topology, pods for a node each."""
    nodes = sorted(sim.objects["node"])
    on = {node: next((pod.split("-")[0] for pod, where in sim.bound.items() if where == node), "") for node in nodes}
    gangs = sorted(set(on.values()) - {""})
    for moves in range(len(gangs) + 1):
        for chosen in combinations(gangs, moves):
            for rack in range(racks):
                inside = [node for node in nodes if node.startswith(f"r{rack}-")]
                emptied = [node for node in inside if on[node] in ("", *chosen)]
                if len(emptied) < size:
                    continue
                free = sum(not on[node] for node in nodes)
                kept = sum(not on[node] for node in emptied[:size])
                if _movable(chosen, on, set(_first_free(emptied, on)[:size]), free - kept):
                    return moves
    return None


def _first_free(nodes: list[str], on: dict[str, str]) -> list[str]:
    return sorted(nodes, key=lambda node: bool(on[node]))


def _movable(chosen: tuple[str, ...], on: dict[str, str], target: set[str], _: int) -> bool:
    """Whether one after the other can leave in some order: by count, for every pod takes one node."""
    room = sum(not gang for node, gang in on.items() if node not in target)
    left = {gang: [node for node in on if on[node] == gang] for gang in chosen}
    while left:
        ready = [gang for gang, nodes in left.items() if room + sum(n not in target for n in nodes) >= len(nodes)]
        if not ready:
            return False
        gang = max(ready, key=lambda one: sum(n not in target for n in left[one]) - len(left[one]))
        nodes = left.pop(gang)
        room += sum(node not in target for node in nodes) - len(nodes)
    return True


def test_the_fewest_of_all_on_random_clusters() -> None:
    checked = 0
    for seed in range(25):
        rng = Random(seed)
        racks, width = rng.randint(2, 3), rng.randint(2, 4)
        sim = Sim()
        for number in rng.sample(range(racks * width), racks * width):
            rack = number // width
            create(sim, {"node": f"r{rack}-{number}", "cpu": "1", "labels": {RACK: f"r{rack}"}})
        for name in "abcd"[: rng.randint(1, 4)]:
            gang(sim, name, rng.randint(1, 3), {"kohort.dev/topology": "rack=preferred"} if rng.random() < 0.5 else {})
        if len(sim.bound) < len(sim.objects["pod"]):
            continue  # one of them waits: it is not moved
        size = rng.randint(1, width)
        found, best = freed(sim, size), _best(sim, racks, size)
        assert found.ok == (best is not None), seed
        assert best is None or len(found.moves) == best, seed
        checked += 1
    assert checked > 10


def test_the_command(tmp_path: Path) -> None:
    sim = cluster(a=2)
    gang(sim, "g", 1, required())
    for number in range(5):
        create(sim, {"node": f"b-{number}", "cpu": "1", "labels": {RACK: "b", ZONE: "z"}})
    gang(sim, "h", 2, required())
    state = snapshot(sim, tmp_path)
    done = CliRunner().invoke(app, ["defrag", "--free", "rack", "--state", state])
    assert done.exit_code == 0, done.output
    assert "2 nodes of topology.kubernetes.io/rack=a would be free after 1 move, the fewest there are" in " ".join(
        done.output.split()
    )
    told = json.loads(CliRunner().invoke(app, ["defrag", "--free", "rack=9", "--state", state, "-o", "json"]).output)
    assert told["ok"] is False
    for words, said in (
        (["--free", "rack=x"], "--free rack=x: a level or label, and how many nodes of one domain"),
        (["--free", "rack", "--apply"], "--apply and --state: a file cannot be changed"),
    ):
        wrong = CliRunner().invoke(app, ["defrag", *words, "--state", state])
        assert wrong.exit_code == 1
        assert said in " ".join(wrong.output.split())
