"""Random histories of evictions in which nodes are lost, bindings are refused or late, and the scheduler dies.

Never a gang started below its minimum, never a budget exceeded, nobody waits without a reason. More of them:
KOHORT_HISTORIES=5000.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.scheduler.short import create
from tests.scheduler.sim import Sim
from tests.scheduler.test_evictions import History, cluster

HISTORIES = int(os.environ.get("KOHORT_HISTORIES", "40"))
NODES, LOST = 22, 2
STEPS = 60


class LossySim(Sim):
    """Bindings of which the server's answer and the watch are late."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.late = False
        self.before_restart: Callable[[], None] = lambda: None
        self.unheard: list[tuple[str, str]] = []  # pod and node: bound, and nobody was told

    def bind(self, uid: str, node: str) -> None:
        name = next((name for name, pod in self.objects["pod"].items() if pod["metadata"]["uid"] == uid), None)
        if not self.late or name is None or self.refuse.get(name):
            super().bind(uid, node)
            return
        assert "nodeName" not in self.objects["pod"][name]["spec"], "bound twice"
        self.objects["pod"][name]["spec"]["nodeName"] = node
        self.unheard.append((name, node))

    def restart(self) -> None:
        self.before_restart()
        self.unheard.clear()  # a list brings what a watch did not
        super().restart()

    def hear(self) -> None:
        """The answer comes, and the watch."""
        name, node = self.unheard.pop(0)
        if (pod := self.objects["pod"].get(name)) is not None:
            self.core.bound(pod["metadata"]["uid"], node)
            self.tell("pod", name)


class LossHistory(History):
    """As there; and what a Job would do about lost members is done."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.sim = cluster(NODES, self.covered, self.allowed, LossySim())
        self.sim.on_binding = self.whole
        self.lossy.before_restart = self.before_restart
        self.lost = 0
        self.made = 0
        self.started: set[str] = set()

    def step(self) -> None:
        more = [self.late, self.hear_binding, self.replace, self.refuse_binding, self.crash, self.fresh]
        if self.lost < LOST:
            more.append(self.lose_node)
        if self.random.random() < 0.4:
            self.random.choice(more)()
        super().step()

    # ---- what happens

    @property
    def lossy(self) -> LossySim:
        assert isinstance(self.sim, LossySim)
        return self.sim

    def late(self) -> None:
        self.lossy.late = not self.lossy.late

    def hear_binding(self) -> None:
        if self.lossy.unheard:
            self.lossy.hear()

    def lose_node(self) -> None:
        """With its pods, as the node controller does it."""
        self.lost += 1
        node = self.random.choice(sorted(self.sim.objects["node"]))
        self.sim.delete("node", node)
        for name, pod in list(self.sim.objects["pod"].items()):
            if pod["spec"].get("nodeName") == node:
                self.sim.delete("pod", name)

    def replace(self) -> None:
        for name, size in self.sizes.items():
            group = self.sim.objects["group"][name]
            for _ in range(size - len(self.members(name))):
                self.made += 1
                item = {"pod": f"{name}-again{self.made}", "in": name, "cpu": "1"}
                create(self.sim, {**item, "priority": f"p{group['spec']['priority']}"})

    def before_restart(self) -> None:
        """What the old one asked for and heard nothing of is done or not; the disruption controller is no slower than a
        new scheduler: what is not in a budget's status by then, nobody could know."""
        while self.unheard:
            self.hear()
        self.sim.evictions.clear()
        self.controller()

    def refuse_binding(self) -> None:
        waiting = sorted(name for name, pod in self.sim.objects["pod"].items() if not pod["spec"].get("nodeName"))
        if waiting:
            self.sim.refuse[self.random.choice(waiting)] = self.random.randint(1, 2)

    def crash(self) -> None:
        """In the middle of the next decision that binds."""
        self.sim.crash = self.random.randint(1, 3)

    def hear(self) -> None:
        if self.unheard and self.unheard[0].pod.name not in self.sim.objects["pod"]:
            self.unheard.pop(0)  # its node was lost meanwhile
        else:
            super().hear()

    def fresh(self) -> None:
        """A new scheduler on the same API."""
        self.sim.restart()

    # ---- what must hold

    def members(self, group: str) -> list[dict[str, Any]]:
        pods = self.sim.objects["pod"].values()
        return [pod for pod in pods if (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == group]

    def bound(self, group: str) -> int:
        return sum(1 for pod in self.members(group) if pod["spec"].get("nodeName"))

    def whole(self, assignments: dict[str, str]) -> None:
        """No gang is started below its minimum: with what it has, all of it has a place."""
        cache = self.sim.core.cache
        for uid in assignments:
            group = cache.trees.get(cache.members[uid].pod.group or "")
            assert group is not None
            assert group.spec is not None
            assert len(group.placed) + len(group.finished) >= group.spec.need, group.key
            self.started.add(group.key.partition("/")[2])

    def check(self) -> None:
        low = [name for name in self.sim.evicted if name.startswith("low")]
        assert sum(map(self.is_covered, low)) <= self.allowed
        state = self.sim.core.cache.state
        assert (state.used <= state.alloc).all(), "over-committed"

    def end(self) -> None:
        """Everybody answers, whoever was lost is made again: all gangs are whole, or say why not."""
        self.lossy.late, self.sim.crash = False, 0
        self.sim.refuse.clear()
        for _ in range(60):
            self.replace()
            for one in list(self.sim.evictions):
                self.sim.evict(one)
            while self.unheard:
                self.hear()
            while self.lossy.unheard:
                self.lossy.hear()
            self.finish()
            self.sim.settle(2)
            self.check()
        for name, size in self.sizes.items():
            bound = self.bound(name)
            assert bound in {0, size} or name in self.started, f"{name} is half-bound: {bound} of {size}"
        for waiting in self.sim.core.pending():
            assert waiting.reason != "Queued", waiting
            assert waiting.detail, waiting
        self.stuck()

    def stuck(self) -> None:
        """There are more victims of lower priority than members of gangs: nobody has to wait."""
        half = {name: (self.bound(name), size) for name, size in self.sizes.items() if self.bound(name) != size}
        waiting = [(one.key, one.queue, one.reason, one.detail) for one in self.sim.core.pending()]
        assert not half, (half, waiting)


@pytest.mark.parametrize("first", range(0, HISTORIES, 10))
def test_histories_with_losses(first: int) -> None:
    for seed in range(first, first + 10):
        history = LossHistory(seed)
        try:
            for _ in range(STEPS):
                history.step()
            history.end()
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
