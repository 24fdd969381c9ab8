"""The state under any history: arrays and counters equal those of a state built afresh, and trials leave no trace."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.place.short import Short, likes, pod_affinity, pod_anti_affinity, spread

from kohort.place.claims import Claim
from kohort.place.columns import ChangeLog, LabelColumn
from kohort.place.demand import Branch, Leaf, PendingPod
from kohort.place.engine import Engine
from kohort.place.search import Search
from kohort.place.state import ClusterState

RED, BLUE = {"colour": "red"}, {"colour": "blue"}
PORT = {"containers": [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]}
SPECS: list[dict[str, Any]] = [
    {},
    {"labels": RED},
    {"labels": BLUE, **pod_anti_affinity(RED)},
    {"labels": RED, **pod_anti_affinity(RED, "rack")},
    {"labels": RED, **pod_affinity((RED, "rack"))},
    {"labels": BLUE, **likes(RED, "rack")},
    {"labels": RED, **spread(RED, "rack")},
    {"labels": RED, "nodeSelector": {"rack": "r1"}},
    PORT,
    {"asks": {"example.com/device": "1"}},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "one"}}]},
]


def fingerprint(state: ClusterState) -> dict[str, Any]:
    """All that decisions look at, by names instead of rows and codes."""
    rows = {node_info.name: row for row, node_info in enumerate(state.node_infos) if node_info is not None}
    names = state.resources.names

    def amounts(values: Any) -> dict[str, Any]:
        return {name: {names[c]: int(v) for c, v in enumerate(values[row]) if v} for name, row in sorted(rows.items())}

    return {
        "alloc": amounts(state.alloc),
        "used": amounts(state.used),
        "weighed": {name: state.weighed[row].tolist() for name, row in sorted(rows.items())},
        "ports": {name: dict(sorted(state.node(row).ports.items())) for name, row in sorted(rows.items())},
        "port rows": {p: sorted(state.node(r).name for r in found) for p, found in state.ports.items() if found},
        "pods": {name: sorted(state.node(row).pods) for name, row in sorted(rows.items())},
        "taints": {name: state.taints[state.tainted[row]] for name, row in sorted(rows.items())},
        "holders": dict(sorted(state.claims.holders.items())),
        "counters": _counters(state, rows),
    }


def _counters(state: ClusterState, rows: dict[str, int]) -> dict[Any, Any]:
    found = {}
    for counter in state.interpod.counters():
        column = state.column(counter.term.key)
        counter.fits(column.size, state.rows)
        domains = {
            column.value(code): (
                int(counter.matching[code]),
                int(counter.anti_affinity[code]),
                int(counter.preference[code]),
            )
            for code in range(1, column.size)
            if counter.matching[code] or counter.anti_affinity[code] or counter.preference[code]
        }
        staying = {name: int(counter.staying[row]) for name, row in sorted(rows.items()) if counter.staying[row]}
        if domains or staying:
            found[counter.term] = (domains, staying, counter.total, counter.anti_affinity_total, counter.preferring)
    return found


class Histories(RuleBasedStateMachine):
    """Nodes, labels and pods come, change and go; gangs are tried and taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.short = Short()
        self.short.state.claims.put("default/one", Claim(once=True))
        self.nodes: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, tuple[dict[str, Any], str]] = {}
        self.count = self.checks = 0

    @rule(number=st.integers(0, 20), cpu=st.integers(1, 6), rack=st.sampled_from(["r1", "r2", None]), bad=st.booleans())
    def set_node(self, number: int, cpu: int, rack: str | None, bad: bool) -> None:
        taints = [{"key": "bad", "effect": "NoSchedule"}] if bad else []
        facts: dict[str, Any] = {"cpu": cpu, "taints": taints, "more": {"example.com/device": "1"} if bad else {}}
        if rack:
            facts["rack"] = rack
        self.nodes[f"n{number}"] = facts
        self.short.node(f"n{number}", **facts)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        self.short.state.remove_node(name)

    @rule(number=st.integers(0, 22), spec=st.sampled_from(SPECS), again=st.integers(0, 30), gone=st.booleans())
    def set_pod(self, number: int, spec: dict[str, Any], again: int, gone: bool) -> None:
        """A pod comes, or one that is there changes or moves; sometimes to a node that is not known."""
        name, node = f"p{again}", f"n{number}"
        obj = self.short.obj(name, **spec)
        if gone:
            obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.pods[name] = (obj, node)
        self.short.state.set_pod(obj, node)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def remove_pod(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.pods)))
        del self.pods[name]
        self.short.state.remove_pod(name)

    @rule(specs=st.lists(st.sampled_from(SPECS), min_size=1, max_size=12), keyed=st.booleans(), keep=st.booleans())
    def try_a_gang(self, specs: list[dict[str, Any]], keyed: bool, keep: bool) -> None:
        short = self.short
        pods = [self._pending(f"g{self.count}-{n}", spec) for n, spec in enumerate(specs)]
        self.count += 1
        half = len(pods) // 2 or 1
        root = Branch(
            "root", [Leaf("a", pods[:half], half, "rack" if keyed else None), Leaf("b", pods[half:], None)], 1
        )
        before = fingerprint(short.state)
        short.state.widen()
        used = short.state.used.copy()
        result = Search(short.engine).place(root)
        # A node may have been over-committed by others; what a placement adds to must still be there.
        grown = short.state.used > used
        assert (short.state.used[grown] <= short.state.alloc[grown]).all()
        if result.ok:
            assert result.placed
        short.engine.undo(0)
        assert fingerprint(short.state) == before
        for pod, row in result.placed.items() if keep else ():
            node = short.state.node(row).name
            obj = self.short.obj(pod, **specs[int(pod.split("-")[1])])
            self.pods[pod] = (obj, node)
            short.state.set_pod(obj, node)

    def _pending(self, name: str, spec: dict[str, Any]) -> PendingPod:
        return self.short.pod(name, **spec)

    @invariant()
    def equals_one_built_afresh(self) -> None:
        fresh = Short()
        fresh.state.claims.put("default/one", Claim(once=True))
        for name, facts in self.nodes.items():
            fresh.node(name, **facts)
        for obj, node in self.pods.values():
            fresh.state.set_pod(obj, node)
        # The same terms must be counted, whatever was asked about in between.
        for counter in self.short.state.interpod.counters():
            if counter.term not in {one.term for one in fresh.state.interpod.counters()}:
                fresh.state.interpod._register(counter.term, counter.carrier)
        assert fingerprint(self.short.state) == fingerprint(fresh.state)

    @invariant()
    def warm_fits_equal_cold_ones(self) -> None:
        cold = Engine(self.short.state)
        for signature in list(self.short.state.signatures):
            warm_fit, warm_score = self.short.engine.evaluate(signature)
            cold_fit, cold_score = cold.evaluate(signature)
            assert np.array_equal(warm_fit.room, cold_fit.room)
            free = warm_fit.room > 0
            assert np.array_equal(warm_score.load[free], cold_score.load[free])
            if self.checks % 3 == 0:  # not each time, so that more than one change waits
                every = np.ones(len(free), np.bool_)
                assert warm_score.best(every, None) == cold_score.best(every, None)
                assert np.array_equal(warm_score.load, cold_score.load)
        self.checks += 1


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=15, stateful_step_count=25, deadline=None, report_multiple_bugs=False)


def test_rows_are_reused_and_grow() -> None:
    short = Short()
    for number in range(100):
        short.node(f"n{number}")
    assert short.state.rows == 128
    for number in range(50):
        short.state.remove_node(f"n{number}")
    for number in range(200, 250):
        short.node(f"n{number}")
    assert short.state.rows == 128
    assert int(short.state.alive.sum()) == 100


def test_same_input_same_placement() -> None:
    def decide(seed: int) -> list[dict[str, str]]:
        rng, short = Random(seed), Short()
        for number in range(20):
            short.node(f"n{number}", rng.randint(2, 8), rack=f"r{number % 3}")
        return [
            short.place(*(short.pod(f"p{n}", rng.choice([1, 2, 3]), **rng.choice(SPECS[:7])) for n in range(6)))
            for _ in range(4)
        ]

    assert decide(1) == decide(1)


def test_a_change_log_forgets_and_says_so() -> None:
    log = ChangeLog()
    cursor = log.end
    log.add(3)
    log.add_many([4, 3])
    assert log.since(cursor) == [3, 4]
    assert log.since(log.end) == []
    log.add_many([1] * 5000)
    log.trim(10)
    assert log.since(cursor) is None
    assert log.since(log.end) == []


def test_an_empty_label_value_is_not_an_absent_one() -> None:
    column = LabelColumn(3)
    column.set(0, "")
    column.set(1, None)
    assert column.codes[0] != column.codes[1] == 0
    assert column.value(int(column.codes[0])) == ""
    assert column.find("") == column.codes[0]
    assert column.find("never") is None
