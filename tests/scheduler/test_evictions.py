"""Evictions under way: slow, refused or lost, they count as leaving until the server has answered.

Never more victims than the plan, never a budget exceeded.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.scheduler.short import create
from tests.scheduler.sim import Sim

from kohort.scheduler.status import Eviction

COVERED = {"app": "covered"}


def cluster(nodes: int, covered: int, allowed: int, sim: Sim | None = None) -> Sim:
    """A node for each pod; all are full."""
    sim = sim or Sim()
    sim.hold_evictions = True
    for number in range(nodes):
        create(sim, {"node": f"n{number}", "cpu": "1"})
        labels = COVERED if number < covered else {"app": "free"}
        create(sim, {"pod": f"low{number}", "cpu": "1", "node": f"n{number}", "labels": labels})
    create(sim, {"pdb": "budget", "match": COVERED, "allowed": allowed})
    return sim


def gang(sim: Sim, name: str, pods: int, priority: str = "p10") -> None:
    create(sim, {"group": name, "gang": pods, "priority": priority})
    for number in range(pods):
        create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": "1", "priority": priority})


def disturb(sim: Sim) -> None:
    """Something happens that wakes whoever waits."""
    sim.core.cache.move_requests += 1
    sim.drain()


def asked(sim: Sim) -> set[str]:
    """Whoever was ever to be evicted."""
    return {one.pod.name for step in sim.steps for one in step.evictions}


def test_three_of_six_must_go_with_a_budget_of_one() -> None:
    """Victims of grace 0 go one by one, and the preemptor is looked at again after each: still three, one covered."""
    sim = cluster(6, 4, 1)
    gang(sim, "high", 3)
    sim.settle()
    assert len(sim.evictions) == 3
    while sim.evictions:
        sim.evict(sim.evictions[0])
        sim.drain()
        disturb(sim)
    sim.settle(5)
    assert len(sim.evicted) == 3
    assert sum(name in {f"low{number}" for number in range(4)} for name in sim.evicted) <= 1
    assert {"high-0", "high-1", "high-2"} <= set(sim.bound)
    assert asked(sim) == set(sim.evicted)


def test_another_preemptor_does_not_spend_what_a_budget_has_left_twice() -> None:
    """The budget's status is written by a controller, later: evictions that it does not know of are counted here."""
    sim = cluster(4, 3, 1)
    gang(sim, "first", 2)
    sim.settle()
    assert sorted(one.pod.name for one in sim.evictions)[1] == "low3"
    for eviction in list(sim.evictions):
        sim.evict(eviction)
    sim.settle(1)
    gang(sim, "second", 1)
    sim.settle(1)
    [decision] = [one.decision for one in sim.steps if one.decision and one.decision.root == "default/second"][-1:]
    assert decision.preemption is not None
    assert decision.preemption.over_budget == 1  # there is no other way, and it is known to be over the budget


def test_a_refused_eviction_frees_its_victim_and_another_goes() -> None:
    sim = cluster(4, 0, 0)
    gang(sim, "high", 2)
    sim.settle()
    refused, taken = sim.evictions
    sim.evict(taken)
    sim.refuse_eviction(refused)
    sim.drain()
    assert not sim.evictions  # not at once: the same would be refused again and again
    sim.settle(5)
    [other] = sim.evictions
    assert other.pod.name not in {refused.pod.name, taken.pod.name}
    sim.evict(other)
    sim.settle(5)
    assert {"high-0", "high-1"} <= set(sim.bound)
    assert set(sim.evicted) == {taken.pod.name, other.pod.name}


def test_a_preemptor_that_goes_leaves_victims_alone_that_were_not_asked_to_go() -> None:
    sim = cluster(3, 0, 0)
    gang(sim, "high", 2)
    sim.settle()
    first, second = sim.evictions
    sim.evict(first)
    for name in ("high-0", "high-1"):
        sim.delete("pod", name)
    sim.drain()
    assert not sim.evict(second)
    assert not sim.core.cache.members[second.pod.uid].evicting
    gang(sim, "next", 1)
    sim.settle()
    assert set(sim.bound) >= {"next-0", second.pod.name}


# ---- random histories


class History:
    """Gangs that preempt, while evictions are slow, refused or lost and the budget's controller lags behind."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.covered, self.allowed, nodes = 4, self.random.randint(0, 2), 16
        self.sim = cluster(nodes, self.covered, self.allowed)
        self.refused: set[str] = set()
        self.unheard: list[Eviction] = []  # done, and the answer was lost
        self.sizes: dict[str, int] = {}

    def step(self) -> None:
        actions: list[Any] = [self.evict, self.slow, self.finish, self.lose, self.hear, self.controller, self.disturb]
        if len(self.refused) < 2:
            actions.append(self.refuse)
        if len(self.sizes) < 3:
            actions.append(self.gang)
        self.random.choice(actions)()
        self.sim.now += self.random.choice([0.0, 0.0, 0.1, 1.5])
        self.sim.drain()
        self.check()

    def pick(self) -> Eviction | None:
        return self.random.choice(self.sim.evictions) if self.sim.evictions else None

    def gang(self) -> None:
        name = f"g{len(self.sizes)}"
        self.sizes[name] = self.random.randint(1, 3)
        gang(self.sim, name, self.sizes[name], self.random.choice(["p10", "p20"]))

    def evict(self) -> None:
        if one := self.pick():
            self.sim.evict(one)

    def slow(self) -> None:
        """With a grace period: terminating until it is over."""
        if one := self.pick():
            self.sim.slow = True
            self.sim.evict(one)
            self.sim.slow = False

    def finish(self) -> None:
        self.sim.finish_deletions()

    def refuse(self) -> None:
        if one := self.pick():
            self.refused.add(one.pod.name)
            self.sim.refuse_eviction(one)

    def lose(self) -> None:
        """The server has done it, the answer and the watch are late."""
        if one := self.pick():
            self.sim.evictions.remove(one)
            if self.sim.core.still_wanted(one.pod.uid, self.sim.now):
                self.unheard.append(one)
                self.sim.evicted[one.pod.name] = ""
            else:
                self.sim.core.not_sent(one.pod.uid)

    def hear(self) -> None:
        if self.unheard:
            self.sim.delete("pod", self.unheard.pop(0).pod.name)

    def controller(self) -> None:
        """The disruption controller catches up."""
        gone = sum(self.is_covered(name) for name in self.sim.evicted)
        self.sim.objects["pdb"]["budget"]["status"]["disruptionsAllowed"] = max(self.allowed - gone, 0)
        self.sim.tell("pdb", "budget")

    def disturb(self) -> None:
        self.sim.core.cache.move_requests += 1

    def is_covered(self, name: str) -> bool:
        return name.startswith("low") and int(name[3:]) < self.covered

    def check(self) -> None:
        """Gangs of the higher priority may evict members of the lower one, which then need a place again: room is
        made once for each pod that has none."""
        low = [name for name in self.sim.evicted if name.startswith("low")]
        assert len(low) <= sum(self.sizes.values())
        assert sum(map(self.is_covered, low)) <= self.allowed

    def end(self) -> None:
        """Everybody answers; all gangs fit, for there are more than enough victims outside the budget."""
        for _ in range(60):
            for one in list(self.sim.evictions):
                self.sim.evict(one)
            while self.unheard:
                self.hear()
            self.finish()
            self.sim.settle(2)
            self.check()
        waiting = [(one.key, one.queue, one.reason, one.detail) for one in self.sim.core.pending()]
        evicted_members = [name for name in self.sim.evicted if name.startswith("g")]
        assert waiting == [] or evicted_members, waiting


@pytest.mark.parametrize("seed", range(150))
def test_random_histories_of_evictions(seed: int) -> None:
    history = History(seed)
    for _ in range(60):
        history.step()
    history.end()
