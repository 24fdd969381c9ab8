"""`kohort tree`: groups with their minimum, who has a place, on which node, in which domain."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from tests.scheduler.short import create
from tests.scheduler.sim import Sim

from kohort.cli.lookup import find_in_state
from kohort.cli.tree import _json, page


def shown(sim: Sim, kind: str, name: str, *, every: bool = False) -> str:
    console = Console(width=200, color_system=None, highlight=False)
    with console.capture() as text:
        console.print(page(find_in_state(sim.core, kind, name, "default"), every=every))
    return text.get()


def cluster(*items: dict[str, Any], nodes: int = 2) -> Sim:
    sim = Sim()
    for number in range(nodes):
        create(sim, {"node": f"n{number}", "cpu": "4", "labels": {"rack": f"r{number}"}})
    for item in items:
        create(sim, item)
    sim.settle(5)
    return sim


def test_a_tree_in_one_rack() -> None:
    sim = cluster(
        {"composite": "all", "gang": 2, "topology": "rack"},
        {"group": "a", "gang": 2, "parent": "all"},
        {"group": "b", "gang": 1, "parent": "all"},
        *({"pod": f"a-{number}", "in": "a", "cpu": "1"} for number in range(2)),
        {"pod": "b-0", "in": "b", "cpu": "1"},
    )
    assert (
        shown(sim, "CompositePodGroup", "all")
        == """\
CompositePodGroup default/all
└── CompositePodGroup all  gang, minimum 2 groups  3 of 3 placed  in one rack: r0
    ├── PodGroup a  gang, minimum 2 pods  2 of 2 placed
    │   ├── a-0  n0  Pending
    │   └── a-1  n0  Pending
    └── PodGroup b  gang, minimum 1 pod  1 of 1 placed
        └── b-0  n0  Pending
"""
    )


def test_a_gang_that_waits() -> None:
    sim = cluster({"group": "big", "gang": 3}, *({"pod": f"p{n}", "in": "big", "cpu": "4"} for n in range(3)))
    assert (
        shown(sim, "PodGroup", "big")
        == """\
PodGroup default/big
└── PodGroup big  gang, minimum 3 pods  0 of 3 placed
    ├── p0  no node yet
    ├── p1  no node yet
    └── p2  no node yet
"""
    )


def test_many_pods_are_told_not_listed_unless_all_are_asked_for() -> None:
    pods = ({"pod": f"p{number:02}", "in": "wide", "cpu": "100m"} for number in range(20))
    sim = cluster({"group": "wide", "gang": 20}, *pods)
    short, long = shown(sim, "PodGroup", "wide"), shown(sim, "PodGroup", "wide", every=True)
    assert "… 12 more (--all shows them)" in short
    assert len(short.splitlines()) == 11
    assert len(long.splitlines()) == 22


def test_for_programs() -> None:
    sim = cluster({"group": "g", "gang": 1, "topology": "rack"}, {"pod": "p", "in": "g", "cpu": "1"})
    found = find_in_state(sim.core, "PodGroup", "g", "default")
    (root,) = found.roots
    assert _json(sim.core, root) == {
        "kind": "PodGroup", "name": "g", "workload": "", "pods": 1, "placed": 1, "finished": 0, "minimum": 1,
        "topology": "rack", "domains": ["r0"], "members": [{"pod": "p", "node": "n0", "phase": "Pending"}],
    }  # fmt: skip
