"""A large gang is decided in slices: others are decided between them, and it starts with all it needs or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import msgspec
import pytest
from tests.scheduler.short import create, group_body
from tests.scheduler.sim import Sim

from kohort.place.effort import Effort
from kohort.place.packing import Packing
from kohort.place.solving import answer
from kohort.scheduler import slices

SIZE = 12  # of a gang that counts as large here


@pytest.fixture(autouse=True)
def _every_pause_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "LARGE", SIZE)
    monkeypatch.setattr(slices, "SLICE", -1.0)  # seconds: a slice ends at the first place where it may


@pytest.fixture
def sim() -> Iterator[Sim]:
    made = Sim(aside=True)
    for number in range(4):
        create(made, {"node": f"n{number}", "cpu": "8"})
    yield made
    made.core.close()
    assert not [one for one in threading.enumerate() if one.name == "decision"]


def _gang(sim: Sim, name: str = "g", size: int = SIZE, cpu: int = 2, priority: str = "p0") -> None:
    """Pods of two sorts in turn: each is a place where the decision may pause."""
    sim.put("group", name, group_body({"gang": size, "priority": priority}, composite=False) | {"metadata": {}})
    for number in range(size):
        create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": str(cpu if number % 2 else 1), "priority": priority})


def _step(sim: Sim) -> None:
    step = sim.core.step(sim.now)
    assert step is not None
    sim.steps.append(step)
    sim.carry_out(step)


def _begun(sim: Sim) -> None:
    _gang(sim)
    _step(sim)
    assert sim.core.slices.under_way is not None
    assert not sim.bound


def test_it_is_placed_slice_by_slice(sim: Sim) -> None:
    _begun(sim)
    sim.drain()
    assert len(sim.bound) == SIZE
    assert sum(step.decision is None for step in sim.steps) > 2
    assert not sim.core.cache.engine.mark()


def test_the_same_seats_as_in_one_piece(sim: Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    _gang(sim)
    sim.drain()
    monkeypatch.setattr(slices, "LARGE", 1000)
    whole = Sim(aside=True)
    for number in range(4):
        create(whole, {"node": f"n{number}", "cpu": "8"})
    _gang(whole)
    whole.drain()
    assert sim.bound == whole.bound


def test_others_are_decided_between_two_slices(sim: Sim) -> None:
    _begun(sim)
    create(sim, {"pod": "other", "cpu": "1"})
    _step(sim)
    assert sim.bound.keys() == {"other"}
    assert sim.core.slices.under_way is not None
    sim.drain()
    assert len(sim.bound) == SIZE + 1


def test_nobody_less_important_is(sim: Sim) -> None:
    _gang(sim, priority="p10")
    _step(sim)
    create(sim, {"pod": "other", "cpu": "1"})
    while sim.core.slices.under_way is not None:
        assert not sim.bound
        _step(sim)
    sim.drain()
    assert len(sim.bound) == SIZE + 1


def test_who_took_its_room_is_seen_and_nothing_is_half_bound(sim: Sim) -> None:
    """The nodes hold 32, the gang needs 18, the others 16: it does not fit any more when it goes on."""
    _begun(sim)
    for _ in range(6):
        _step(sim)  # some of it has its seat in the trial
    for number in range(4):
        create(sim, {"pod": f"other-{number}", "cpu": "4"})
    sim.drain()
    used = sim.core.cache.state
    assert (used.used <= used.alloc).all()
    assert len(sim.bound) == 4
    assert not sim.core.cache.engine.mark()


def test_a_node_that_goes_takes_no_pod(sim: Sim) -> None:
    _begun(sim)
    _step(sim)
    sim.delete("node", "n0")
    sim.drain()
    assert len(sim.bound) == SIZE
    assert "n0" not in sim.bound.values()


def test_a_node_that_comes_meanwhile_is_not_missed(sim: Sim) -> None:
    _gang(sim, size=24, cpu=2)  # 36 of 32
    _step(sim)
    assert sim.core.slices.under_way is not None
    create(sim, {"node": "n4", "cpu": "8"})
    sim.settle(5)
    assert len(sim.bound) == 24


def test_room_that_is_freed_meanwhile_is_not_missed(sim: Sim) -> None:
    create(sim, {"pod": "first", "cpu": "8", "node": "n0"})
    _gang(sim, size=20, cpu=2)  # 30 of 24
    _step(sim)
    assert sim.core.slices.under_way is not None
    sim.remove_pod("first")
    sim.settle(5)
    assert len(sim.bound) >= 20


def test_a_gang_that_changes_is_decided_anew_and_in_one_piece(sim: Sim) -> None:
    _begun(sim)
    sim.remove_pod("g-0")
    sim.drain()
    assert sim.core.slices.under_way is None
    assert not sim.bound
    create(sim, {"pod": "g-0", "in": "g", "cpu": "1"})
    _step(sim)
    assert len(sim.bound) == SIZE


def test_a_gang_that_is_deleted_is_not_decided(sim: Sim) -> None:
    _begun(sim)
    for number in range(SIZE):
        sim.remove_pod(f"g-{number}")
    sim.delete("group", "g")
    sim.drain()
    assert not sim.bound
    assert sim.core.slices.under_way is None


def test_two_large_ones_come_one_after_the_other(sim: Sim) -> None:
    _begun(sim)
    _gang(sim, "h", cpu=1)
    create(sim, {"pod": "other", "cpu": "1"})
    _step(sim)
    _step(sim)
    assert "other" in sim.bound
    sim.drain()
    assert len(sim.bound) == 2 * SIZE + 1


def test_a_fault_of_ours_is_told_and_leaves_nothing(sim: Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    _begun(sim)
    monkeypatch.setattr("kohort.place.search.by_rank", lambda *_: 1 / 0)
    while sim.core.slices.under_way is not None:
        _step(sim)
    assert [one.root for one in sim.core.faults] == ["default/g"]
    assert not sim.core.cache.engine.mark()
    monkeypatch.undo()
    sim.settle(30)
    assert len(sim.bound) == SIZE


# ---- a look at several gangs at once

ALONE = {"a-0", "a-1"}
BOTH = {*ALONE, "b-0"}


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sim]:
    """Two gangs that fit only if packed together, and few pods count as large."""
    monkeypatch.setattr(slices, "LARGE", 3)
    made = Sim(aside=True)
    for number in range(2):
        create(made, {"node": f"n{number}", "cpu": "4"})
    for name, sizes in (("a", (2, 2)), ("b", (4,))):
        made.put("group", name, group_body({"gang": len(sizes)}, composite=False) | {"metadata": {}})
        for number, cpu in enumerate(sizes):
            create(made, {"pod": f"{name}-{number}", "in": name, "cpu": str(cpu)})
    yield made
    made.core.close()
    assert not [one for one in threading.enumerate() if one.name == "decision"]


def _settled(sim: Sim) -> None:
    """Questions are answered as well."""
    assert sim.core.questions is not None
    sim.drain()
    while asked := sim.core.questions.take():
        for question in asked:
            verdict = answer(msgspec.msgpack.decode(question.data, type=Packing), Effort())
            sim.core.answered(question, verdict, sim.now)
        sim.drain()


def _looking(sim: Sim) -> bool:
    return isinstance(sim.core.slices.under_way, slices.LookUnderWay)


def test_gangs_are_looked_at_together_in_slices(pair: Sim) -> None:
    _step(pair)
    assert _looking(pair)
    assert not pair.bound
    _settled(pair)
    assert pair.bound.keys() == BOTH
    assert not pair.core.cache.engine.mark()


def test_others_are_decided_between_two_slices_of_a_look(pair: Sim) -> None:
    create(pair, {"node": "elsewhere", "cpu": "1", "labels": {"for": "others"}})
    _step(pair)
    create(pair, {"pod": "other", "cpu": "1", "select": {"for": "others"}})
    while not pair.bound:
        assert _looking(pair)
        _step(pair)
    assert pair.bound.keys() == {"other"}
    _settled(pair)
    assert pair.bound.keys() == {*BOTH, "other"}


@pytest.mark.parametrize("gang", ["a", "b"])
def test_a_look_at_what_has_changed_is_given_up(pair: Sim, gang: str) -> None:
    _step(pair)
    assert _looking(pair)
    pair.delete("pod", f"{gang}-0")
    _settled(pair)
    assert pair.bound.keys() == {"a": {"b-0"}, "b": ALONE}[gang]
    assert not _looking(pair)


def test_what_has_changed_is_looked_at_in_one_piece(pair: Sim) -> None:
    _step(pair)
    assert _looking(pair)
    create(pair, {"pod": "b-1", "in": "b", "cpu": "9"})  # more than its minimum, and it never fits
    _step(pair)
    assert not _looking(pair)
    _settled(pair)
    assert pair.bound.keys() == BOTH


def test_a_look_waits_while_a_large_gang_is_decided(sim: Sim) -> None:
    _begun(sim)
    for name in ("a", "b"):
        _gang(sim, name, size=SIZE - 1, cpu=1)
    while sim.core.slices.under_way is not None and not _looking(sim):
        _step(sim)
        assert not sim.bound.keys() & {"a-0", "b-0"}
    sim.drain()
    assert len(sim.bound) == SIZE + SIZE - 1  # 18 and 11 of 32


def test_a_fault_in_a_look_changes_nothing_but_the_order(pair: Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    _step(pair)
    assert _looking(pair)
    monkeypatch.setattr("kohort.place.search.Search.fits", lambda *_, **__: 1 / 0)
    while _looking(pair):
        _step(pair)
    monkeypatch.undo()
    _settled(pair)
    assert pair.bound.keys() >= ALONE
    assert not pair.core.cache.engine.mark()
