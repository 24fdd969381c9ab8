"""Roots that are ready together: the set that leaves the fewest waiting, whole gangs only, and nobody passed over who
must not be."""

from __future__ import annotations

import random

import pytest

from kohort.place.demand import Branch, Demand, Leaf, PendingPod
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.highs import SolverStatus
from kohort.place.solving import Back, HardModel, Verdict
from kohort.place.standing import seat
from kohort.place.state import ClusterState
from kohort.place.together import JointSearch, Together


class Cluster:
    def __init__(self, *free: tuple[int, int]) -> None:
        """Nodes with so much cpu and memory."""
        self.state = ClusterState()
        for number, (cpu, memory) in enumerate(free):
            self.state.put_node(f"n{number}", {"cpu": cpu, "memory": memory, "pods": 110}, {})
        self.engine = Engine(self.state)

    def gang(self, name: str, *pods: tuple[int, int], minimum: int | None = None) -> Leaf:
        found = []
        for number, (cpu, memory) in enumerate(pods):
            signature = self.state.signatures.of_requests({"cpu": cpu, "memory": memory})
            found.append(PendingPod(f"{name}-{number}", self.state.interpod.class_of(signature, "default", {})))
        return Leaf(name, found, len(pods) if minimum is None else minimum)

    def search(
        self, roots: list[Demand], required: frozenset[int] = frozenset(), effort: Effort | None = None
    ) -> Together:
        return JointSearch(self.engine, roots, effort or Effort(), required).find()


def _used(cluster: Cluster) -> int:
    return int(cluster.state.used.sum())


def test_one_after_the_other_is_the_rule() -> None:
    cluster = Cluster((4, 4), (4, 4))
    found = cluster.search([cluster.gang("a", (2, 2), (2, 2)), cluster.gang("b", (2, 2))])
    assert found.ordered
    assert list(found.seats) == [0, 1]
    assert _used(cluster) == 0


def test_a_resource_that_no_node_has() -> None:
    cluster = Cluster((4, 4), (4, 4))
    signature = cluster.state.signatures.of_requests({"cpu": 1, "example.com/gpu": 1})
    pod = PendingPod("a-0", cluster.state.interpod.class_of(signature, "default", {}))
    found = cluster.search([Leaf("a", [pod], 1), cluster.gang("b", (2, 2))])
    assert list(found.seats) == [1]


def test_gangs_that_fit_only_if_packed_together() -> None:
    """Spread as kube-scheduler spreads, the first gang's small pods take a piece of every node."""
    cluster = Cluster((4, 4), (4, 4))
    roots: list[Demand] = [cluster.gang("a", (2, 2), (2, 2)), cluster.gang("b", (4, 4))]
    found = cluster.search(roots)
    assert not found.ordered
    assert list(found.seats) == [0, 1]
    rows = [row for seats in found.seats.values() for row in seats.values()]
    assert sorted(rows) in ([0, 1, 1], [0, 0, 1])
    assert _used(cluster) == 0


ASKS = [(5, 2), (3, 4), (2, 7), (1, 1)]


def _planted(seed: int) -> tuple[Cluster, list[Demand]]:
    """Three gangs that fill six nodes to the last unit."""
    dice = random.Random(seed)
    fillings = [dice.choices(ASKS, k=dice.randint(3, 5)) for _ in range(6)]
    cluster = Cluster(*((sum(cpu for cpu, _ in one), sum(memory for _, memory in one)) for one in fillings))
    pods = [pod for one in fillings for pod in one]
    dice.shuffle(pods)
    return cluster, [cluster.gang(f"g{number}", *pods[number::3]) for number in range(3)]


@pytest.mark.parametrize("seed", range(6))
def test_patterns_find_what_no_order_does(seed: int) -> None:
    cluster, roots = _planted(seed)
    found = cluster.search(roots)
    assert list(found.seats) == [0, 1, 2]
    seats = {key: row for some in found.seats.values() for key, row in some.items()}
    whole = Branch("all", roots, 3)
    assert seat(cluster.engine, whole, seats)
    assert all(pod.key in seats for leaf in whole.leaves() for pod in leaf.pods)


def test_a_large_gang_is_passed_over_for_two_small_ones() -> None:
    cluster = Cluster((4, 4))
    roots: list[Demand] = [cluster.gang("large", (3, 3)), cluster.gang("b", (2, 2)), cluster.gang("c", (2, 2))]
    found = cluster.search(roots)
    assert list(found.seats) == [1, 2]
    assert not found.ordered


def test_who_has_been_passed_over_for_long_is_not_again() -> None:
    cluster = Cluster((4, 4))
    roots: list[Demand] = [cluster.gang("large", (3, 3)), cluster.gang("b", (2, 2)), cluster.gang("c", (2, 2))]
    assert list(cluster.search(roots, frozenset({0})).seats) == [0]


def test_the_older_ones_where_the_number_is_the_same() -> None:
    cluster = Cluster((4, 4))
    roots: list[Demand] = [cluster.gang("a", (3, 3)), cluster.gang("b", (2, 2)), cluster.gang("c", (3, 3))]
    found = cluster.search(roots)
    assert list(found.seats) == [0]
    assert found.ordered


def test_never_a_gang_below_its_minimum() -> None:
    cluster = Cluster((4, 4), (4, 4), (1, 1))
    roots: list[Demand] = [
        cluster.gang("a", *[(2, 2)] * 6, minimum=3),
        cluster.gang("b", *[(2, 2)] * 4, minimum=3),
        cluster.gang("c", (1, 1)),
    ]
    found = cluster.search(roots)
    assert list(found.seats) == [0, 2]
    for number, seats in found.seats.items():
        assert len(seats) >= roots[number].need


@pytest.mark.parametrize("count", [2, 5])
def test_what_is_free_many_times_over_needs_no_look(count: int) -> None:
    cluster = Cluster((4, 4), (4, 4))
    roots: list[Demand] = [cluster.gang(f"g{number}", (1, 1)) for number in range(count)]
    assert JointSearch(cluster.engine, roots, Effort()).is_roomy() == (count == 2)


class Elsewhere:
    """Somebody who answers later."""

    def __init__(self) -> None:
        self.asked: list[tuple[HardModel, Back]] = []

    def under_way(self) -> bool:
        return bool(self.asked)

    def ask(self, model: HardModel, effort: Effort, back: Back, *, last: bool) -> Verdict:
        self.asked.append((model, back))
        return Verdict(SolverStatus.SEARCHING)


def test_what_is_hard_is_asked_elsewhere_once() -> None:
    cluster, roots = _planted(0)
    elsewhere = Elsewhere()
    for _ in range(2):
        found = cluster.search(roots, effort=Effort(solver=elsewhere))
        assert found.searching
        assert not found.seats
    assert len(elsewhere.asked) == 1
    assert _used(cluster) == 0
