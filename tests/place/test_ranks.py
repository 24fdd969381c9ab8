"""Ranks in order: neighbours near each other, on networks of any shape."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations, product
from random import Random

import numpy as np
import pytest
from tests.place.networks import LEVELS, network, optimum
from tests.place.short import HOST, Short, likes, pod_anti_affinity

from kohort.place.demand import Leaf, PendingPod
from kohort.place.levels import WELL_KNOWN, Hierarchy, carried, ordered, resolve
from kohort.place.rankorder import Seat, in_order
from kohort.place.search import Search

CASES = int(os.environ.get("KOHORT_TOPOLOGY_CASES", "25"))
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"


def _ranked(short: Short, count: int, **pod: object) -> list[PendingPod]:
    return [replace(short.pod(f"p{number}", **pod), rank=(number,)) for number in range(count)]  # type: ignore[arg-type]


def _crossings(short: Short, placed: dict[str, str], key: str) -> int:
    """How many neighbours by rank are in different domains, counted on labels."""
    line = [short.state.node(_row(short, placed[f"p{number}"])).labels[key] for number in range(len(placed))]
    return sum(one != other for one, other in pairwise(line))


def _row(short: Short, node: str) -> int:
    row = short.state.row(node)
    assert row is not None
    return row


@pytest.mark.parametrize("preferred", [(), (RACK,), (BLOCK, RACK)])
def test_ten_ranks_on_three_racks_of_four_slots_cross_twice(preferred: tuple[str, ...]) -> None:
    """Kueue's own example."""
    short = Short()
    for number in (0, 2, 4, 1, 3, 5):  # racks take turns, as nodes come in a cluster that grows
        short.node(f"n{number}", 2, **{BLOCK: "b1", RACK: f"r{number % 3}"})
    placed = short.place(*_ranked(short, 10), preferred=preferred)
    assert len(placed) == 10
    assert _crossings(short, placed, RACK) == 2


def _switches(short: Short) -> None:
    """Twelve nodes, two under a block, four under a spine; seven of them are free."""
    taken = {0, 1, 4, 6, 9}
    for number in range(12):
        short.node(f"n{number:02}", 1, spine=f"s{number // 4}", block=f"b{number // 2}")
        if number in taken:
            short.run(f"other{number}", f"n{number:02}")


def test_three_pods_under_one_spine_of_a_tree_of_switches() -> None:
    """Of seven free nodes, three are under one spine, two of them under one block."""
    short = Short()
    _switches(short)
    placed = short.place(*_ranked(short, 3), preferred=("spine", "block"))
    assert set(placed.values()) <= {"n08", "n10", "n11"}
    assert _crossings(short, placed, "spine") == 0
    assert _crossings(short, placed, "block") == 1


def test_preferred_affinity_of_pods_to_each_other_is_a_preferred_level() -> None:
    short = Short()
    _switches(short)
    both = likes({"job": "a"}, "spine", 10)
    term = likes({"job": "a"}, "block", 20)["affinity"]["podAffinity"]
    both["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] += next(iter(term.values()))
    pods = [short.pod(f"p{number}", labels={"job": "a"}, **both) for number in range(3)]
    assert set(short.place(*pods).values()) == {"n08", "n10", "n11"}


def test_a_replacement_keeps_the_rank_between_its_neighbours() -> None:
    """Ranks 0 to 3 run in rack a, 5 to 7 in rack b; rank 4 goes to b, rank 8 to c, though a has room too."""
    short = Short()
    rows = [short.node(f"{rack}{number}", 1, **{RACK: rack}) for rack in "abc" for number in range(5)]
    running = [(0, 0), (1, 1), (2, 2), (3, 3), (5, 5), (6, 6), (7, 7)]
    for rank, row in running:
        short.run(f"r{rank}", short.state.node(rows[row]).name)
    short.run("other0", "a4")
    short.run("other1", "b4")
    pods = [replace(short.pod(f"p{rank}"), rank=(rank,)) for rank in (8, 4)]
    leaf = Leaf("g", pods, 9, running=[row for _, row in running], running_ranks=[(rank,) for rank, _ in running])
    result = Search(short.engine).place(leaf)
    assert {key: short.state.node(row).name for key, row in result.placed.items()} == {"p4": "b3", "p8": "c0"}


def test_a_pod_without_a_rank_stands_aside() -> None:
    short = Short()
    for number in (0, 1, 2, 3):
        short.node(f"n{number}", 1, **{RACK: f"r{number % 2}"})
    placed = short.place(short.pod("x"), *_ranked(short, 3))
    assert len(placed) == 4
    del placed["x"]
    assert _crossings(short, placed, RACK) == 1


def test_rules_between_pods_are_kept() -> None:
    short = Short()
    for number in range(6):
        short.node(f"n{number}", 4, **{RACK: f"r{number % 3}"})
    pods = _ranked(short, 4, labels={"app": "a"}, **pod_anti_affinity({"app": "a"}))
    placed = short.place(*pods, preferred=(RACK,))
    assert len(set(placed.values())) == 4
    assert _crossings(short, placed, RACK) == 1


def test_nodes_of_ranks_without_a_constraint_are_chosen_close_together() -> None:
    """A smaller rack that takes all of them is taken, not the larger one, and not some nodes of each."""
    short = Short()
    for rack, size in (("r1", 5), ("r2", 3), ("r3", 2)):
        for number in range(size):
            short.node(f"{rack}-{number}", 1, **{RACK: rack})
    assert set(short.place(*_ranked(short, 3)).values()) == {"r2-0", "r2-1", "r2-2"}


def _seats(rng: Random, count: int, kinds: int, fixed: float) -> tuple[Hierarchy, list[Seat]]:
    short = Short()
    for number in range(count):
        labels = {level: str(rng.randint(0, 2)) for level in "abc" if rng.random() < 0.9}
        short.node(f"n{number}", 1, **labels)
    tree = Hierarchy(short.state, "abc"[: rng.randint(1, 3)], np.arange(count))
    seats = [
        Seat(f"p{number}", (number,), number, None if rng.random() < fixed else rng.choice("xyz"[:kinds]))
        for number in range(count)
    ]
    return tree, seats


def _every_order(seats: list[Seat]) -> Iterator[list[int]]:
    free: dict[object, list[int]] = {}
    for seat in seats:
        if seat.kind is not None:
            free.setdefault(seat.kind, []).append(seat.place)
    for orders in product(*map(permutations, free.values())):
        left = {kind: iter(order) for kind, order in zip(free, orders, strict=True)}
        yield [seat.place if seat.kind is None else next(left[seat.kind]) for seat in seats]


@pytest.mark.parametrize(("kinds", "fixed"), [(1, 0.0), (1, 0.4), (2, 0.0), (3, 0.2)])
def test_the_fewest_crossings_of_all_orders(kinds: int, fixed: float) -> None:
    """Classes may be mixed and members may run: against all orders there are, for up to six ranks."""
    for seed in range(CASES):
        tree, seats = _seats(Random(seed), Random(seed).randint(2, 6), kinds, fixed)
        dealt = in_order(tree, seats)
        got = [dealt.get(seat.key, seat.place) for seat in seats]
        by_kind = {kind: sorted(seat.place for seat in seats if seat.kind == kind) for kind in {s.kind for s in seats}}
        for kind, places in by_kind.items():
            taken = sorted(place for seat, place in zip(seats, got, strict=True) if seat.kind == kind)
            assert taken == places, seed
        assert tree.crossings(got) == min(map(tree.crossings, _every_order(seats))), seed


def test_domains_and_crossings_are_optimal_on_random_networks() -> None:
    """Up to 64 ranks, four levels preferred: as few domains at each level, the widest first, as a solver finds."""
    for seed in range(CASES):
        rng = Random(seed)
        net = network(rng)
        total = sum(net.room.values())
        if not total:
            continue
        count = rng.randint(1, min(64, total))
        placed = net.short.place(*net.pods(count), preferred=LEVELS)
        assert len(placed) == count
        tree = net.hierarchy()
        line = [_row(net.short, placed[f"p{number}"]) for number in range(count)]
        best = optimum(net.room, net.paths, count, [0, 1, 2, 3])
        assert tree.domains(line) == best, seed
        assert tree.crossings(line) == [number - 1 for number in best], seed


# ---- levels


def test_a_name_stands_for_the_label_that_nodes_have() -> None:
    short = Short()
    short.node("n", 1, **{RACK: "r"}, spine="s")
    assert resolve(short.state, WELL_KNOWN, "rack") == RACK
    assert resolve(short.state, WELL_KNOWN, "spine") == "spine"
    assert resolve(short.state, WELL_KNOWN, "zone") == "topology.kubernetes.io/zone"
    assert resolve(short.state, WELL_KNOWN, "example.com/row") == "example.com/row"
    assert carried(short.state, WELL_KNOWN) == [RACK, HOST]


def test_unknown_levels_are_ordered_by_their_domains() -> None:
    short = Short()
    for number in range(8):
        short.node(f"n{number}", 1, row=f"w{number // 4}", pair=f"p{number // 2}", rack="r")
    assert ordered(short.state, WELL_KNOWN, ["pair", HOST, "rack", "row"]) == ["rack", "row", "pair", HOST]


def test_nodes_without_a_label_share_only_what_is_narrower() -> None:
    short = Short()
    short.node("a0", 1, zone="a", rack="r0")
    short.node("b0", 1, rack="r1")
    short.node("b1", 1, rack="r1")
    short.node("c0", 1)
    short.node("c1", 1)
    tree = Hierarchy(short.state, ["zone", "rack"], np.arange(5))
    assert tree.crossings([0, 1, 2, 3, 4]) == [3, 3]
    assert tree.domains([1, 2]) == [1, 1]
    assert tree.domains([3, 4]) == [2, 2]


def test_equal_values_in_different_wider_domains_are_different_domains() -> None:
    short = Short()
    for number in range(4):
        short.node(f"n{number}", 1, zone=f"z{number // 2}", rack="r1")
    assert Hierarchy(short.state, ["zone", "rack"], np.arange(4)).domains([0, 1, 2, 3]) == [2, 2]
