"""Random histories in virtual time: nodes and pods come and go, bindings are refused, the scheduler is restarted.

After each event the scheduler is left alone until nothing happens any more; then what must always hold is checked.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from tests.scheduler.short import create
from tests.scheduler.sim import Sim

from kohort.scheduler import snapshot
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.decision import DecisionKind
from kohort.scheduler.trees import Group

PRIORITIES = ("p0", "p10", "p100")
LONG = 30.0  # longer than any backoff here


def usage(core: SchedulerCore) -> dict[str, dict[str, int]]:
    state = core.cache.state
    names = state.resources.names
    found = {}
    for row, node_info in enumerate(state.node_infos):
        if node_info is not None:
            used = {names[column]: int(value) for column, value in enumerate(state.used[row]) if value}
            found[node_info.name] = used
    return found


def trees(core: SchedulerCore) -> dict[str, Any]:
    return {
        group.key: (
            group.answers,
            sorted(group.pending),
            sorted(group.placed),
            sorted(group.finished),
            dict(group.traits),
            group.ready_children,
            group.waiting_children,
            group.gated_children,
            group.settled_children,
        )
        for group in core.cache.trees
    }


class Histories(RuleBasedStateMachine):
    """One cluster, one scheduler."""

    groups: Bundle[str] = Bundle("groups")
    composites: Bundle[str] = Bundle("composites")
    pods: Bundle[str] = Bundle("pods")
    nodes: Bundle[str] = Bundle("nodes")

    def __init__(self) -> None:
        super().__init__()
        self.sim = Sim()
        self.sim.on_binding = self.check_binding
        self.count = 0
        self.preempted: set[str] = set()

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # ---- what happens

    @initialize(target=nodes)
    def first_nodes(self) -> Any:
        for number in range(3):
            create(self.sim, {"node": f"n{number}", "cpu": "3", "labels": {"rack": f"r{number % 2}"}})
        return multiple("n0", "n1", "n2")

    @rule(target=nodes, cpu=st.integers(1, 4), rack=st.sampled_from(["r0", "r1", None]))
    def add_node(self, cpu: int, rack: str | None) -> str:
        name = self.name("node")
        create(self.sim, {"node": name, "cpu": str(cpu), "labels": {"rack": rack} if rack else {}})
        return name

    @rule(node=consumes(nodes))
    def lose_node(self, node: str) -> None:
        """With its pods, as the node controller does it."""
        self.sim.delete("node", node)
        for name, pod in list(self.sim.objects["pod"].items()):
            if pod["spec"].get("nodeName") == node:
                self.sim.delete("pod", name)

    @rule(
        target=groups,
        gang=st.sampled_from([None, 1, 2, 3, 4]),
        topology=st.sampled_from([None, None, "rack"]),
        disruption=st.sampled_from(["single", "all"]),
        priority=st.sampled_from(PRIORITIES),
        pods=st.integers(0, 4),
    )
    def add_group(self, gang: int | None, topology: str | None, disruption: str, priority: str, pods: int) -> str:
        name = self.name("g")
        item: dict[str, Any] = {"group": name, "disruption": disruption, "priority": priority}
        item |= {key: value for key, value in (("gang", gang), ("topology", topology)) if value is not None}
        create(self.sim, item)
        for _ in range(pods):
            create(self.sim, {"pod": self.name("p"), "in": name, "cpu": "1", "priority": priority})
        return name

    @rule(target=composites, gang=st.sampled_from([None, 1, 2]), topology=st.sampled_from([None, "rack"]))
    def add_composite(self, gang: int | None, topology: str | None) -> str:
        name = self.name("c")
        item: dict[str, Any] = {"composite": name}
        item |= {key: value for key, value in (("gang", gang), ("topology", topology)) if value is not None}
        create(self.sim, item)
        return name

    @rule(target=groups, parent=composites, gang=st.integers(1, 3), pods=st.integers(1, 3))
    def add_leaf(self, parent: str, gang: int, pods: int) -> str:
        name = self.name("g")
        create(self.sim, {"group": name, "gang": gang, "parent": parent})
        for _ in range(pods):
            create(self.sim, {"pod": self.name("p"), "in": name, "cpu": "1"})
        return name

    @rule(target=pods, group=groups, cpu=st.integers(1, 2))
    def add_member(self, group: str, cpu: int) -> str:
        name = self.name("p")
        known = self.sim.objects["group"].get(group)
        priority = f"p{known['spec']['priority']}" if known else "p0"
        create(self.sim, {"pod": name, "in": group, "cpu": str(cpu), "priority": priority})
        return name

    @rule(target=pods, cpu=st.integers(1, 3), priority=st.sampled_from(PRIORITIES))
    def add_pod(self, cpu: int, priority: str) -> str:
        name = self.name("p")
        create(self.sim, {"pod": name, "cpu": str(cpu), "priority": priority})
        return name

    @rule(group=groups, gang=st.integers(1, 4))
    def change_minimum(self, group: str, gang: int) -> None:
        body = self.sim.objects["group"].get(group)
        if body is not None and "gang" in body["spec"]["schedulingPolicy"]:
            body["spec"]["schedulingPolicy"]["gang"]["minCount"] = gang
            self.sim.tell("group", group)

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        if group in self.sim.objects["group"]:
            self.sim.delete("group", group)

    @rule(composite=composites)
    def delete_composite(self, composite: str) -> None:
        if composite in self.sim.objects["composite"]:
            self.sim.delete("composite", composite)

    @rule(pick=st.integers(0, 1000), how=st.sampled_from(["delete", "Succeeded", "Failed"]))
    def end_pod(self, pick: int, how: str) -> None:
        names = sorted(self.sim.objects["pod"])
        if not names:
            return
        name = names[pick % len(names)]
        body = self.sim.objects["pod"][name]
        if how == "delete":
            self.sim.delete("pod", name)
        elif name in self.sim.bound:
            body["status"]["phase"] = how
            self.sim.tell("pod", name)

    @rule(pick=st.integers(0, 1000), times=st.integers(1, 3))
    def refuse_bindings(self, pick: int, times: int) -> None:
        names = sorted(name for name, pod in self.sim.objects["pod"].items() if not pod["spec"].get("nodeName"))
        if names:
            self.sim.refuse[names[pick % len(names)]] = times

    @rule(pick=st.integers(0, 1000))
    def delete_in_mid_cycle(self, pick: int) -> None:
        """The next decision is made; before it is carried out, a pod goes."""

        def go() -> None:
            names = sorted(self.sim.objects["pod"])
            if names:
                self.sim.delete("pod", names[pick % len(names)])

        self.sim.before_binding = go

    @rule()
    def restart(self) -> None:
        self.sim.restart()

    @rule(on=st.booleans())
    def restart_at_every_step(self, on: bool) -> None:
        """From now on the scheduler dies after each decision that changed anything."""

        def die() -> None:
            decision = self.sim.steps[-1].decision
            if decision is not None and (decision.assignments or self.sim.steps[-1].evictions):
                self.sim.restart()

        self.sim.after_step = die if on else None

    @rule(bindings=st.integers(1, 3))
    def crash_in_mid_binding(self, bindings: int) -> None:
        self.sim.crash = bindings

    # ---- what must hold

    def check_binding(self, assignments: dict[str, str]) -> None:
        """No gang is started below its minimum."""
        cache = self.sim.core.cache
        for uid in assignments:
            key = cache.members[uid].pod.group
            group = cache.trees.get(key) if key is not None else None
            if group is not None and group.spec is not None:
                assert len(group.placed) + len(group.finished) >= group.spec.need, group.key

    @invariant()
    def holds(self) -> None:
        sim = self.sim
        before = len(sim.steps)
        armed = sim.before_binding
        sim.settle(LONG)
        if armed is not None and sim.before_binding is None:
            sim.settle(LONG)  # a pod went at some moment of the first; its room has to be found within the second
        self.check_room()
        self.check_reasons()
        self.check_queue()
        self.check_victims(before)
        self.check_restart()

    def check_room(self) -> None:
        state = self.sim.core.cache.state
        assert (state.used <= state.alloc).all(), "over-committed"

    def check_reasons(self) -> None:
        for one in self.sim.core.pending():
            assert one.reason != "Queued", one
            assert one.detail, one

    def check_queue(self) -> None:
        """Every root that waits is in the queue, and nothing else."""
        core = self.sim.core
        waiting = set()
        for uid, member in core.cache.members.items():
            if not member.node and not member.leaving:
                root = core.cache.root(member)
                if root is None:
                    waiting.add(f"pod/{uid}")
                elif isinstance(root, Group):
                    waiting.add(root.key)
        assert {entry.key for entry in core.queue} == waiting

    def check_victims(self, before: int) -> None:
        """Who was preempted for, got its place (unless the place was refused, or it went itself)."""
        if any(self.sim.refuse.values()):
            return
        placed: set[str] = set()
        for step in reversed(self.sim.steps[before:]):
            decision = step.decision
            if decision is None:
                continue
            if decision.kind is DecisionKind.SCHEDULED:
                placed.add(decision.root)
            gone = any(one.pod.name in self.sim.evicted for one in step.evictions)
            if gone and self.sim.core.queue.get(decision.root) is not None:
                assert decision.root in placed, f"{decision.root} preempted in vain"

    def check_restart(self) -> None:
        """A scheduler that starts now knows the same, and finds nothing to place that this one missed."""
        sim, kept = self.sim, self.sim.core
        kept.sync(sim.now)
        fresh = Sim(settings=sim.settings, objects=sim.objects, now=sim.now)
        fresh.restart()
        assert usage(fresh.core) == usage(kept)
        assert trees(fresh.core) == trees(kept)
        fresh.core.sync(fresh.now)
        self.check_snapshot(fresh.core)
        assert {entry.key for entry in fresh.core.queue} == {entry.key for entry in kept.queue}
        if any(sim.refuse.values()) or kept.backfill.root is not None:
            return  # a fresh one does not know whose patience has ended
        while (step := fresh.core.step(fresh.now)) is not None:
            assert step.decision is None or not step.decision.assignments, f"{step.decision.root} was not woken"
            if step.evictions:
                break

    def check_snapshot(self, core: SchedulerCore) -> None:
        """What /debug/state would show can be loaded again."""
        names = {"nodes": "node", "podgroups": "group", "compositepodgroups": "composite", "pods": "pod"}
        objects = {name: list(self.sim.objects[kind].values()) for name, kind in names.items()}
        keep = snapshot.ObjectStore()
        for name, found in objects.items():
            for number, body in enumerate(found):
                keep.put(name, str(number), body)
        document = json.loads(msgspec.json.encode(snapshot.dump(core, keep)))
        loaded = snapshot.load(document, self.sim.settings)
        assert usage(loaded) == usage(core)
        assert trees(loaded) == trees(core)


Histories.TestCase.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestHistories = Histories.TestCase


def test_a_pod_on_a_node_that_is_not_known_is_counted_once() -> None:
    sim = Sim()
    create(sim, {"pod": "p", "cpu": "1", "node": "gone", "priority": "p10"})
    sim.objects["pod"]["p"]["metadata"]["labels"] = {"a": "b"}
    sim.tell("pod", "p")
    assert sim.core.cache.priorities == {10: 1}
    sim.delete("pod", "p")
    assert not sim.core.cache.priorities
