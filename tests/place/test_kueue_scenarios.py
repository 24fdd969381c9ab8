"""Situations that Kueue's own tests of its topology decide, in our words: who fits, and in how many domains.

A cluster is written as `block/rack/node:seats`. What is wanted is the number of domains at the level that is named, as
Kueue's answer has it; None: it does not fit.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.place.short import HOST, Short

from kohort.api.scheduling.topology import Slice
from kohort.place.demand import Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.profile import Profile
from kohort.place.search import Search
from kohort.place.slices import sliced

BLOCK, RACK = "topology.kubernetes.io/block", "topology.kubernetes.io/rack"
LEVELS = {"block": BLOCK, "rack": RACK, "node": HOST}
UNEVEN = "a/r/0:1 a/s/1:1 a/s/2:1 a/s/3:1 b/t/4:1 b/u/5:2"
THREES = "a/r/0:3 a/r/1:3 a/r/2:3"

SCENARIOS = [
    ("racks before nodes", "a/r/0:2 a/s/1:2 a/t/2:1 a/t/3:1 a/t/4:1 a/t/5:1", "block", "rack", "", 4, ("rack", 1)),
    ("one node takes both", "a/r/0:2 a/r/1:1 a/r/2:1", "block", "node", "", 2, ("node", 1)),
    ("a rack takes three", UNEVEN, "rack", "", "", 3, ("rack", 1)),
    ("no rack takes four", UNEVEN, "rack", "", "", 4, None),
    ("a block takes four", UNEVEN, "block", "rack", "", 4, ("rack", 2)),
    ("no block takes five", UNEVEN, "block", "", "", 5, None),
    ("two racks of a block, where a rack is preferred", UNEVEN, "", "rack", "", 4, ("block", 1)),
    ("all six in two blocks", UNEVEN, "", "rack", "", 6, ("block", 2)),
    ("ten of seven", UNEVEN, "", "block", "", 10, None),
    ("two blocks of three", "a/r/0:2 b/s/1:1 c/t/2:4", "", "block", "", 5, ("block", 2)),
    ("pairs on a node each", THREES, "block", "", "node=2", 6, ("node", 3)),
    ("the largest nodes for pairs", "a/r/0:6 a/r/1:5 a/r/2:4 a/r/3:2", "block", "node", "node=2", 12, ("node", 3)),
    (
        "pairs in racks of one block",
        "a/r/0:1 a/r/1:1 a/s/2:1 a/s/3:1 a/s/4:1 b/t/5:1",
        "block",
        "",
        "rack=2",
        4,
        ("rack", 2),
    ),
    ("the last pair where it fits", "a/r/0:4 a/r/1:3 a/r/2:2", "block", "node", "node=2", 6, ("node", 2)),
    ("threes in two blocks", "a/r/0:3 a/r/1:3 a/r/2:3 b/s/3:6", "", "block", "node=3", 12, ("block", 2)),
    ("no rack takes a three", "a/r/0:2 a/s/1:2 a/t/2:2", "block", "", "rack=3", 6, None),
    ("one rack takes a three", "a/r/0:3 a/s/1:1 a/t/2:1 a/u/3:1", "block", "", "rack=3", 6, None),
    ("the other block takes threes", "a/r/0:2 a/s/1:2 a/t/2:2 b/u/3:3 b/v/4:3", "block", "", "rack=3", 6, ("rack", 2)),
    ("fours in racks, pairs on nodes", "a/r/0:1 a/r/1:4 a/s/2:3 a/s/3:4", "block", "", "rack=4,node=2", 8, ("rack", 2)),
    ("pairs leave too little for a six", "a/r/0:3 a/r/1:3 a/r/2:0", "block", "", "rack=6,node=2", 6, None),
    ("a small node spoils an eight", "a/r/0:7 a/r/1:4 a/s/2:7 a/s/3:3", "block", "", "rack=8,node=4", 16, None),
    ("pairs enough, sixes not", "a/r/0:4 a/s/1:4 a/t/2:4", "block", "", "rack=6,node=2", 12, None),
]


def _cluster(text: str) -> Short:
    short = Short()
    short.engine = Engine(short.state, Profile(topology_levels=((BLOCK, BLOCK), (RACK, RACK), (HOST, HOST))))
    for part in text.split():
        path, _, seats = part.partition(":")
        block, rack, node = path.split("/")
        short.node(f"n{node}", int(seats), **{BLOCK: block, RACK: rack})
    return short


def _demand(short: Short, required: str, preferred: str, slices: str, count: int) -> Demand:
    pods = [replace(short.pod(f"p{number}"), rank=(number,)) for number in range(count)]
    near = (LEVELS[preferred],) if preferred else ()
    leaf = Leaf("g", pods, count, LEVELS[required] if required else None, preferred=near)
    if not slices:
        return leaf
    asked = (one.split("=") for one in slices.split(","))
    return sliced(short.state, leaf, [Slice(int(size), LEVELS[level]) for level, size in asked])


@pytest.mark.parametrize(
    ("cluster", "required", "preferred", "slices", "count", "wanted"),
    [scenario[1:] for scenario in SCENARIOS],
    ids=[scenario[0].replace(" ", "-") for scenario in SCENARIOS],
)
def test_as_kueue_decides(
    cluster: str, required: str, preferred: str, slices: str, count: int, wanted: tuple[str, int] | None
) -> None:
    short = _cluster(cluster)
    result = Search(short.engine).place(_demand(short, required, preferred, slices, count))
    if wanted is None:
        assert not result.ok
        return
    assert len(result.placed) == count
    level, domains = wanted
    assert len({short.state.node(row).labels[LEVELS[level]] for row in result.placed.values()}) == domains
