"""A process that runs for months: cycles go by the clock, and looking for them costs little."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import lru_cache

import msgspec
import pytest

from kohort import tuning
from kohort.kube.codec import decode_large


@asynccontextmanager
async def kept_calm() -> AsyncIterator[None]:
    """While memory is given back in calm moments."""
    keeping = asyncio.create_task(tuning.give_back_when_calm())
    try:
        async with asyncio.timeout(30):
            yield
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


class Thing:
    def __init__(self) -> None:
        self.itself = self


async def test_cycles_that_have_lived_for_a_while_go_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_PAUSE", 0.01)
    monkeypatch.setattr(tuning, "_FEW", 1 << 40)  # other tests may have set much aside
    monkeypatch.setattr(tuning, "_LONGEST", 1 << 40)
    gc.disable()
    keeping = asyncio.create_task(tuning.keep_small())
    try:
        gone = weakref.ref(Thing())
        async with asyncio.timeout(30):
            while gone() is not None:
                await asyncio.sleep(0.01)
    finally:
        keeping.cancel()
        gc.enable()


async def test_a_look_that_will_be_long_is_left_out_until_memory_is_small_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Objects of a hostile tenant make a heap large between two looks: 222 ms were seen."""
    held, ticks, looks = 100 << 20, 0, list[int]()

    def give_back() -> None:
        nonlocal ticks, held
        ticks += 1
        held = (700 if 3 <= ticks < 6 else 100) << 20

    monkeypatch.setattr(tuning, "_PAUSE", 0.001)
    monkeypatch.setattr(tuning, "_FEW", 1 << 40)
    monkeypatch.setattr(tuning, "resident", lambda: held)
    monkeypatch.setattr(tuning, "give_back", give_back)
    monkeypatch.setattr(gc, "collect", lambda: looks.append(ticks))
    keeping = asyncio.create_task(tuning.keep_small())
    try:
        async with asyncio.timeout(30):
            while ticks < 9:
                await asyncio.sleep(0.001)
    finally:
        keeping.cancel()
    assert {0, 1, 2, 6, 7} <= set(looks)
    assert not {3, 4, 5} & set(looks)


async def test_after_a_look_that_was_long_there_is_none_while_memory_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks, looks = 0, list[int]()

    def give_back() -> None:
        nonlocal ticks
        ticks += 1

    def collect() -> None:
        looks.append(ticks)
        end = time.perf_counter() + 0.07
        while time.perf_counter() < end:
            pass

    monkeypatch.setattr(tuning, "_PAUSE", 0.001)
    monkeypatch.setattr(tuning, "_FEW", 1 << 40)
    monkeypatch.setattr(tuning, "resident", lambda: 100 << 20)
    monkeypatch.setattr(tuning, "give_back", give_back)
    monkeypatch.setattr(gc, "collect", collect)
    keeping = asyncio.create_task(tuning.keep_small())
    try:
        async with asyncio.timeout(30):
            while ticks < 5:
                await asyncio.sleep(0.001)
    finally:
        keeping.cancel()
    assert looks == [0]


async def test_where_a_look_at_everything_is_long_there_is_none_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = asyncio.Event()
    monkeypatch.setattr(tuning, "_PAUSE", 0.001)
    monkeypatch.setattr(tuning, "_FEW", 0)
    monkeypatch.setattr(gc, "collect", looks.set)
    given = 0

    def give_back() -> None:
        nonlocal given
        given += 1

    monkeypatch.setattr(tuning, "give_back", give_back)
    keeping = asyncio.create_task(tuning.keep_small())
    try:
        async with asyncio.timeout(30):
            while given < 3:
                await asyncio.sleep(0.001)
    finally:
        keeping.cancel()
    assert not looks.is_set()


def test_what_a_process_had_goes_before_it_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set aside or not, however much there is."""
    monkeypatch.setattr(tuning, "_FEW", 0)
    monkeypatch.setattr(gc, "callbacks", [tuning._SetAside()])
    gc.disable()
    try:
        gone = weakref.ref(Thing())
        gc.freeze()
        tuning.start_afresh()
        assert gone() is None
    finally:
        gc.enable()


def test_where_nobody_has_settled_beginning_again_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "callbacks", [])
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a look at everything"))
    tuning.start_afresh()


@pytest.mark.parametrize("used", [0.1, 0.9])
async def test_memory_goes_back_when_there_is_little_to_do(monkeypatch: pytest.MonkeyPatch, used: float) -> None:
    """Every look says that another share of the time was used."""
    looks = 0
    given = asyncio.Event()
    loop = asyncio.get_running_loop()

    def thread_time() -> float:
        nonlocal looks
        looks += 1
        return looks * used * 0.001

    monkeypatch.setattr(tuning, "_LOOK", 0.001)
    monkeypatch.setattr(tuning, "_AGAIN", 0.001)
    monkeypatch.setattr("time.thread_time", thread_time)
    monkeypatch.setattr(tuning, "give_back", lambda: loop.call_soon_threadsafe(given.set))
    async with kept_calm():
        while looks < 20:
            await asyncio.sleep(0.001)
    assert given.is_set() == (used < 0.25)


async def test_what_gives_little_back_is_done_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    moments: list[float] = []
    monkeypatch.setattr(tuning, "_LOOK", 0.001)
    monkeypatch.setattr(tuning, "_AGAIN", 0.01)
    monkeypatch.setattr("time.thread_time", lambda: 0.0)
    monkeypatch.setattr(tuning, "resident", lambda: 1 << 30)
    monkeypatch.setattr(tuning, "give_back", lambda: moments.append(time.monotonic()))
    async with kept_calm():
        while len(moments) < 4:
            await asyncio.sleep(0.001)
    pauses = [after - before for before, after in itertools.pairwise(moments)]
    assert all(pause > 0.01 * 2**number for number, pause in enumerate(pauses, 1))


async def test_who_has_freed_much_need_not_wait_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the history of a store is forgotten, minutes after what made it large."""
    given = 0

    def give_back() -> None:
        nonlocal given
        given += 1

    monkeypatch.setattr(tuning, "_LOOK", 0.001)
    monkeypatch.setattr(tuning, "_AGAIN", 0.01)
    monkeypatch.setattr("time.thread_time", lambda: 0.0)
    monkeypatch.setattr(tuning, "resident", lambda: 1 << 30)  # nothing is ever given back: pauses grow
    monkeypatch.setattr(tuning, "give_back", give_back)
    async with kept_calm():
        while given < 6:
            await asyncio.sleep(0.001)
        before = time.monotonic()
        tuning.freed(tuning._FREED - 1)
        tuning.freed(2)
        while given < 7:
            await asyncio.sleep(0.001)
        assert time.monotonic() - before < 0.2  # the next of those pauses is 0.64 s


BODY = msgspec.json.encode([{"name": [number]} for number in range(30_000)])


@pytest.mark.parametrize(("before", "settled"), [(None, False), (0, True), (1, True)])
def test_nobody_looks_for_cycles_in_what_was_just_read(
    monkeypatch: pytest.MonkeyPatch, before: int | None, settled: bool
) -> None:
    monkeypatch.setattr(tuning, "_looks_before", before)
    try:
        read = decode_large(msgspec.json.decode, BODY)
        looked_at = any(one is read for one in gc.get_objects())
    finally:
        gc.unfreeze()
    assert looked_at is not settled


def test_what_is_small_is_not_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_looks_before", 1)
    read = decode_large(msgspec.json.decode, b'["' + b"a" * (1 << 19) + b'"]')
    assert any(one is read for one in gc.get_objects())


@pytest.mark.parametrize("before", [0, 1])
def test_garbage_is_not_set_aside_with_it(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """Whoever leaves cycles and sends large objects must not fill the memory."""
    monkeypatch.setattr(tuning, "_looks_before", before)
    gc.disable()
    try:
        gone = weakref.ref(Thing())
        gc.enable()
        decode_large(msgspec.json.decode, BODY)
        assert gone() is None
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.fixture
def waiting_for_calm() -> Iterator[None]:
    """The collector as `kohort up` has it."""
    before = gc.get_threshold()
    callbacks = list(gc.callbacks)
    tuning.settle(calm=True)
    gc.collect(1)
    yield
    gc.set_threshold(*before)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


def _passes(count: int) -> None:
    for _ in range(count):
        gc.collect(0)


@pytest.mark.usefixtures("waiting_for_calm")
def test_the_first_look_at_much_that_was_read_is_not_taken() -> None:
    """It would be long, in the middle of others' work, whichever thread has read it."""
    looked: list[int] = []

    def watch(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked.append(len(gc.get_objects(info["generation"])))

    gc.callbacks.append(watch)
    read = decode_large(msgspec.json.decode, BODY)
    many = [[number] for number in range(30_000)]  # the collector has its turn again
    assert len(read) == len(many) == 30_000
    assert looked, "it goes on"
    assert max(looked) < 25_000


@pytest.mark.usefixtures("waiting_for_calm")
def test_what_is_not_quite_new_is_looked_at_in_calm_moments_only() -> None:
    looks = tuning._CalmLooks()
    thing = Thing()
    gone = weakref.ref(thing)
    _passes(1)  # it was there, and is not quite new any more
    del thing
    many = [[number] for number in range(100_000)]  # ten looks at what is new
    looks.look(calm=False)
    assert gone() is not None
    looks.look(calm=True)
    assert gone() is None
    assert len(many) == 100_000


@pytest.mark.usefixtures("waiting_for_calm")
def test_few_are_looked_at_as_well_but_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has nothing to do makes nothing that is new, and would keep what the last busy moment has left."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    looks = tuning._CalmLooks()
    thing = Thing()
    gone = weakref.ref(thing)
    del thing
    looks.look(calm=True)
    assert gone() is not None
    now = 61.0
    looks.look(calm=False)
    assert gone() is not None
    looks.look(calm=True)
    assert gone() is None


@pytest.mark.usefixtures("waiting_for_calm")
def test_a_look_that_would_be_long_is_postponed_and_then_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    held = 1 << 30
    now = 0.0
    monkeypatch.setattr(tuning, "resident", lambda: held)
    monkeypatch.setattr("time.monotonic", lambda: now)
    looked: list[str] = []
    looks = tuning._CalmLooks()
    _passes(3)
    monkeypatch.setattr(gc, "collect", lambda: looked.append("look"))
    monkeypatch.setattr(gc, "freeze", lambda: looked.append("aside"))
    held += 1 << 29
    looks.look(calm=True)
    assert looked == []
    now = 601.0
    looks.look(calm=True)
    assert looked == ["aside"]
    looks.look(calm=True)  # that is what there is now
    assert looked == ["aside", "look"]


@pytest.mark.usefixtures("waiting_for_calm")
@pytest.mark.parametrize(
    ("passes", "stay", "looks"), [(40, True, 1), (41, True, 0), (41, False, 1), (101, True, 0), (101, False, 0)]
)
def test_a_look_at_many_objects_is_postponed_where_memory_does_not_tell(
    monkeypatch: pytest.MonkeyPatch, passes: int, stay: bool, looks: int
) -> None:
    """Large objects in the place of others that have gone: the process holds no more than before."""
    monkeypatch.setattr(tuning, "resident", lambda: 1 << 30)
    calm, looked = tuning._CalmLooks(), list[str]()
    kept = [[number] for number in range(min(passes, 41) * 10_000 - 5_000)] if stay else []  # a pass less, or so
    _passes(passes - gc.get_count()[1])
    assert gc.get_count()[1] == passes
    monkeypatch.setattr(gc, "collect", lambda: looked.append("look"))
    calm.look(calm=True)
    assert len(looked) == looks, len(kept)


@pytest.mark.usefixtures("waiting_for_calm")
def test_who_is_never_calm_is_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    looked: list[str] = []
    looks = tuning._CalmLooks()
    _passes(3)
    monkeypatch.setattr(gc, "collect", lambda: looked.append("look"))
    looks.look(calm=False)
    now = 901.0
    looks.look(calm=False)
    assert looked == ["look"]


@pytest.mark.parametrize(("used", "called"), [(0.1, True), (0.9, False)])
async def test_what_might_be_wanted_soon_is_forgotten_in_calm_moments(
    monkeypatch: pytest.MonkeyPatch, used: float, called: bool
) -> None:
    looks = 0

    def thread_time() -> float:
        nonlocal looks
        looks += 1
        return looks * used * 0.001

    class Cache:
        forgot = 0

        def forget(self) -> None:
            self.forgot += 1

        def fail(self) -> None:
            raise RuntimeError("cannot forget")

    cache, gone = Cache(), Cache()
    monkeypatch.setattr(tuning, "_forgetful", [])
    tuning.when_calm(cache.fail)  # stops nobody
    tuning.when_calm(cache.forget)
    tuning.when_calm(gone.forget)
    del gone
    monkeypatch.setattr(tuning, "_LOOK", 0.001)
    monkeypatch.setattr(tuning, "_AGAIN", 0.001)
    monkeypatch.setattr(tuning, "_ANYWAY", 0.005)  # memory goes back even so
    monkeypatch.setattr("time.thread_time", thread_time)
    monkeypatch.setattr(tuning, "give_back", lambda: None)
    async with kept_calm():
        while looks < 20:
            await asyncio.sleep(0.001)
    assert bool(cache.forgot) == called
    assert len([one for one in tuning._forgetful if one() == cache.forget]) == 1
    assert len(tuning._forgetful) == (2 if called else 3), "whoever is gone is not kept in mind"


def test_answers_that_functions_remember_are_forgotten_in_calm_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_forgetful", [])
    bounded, small, about_kinds = lru_cache(4096)(str), lru_cache(4096)(str), lru_cache(None)(str)
    for name, one in (("bounded", bounded), ("small", small), ("about_kinds", about_kinds)):
        monkeypatch.setattr(tuning, name, one, raising=False)
    for number in range(1000):
        bounded(number)
        about_kinds(number)
    small(1)
    tuning._forget()
    assert [one.cache_info().currsize for one in (bounded, small, about_kinds)] == [0, 1, 1000]
