"""Equal pods that may go anywhere: the short way is the long one."""

from __future__ import annotations

import random

import pytest
from tests.place.short import Short, pod_anti_affinity

from kohort.place import search
from kohort.place.demand import Leaf, Result
from kohort.place.equalpods import are_equal
from kohort.place.profile import Profile
from kohort.place.reservations import Reservation
from kohort.place.search import Search


def _case(rng: random.Random) -> tuple[Short, Leaf]:
    short = Short(Profile(strategy=rng.choice(("least", "most"))))
    for number in rng.sample(range(9), rng.randrange(1, 9)):
        short.node(f"n{number}", rng.randrange(1, 9), taints=_TAINTS if rng.random() < 0.2 else ())
    for number in range(rng.randrange(4)):
        short.run(f"r{number}", f"n{rng.randrange(9)}", rng.choice((0.5, 1, 2)))
    size = rng.choice((1, 2, 3, 5, 12, 30))
    pods = [short.pod(f"p{number}", cpu) for cpu in [rng.choice((0.5, 1, 2))] for number in range(size)]
    running = list(range(rng.randrange(2)))
    return short, Leaf("g", pods, rng.choice((None, 0, 1, size // 2, size, size + 1)), running=running)


_TAINTS = ({"key": "a", "value": "b", "effect": "NoSchedule"},)


def _placed(short: Short, leaf: Leaf, *, minimum_only: bool, told: bool) -> Result:
    mark = short.engine.mark()
    result = Search(short.engine).place(leaf, minimum_only=minimum_only, told=told)
    short.engine.undo(mark)
    return result


@pytest.mark.parametrize("seed", range(60))
def test_the_short_way_finds_what_the_long_one_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    short, leaf = _case(rng)
    asked = {"minimum_only": rng.random() < 0.4, "told": rng.random() < 0.5}
    assert are_equal(short.engine, leaf)
    quick = _placed(short, leaf, **asked)
    monkeypatch.setattr(search, "are_equal", lambda *_: False)
    assert quick == _placed(short, leaf, **asked)


def test_who_is_not_equal_goes_the_long_way() -> None:
    short = Short(n1=4)
    rule = pod_anti_affinity({"app": "a"})
    ruled = Leaf("g", [short.pod("a", labels={"app": "a"}, **rule)], 1)
    mixed = Leaf("g", [short.pod("a"), short.pod("b", 2)], 2)
    told = Leaf("g", [short.pod("a", nominated="n1")], 1)
    held = Leaf("g", [short.pod("a")], 1, topology="rack")
    assert not any(are_equal(short.engine, leaf) for leaf in (ruled, mixed, told, held))
    assert are_equal(short.engine, Leaf("g", [short.pod("a"), short.pod("b")], 2))


def test_room_that_is_kept_follows_its_node() -> None:
    """What a reservation takes is remembered by rows, and a row may have another node."""
    short = Short(n1=2)
    engine, pod = short.engine, short.pod("kept", 2)
    engine.reservations.put(Reservation("owner", 0, {"kept": (pod, "n1")}))

    def room() -> dict[str, int]:
        with engine.respecting_nominations("other", 0):
            there = [one for one in short.state.node_infos if one is not None]
            return {one.name: int(engine.room(pod.eq_class)[short.state.row(one.name)]) for one in there}

    assert room() == {"n1": 0}
    short.node("n2", 2)
    assert room() == {"n1": 0, "n2": 1}
    short.state.remove_node("n1")
    short.node("n3", 2)  # where n1 was
    assert room() == {"n2": 1, "n3": 1}
    short.node("n1", 2)
    assert room() == {"n1": 0, "n2": 1, "n3": 1}
    engine.reservations.drop("owner")
    assert room() == {"n1": 1, "n2": 1, "n3": 1}


def test_a_row_without_pods_takes_as_many_as_it_has_room_for() -> None:
    """Remembered until what nodes offer changes."""
    short = Short(n1=4)
    fit = short.engine.fit(short.pod("a", 2).eq_class.signature)
    short.run("r", "n1", 3)
    assert fit.whole()[short.state.row("n1")] == 2
    short.node("n1", 8)
    fit.refresh()
    assert fit.whole()[short.state.row("n1")] == 4
    short.node("n1", 8, taints=_TAINTS)
    fit.refresh()
    assert not fit.whole().any()
