"""Where a group stands: its domains, what neighbours by rank have to cross, and why a preferred level was given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.place.build import node_object, pod_object
from tests.place.model import Kind

from kohort.place.demand import Rank
from kohort.place.engine import Engine
from kohort.place.levels import HOSTNAME
from kohort.place.networkstanding import PREFERRED, REQUIRED, LevelStanding, Member, standing
from kohort.place.profile import Profile
from kohort.place.state import ClusterState

RACK = "example.org/rack"
ONE = Kind(cpu=1, memory=1)


def cluster(*racks: tuple[str, int], cpu: int = 4) -> ClusterState:
    """Nodes of so many racks, in order; a rack without a name: no label."""
    state = ClusterState()
    for number, rack in enumerate(rack for rack, count in racks for _ in range(count)):
        labels = {HOSTNAME: f"n{number}", **({RACK: rack} if rack else {})}
        state.set_node(node_object(f"n{number}", cpu, 64, labels))
    return state


class Group:
    """Pods that stand on rows of a cluster, with ranks or without."""

    def __init__(self, state: ClusterState, places: Sequence[tuple[int, Rank | None]]) -> None:
        made: list[Any] = []
        for number, (row, _) in enumerate(places):
            made.append(pod_object(f"p{number}", ONE))
            state.set_pod(made[-1], state.node(row).name)
        self.engine = Engine(state, Profile(topology_levels=(("rack", RACK),)))
        eq_class = state.equivalence_class(made[0])
        self.members = [Member(row, rank, eq_class) for row, rank in places]

    def rack(self, mode: str = "") -> LevelStanding:
        found = standing(self.engine, {RACK: mode} if mode else {}, self.members)
        return next(one for one in found.levels if one.key == RACK)


def test_domains_come_in_the_order_of_ranks() -> None:
    state = cluster(("a", 2), ("b", 2))
    group = Group(state, [(0, (2,)), (2, (0,)), (3, (1,)), (1, (3,))])
    assert list(group.rack(REQUIRED).domains.items()) == [("b", 2), ("a", 2)]


def test_neighbours_in_different_domains_are_counted() -> None:
    state = cluster(("a", 2), ("b", 2))
    apart = Group(state, [(0, (0,)), (2, (1,)), (1, (2,)), (3, (3,))]).rack()
    assert (apart.crossings, apart.neighbours, apart.mode) == (3, 3, "")


def test_who_has_no_rank_has_no_neighbours() -> None:
    found = Group(cluster(("a", 1), ("b", 1)), [(0, None), (1, None)]).rack()
    assert (found.crossings, found.neighbours) == (None, 0)


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        ([(0,), (1,), (2,), (3,)], {"n0": "0-1", "n1": "2-3"}),
        ([(0,), (2,), (3,), (7,)], {"n0": "0, 2", "n1": "3, 7"}),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], {"n0": "0/0-1", "n1": "1/0-1"}),
        ([(5, 0), (5, 1), (5, 2), (5, 4)], {"n0": "0-1", "n1": "2, 4"}),
    ],
)
def test_ranks_are_told_as_people_write_them(ranks: list[Rank], told: dict[str, str]) -> None:
    group = Group(cluster(("a", 1), ("b", 1)), [(0, ranks[0]), (0, ranks[1]), (1, ranks[2]), (1, ranks[3])])
    assert standing(group.engine, {HOSTNAME: REQUIRED}, group.members).ranks == told


# ---- a level that was preferred and not kept


def test_in_one_domain_there_is_nothing_to_say() -> None:
    assert Group(cluster(("a", 2), ("b", 2)), [(0, None), (1, None)]).rack(PREFERRED).note == ""
    assert Group(cluster(("a", 2), ("b", 2)), [(0, None), (2, None)]).rack(REQUIRED).note == ""


def test_what_the_largest_domain_takes_is_told() -> None:
    state = cluster(("a", 1), ("b", 1))
    group = Group(state, [(0, None)] * 4 + [(1, None)] * 2)
    told = f"6 pods are on 2 domains; {RACK}=a, the largest of 2, takes 4"
    assert group.rack(PREFERRED).note == told
    assert group.rack(PREFERRED).note == told, "nothing was changed by asking"


def test_a_domain_that_has_become_large_enough_is_told() -> None:
    state = cluster(("a", 1), ("b", 2))
    note = Group(state, [(0, None)] * 3 + [(1, None)] * 2).rack(PREFERRED).note
    assert note == f"5 pods are on 2 domains; {RACK}=b would take all of them now"


def test_nodes_without_the_label_are_told() -> None:
    assert Group(cluster(("", 2)), [(0, None), (1, None)]).rack(PREFERRED).note == f"no node has the label {RACK}"
    off = Group(cluster(("", 1), ("a", 1)), [(0, None)])
    assert off.rack(PREFERRED).note == f"1 pod is on a node without the label; {RACK}=a would take it now"
    assert off.rack(PREFERRED).domains == {"?": 1}
