"""What a long-running process sets about itself, once: Python's collector of cycles, memory, open files."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import resource
import sys
import time
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakMethod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

_OBJECTS: Final = 10_000  # new ones, until those are looked at
_MUCH: Final = 20_000  # new ones, of one text
_YOUNG, _OLD = 3, 1  # looks at the younger, until older ones are looked at as well
_LONG: Final = 0.01  # seconds of a look at all of them
_WHOLE: Final = 6 * 3600.0  # seconds until what was set aside is looked at again
_PAUSE: Final = 60.0  # seconds between two looks by the clock
_LOOK: Final = 1.0  # seconds between two looks whether there is little to do
_LITTLE: Final = 0.25  # of the time
_CALM: Final = 3  # looks in a row
_ANYWAY: Final = 900.0  # seconds
_AGAIN: Final = 10.0  # seconds between two times; twice as long each time that little was given back
_WORTH: Final = 4 << 20  # bytes: less is little
_FREED: Final = 16 << 20  # bytes that somebody has let go of
_PAGE: Final = os.sysconf("SC_PAGESIZE")
_RATE: Final = 0.25 / (1 << 30)  # seconds of a look for each byte of memory, at the least
_LONGEST: Final = 0.06  # seconds: a tenant may have made the heap large since the last one
_FEW: Final = 300_000  # objects that were set aside: a look at all of them takes 30 ms, and may be often
# Seconds for which a thread keeps the interpreter while another one wants it: Python's own 5 ms are what each turn of a
# loop and each row of a commit would wait for, as often as they come back from the system.
_SWITCH: Final = 0.0002
_FILES: Final = 1 << 20  # some systems know no limit; tables of descriptors should not grow without one

_NEVER: Final = 1 << 30
_NEW_PASSES: Final = 3  # looks at the youngest, until older ones are worth a look
_SELDOM: Final = 60.0  # seconds after which they are worth one however few are new: that is short, too
_NEW_BYTES: Final = 64 << 20  # since the last look: half a million objects, which take some 50 ms
# Memory that was free may be in use again, so bytes do not tell all. Each look at the youngest passes on at most
# `_OBJECTS`: after so few of them a look takes 80 ms at the most, and after twice as many to count them does.
_SHORT_PASSES: Final = 40
_COUNTED_PASSES: Final = 100
_POSTPONED: Final = 600.0  # seconds

_OURS: Final = "kohort."
_ANSWERS: Final = 64  # of a function; so few may stay
_Cached: Final = type(lru_cache(str))

_looks_before: int | None = None  # the generation that is looked at before much is read; None: nothing is set aside
_freed = 0  # bytes, since memory was last given back
_forgetful: list[WeakMethod[Callable[[], Any]]] = []


def settle(*, calm: bool = False) -> None:
    """Once, when everything is loaded: that stays, and need not be looked at again.

    Left alone the collector looks at all that is new after every 700 objects, which is one pod: a sixth of all
    processor time in a cluster of some thousand pods.

    `calm`: whatever has survived the first look is looked at in calm moments only (`give_back_when_calm`). There are
    few cycles among it, and much that a tenant may have sent.
    """
    gc.freeze()
    gc.set_threshold(_OBJECTS, *((_NEVER, _NEVER) if calm else (_YOUNG, _OLD)))
    if not any(isinstance(one, _SetAside) for one in gc.callbacks):
        gc.callbacks.append(_SetAside())
    gc.enable()
    switch_often()
    global _looks_before  # noqa: PLW0603 - of the process, as the collector is
    _looks_before = 0 if calm else 1


def switch_often() -> None:
    """Whoever waits for the interpreter gets it soon."""
    sys.setswitchinterval(_SWITCH)


@contextmanager
def reading_much() -> Iterator[None]:
    """Around the reading of a large text, without the collector: trees of JSON hold no cycles, so nobody need look at
    them. What is new before is looked at, which is little; then to set aside all that is new costs nothing. Garbage
    that had grown older (600 requests leave none, 640 pods on their way to Running 54 objects) is found when
    everything is looked at. Where looks wait for calm moments there is more of that, so only the newest is looked at
    before; without this the first look at a megabyte of JSON is 15 ms for everybody.
    """
    if _looks_before is None:
        yield
        return
    gc.collect(_looks_before)
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        if gc.get_count()[0] > _MUCH:
            gc.freeze()
    finally:
        if enabled:
            gc.enable()


class _SetAside:
    """A look at everything takes a tenth of a second for each million objects, and nothing else happens meanwhile. So
    what has survived one that was long is set aside, and the next looks at what is new since; trees of JSON hold no
    cycles and go without being looked at. A few times a day everything is looked at, for the cycles among the old.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._whole = time.monotonic()

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self._began = time.perf_counter()
        elif time.monotonic() - self._whole > _WHOLE:
            self._whole = time.monotonic()
            gc.unfreeze()
        elif time.perf_counter() - self._began > _LONG:
            gc.freeze()


def start_afresh() -> None:
    """What a process had before it begins again goes first, whatever the look costs: a lost lease leaves a whole set of
    informers in cycles, and the next would be built beside it, in memory that never becomes small again.
    """
    if any(isinstance(one, _SetAside) for one in gc.callbacks):  # not in whoever has one of ours inside, as tests do
        gc.unfreeze()
        gc.collect()
        give_back()


async def keep_small() -> None:
    """For a process that runs for months, until cancelled: cycles of what is gone are looked for by the clock, even
    when little is new, and free memory goes back. Where a look at everything is short, everything is looked at: how
    long it will be is told by how much memory there is, and by how long the last one was.
    """
    rate = _RATE
    while True:
        await asyncio.sleep(_PAUSE)
        held = resident()
        if gc.get_freeze_count() < _FEW and rate * held < _LONGEST:
            began = time.perf_counter()
            gc.unfreeze()
            gc.collect()
            rate = max((time.perf_counter() - began) / max(held, 1), _RATE)
        _forget()
        await asyncio.to_thread(give_back)


def when_calm(forget: Callable[[], object]) -> None:
    """`forget`, a method, is called before memory is given back, for as long as its object lives: for what was kept
    because it might soon be wanted again. Left in place it would be little, but each piece of it holds a page."""
    _forgetful.append(WeakMethod(forget))


def _forget() -> None:
    _clear_caches()
    _forgetful[:] = [one for one in _forgetful if one() is not None]
    for one in tuple(_forgetful):
        if (call := one()) is not None:
            try:
                call()
            except Exception:  # memory still goes back, and the others still forget
                log.exception("%s: nothing is forgotten", call.__qualname__)


def _clear_caches() -> None:
    """Functions of ours that remember their last answers remember what tenants have sent. Those that may remember
    everything are about kinds, of which there are few."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_OURS):
            for one in list(vars(module).values()):
                if isinstance(one, _Cached) and one.cache_parameters()["maxsize"] and one.cache_info()[3] > _ANSWERS:
                    one.cache_clear()


async def give_back_when_calm() -> None:
    """Until cancelled. For a process with a heap so large that looks at all of it have to be few.

    What is given back while there is much to do is soon wanted again, and new pages make reading a large object three
    to five times as slow. So it waits until there was little to do for some seconds, and goes back now and then anyway.
    Where that gives little it is done ever less often, until somebody says that much is free (`freed`).
    """
    global _freed
    calm, used = 0, time.thread_time()
    pause, given = _AGAIN, time.monotonic()
    looks = _CalmLooks()
    while True:
        await asyncio.sleep(_LOOK)
        before, used = used, time.thread_time()
        calm = calm + 1 if used - before < _LITTLE * _LOOK else 0
        looks.look(calm=calm > 0)
        waited = time.monotonic() - given
        if _freed > _FREED:
            pause = _AGAIN
        if waited < pause or (calm < _CALM and waited < _ANYWAY):
            continue
        held, _freed = resident(), 0
        if calm >= _CALM:
            _forget()
        await asyncio.to_thread(give_back)
        pause = _AGAIN if held - resident() > _WORTH else min(2 * pause, _ANYWAY)
        given = time.monotonic()


def freed(size: int) -> None:
    """So many bytes are no longer needed, at a time when nobody would think so."""
    global _freed  # noqa: PLW0603
    _freed += size


class _CalmLooks:
    """For cycles, where that is done in calm moments. If so much is new that it would take long it is postponed, as it
    may go by itself: it is not looked at meanwhile and costs nothing. What stays is set aside, unseen."""

    def __init__(self) -> None:
        self._held, self._at = resident(), time.monotonic()

    def look(self, *, calm: bool) -> None:
        waited = time.monotonic() - self._at
        if gc.get_threshold()[1] != _NEVER or not (calm or waited > _ANYWAY):
            return
        if gc.get_count()[1] < _NEW_PASSES and waited < _SELDOM:
            return
        held = resident()
        if held - self._held <= _NEW_BYTES and _few():
            gc.collect()
        elif waited > _POSTPONED:
            gc.freeze()
        else:
            return
        self._held, self._at = held, time.monotonic()


def _few() -> bool:
    """Whether a look at what is not quite new is short. Most of what was passed on may have gone by itself."""
    passes = gc.get_count()[1]
    if passes <= _SHORT_PASSES:
        return True
    return passes <= _COUNTED_PASSES and len(gc.get_objects(1)) <= _SHORT_PASSES * _OBJECTS


def give_back() -> None:
    """Memory that is free goes back to the system, where its library can. Other threads go on meanwhile."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int:
    """Bytes of memory that this process holds; 0 where that cannot be read."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except OSError:  # not Linux
        return 0


def raise_file_limit() -> int:
    """The soft limit becomes the hard one, as Go's runtime does it: 1,024 are too few for a server. What it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a sandbox that forbids it
        return soft
    return wanted
