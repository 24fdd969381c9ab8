"""Large objects that nobody wants any more, taken apart before they are freed.

Python frees a tree in one call, however large it is: 6 ms for each megabyte of JSON, and several times as much where
memory is scattered. So the last who holds one gives it here, and its lists and maps are emptied a few items at a time.
Whatever somebody else holds as well is left to them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Generator
from typing import Any, Final

import msgspec

from kohort.kube import shares
from kohort.kube.perloop import PerLoop

_WIDE: Final = 64  # items; what has fewer is taken apart item by item
_AT_ONCE: Final = 16  # items of what is wide
_PART: Final = 0.001  # seconds, until others have a turn
_REST: Final = 3.0  # times as long as that took
_LONG_REST: Final = 15.0  # while another tenant is at it
_PILE: Final = 64  # that wait: from there on memory matters more
_AGAIN: Final = 0.05  # seconds until we look again whether somebody still holds them; twice as long each time
_SELDOM: Final = 1.0  # seconds between two looks, at the most
_LONGEST: Final = 300.0  # seconds for which one waits; who holds it then will hold it for long
_MOST: Final = 4096  # that wait; more are freed as they come
_OURS: Final = 2  # references to what one variable, or one list, holds, while we ask


def pieces(held: list[Any]) -> Generator[None, None, None]:
    """Takes apart what only this list holds. It yields where others may have a turn."""
    began = time.perf_counter()
    while held:
        one = held.pop()
        if sys.getrefcount(one) == _OURS:
            if isinstance(one, msgspec.Struct) or len(one) <= _WIDE:
                held.extend(_parts(one))
            else:
                yield from _emptied(one)
        del one
        if time.perf_counter() - began > _PART:
            yield
            began = time.perf_counter()


def _parts(one: Any) -> list[Any]:
    """Its trees, which it does not hold any more, or (a struct) not for longer than it lives."""
    if isinstance(one, msgspec.Struct):
        values = [getattr(one, name) for name in one.__struct_fields__]
    else:
        values = list(one.values() if isinstance(one, dict) else one)
        one.clear()
    return [value for value in values if isinstance(value, (dict, list, msgspec.Struct))]


def _emptied(one: dict[Any, Any] | list[Any]) -> Generator[None, None, None]:
    began = time.perf_counter()
    while one:
        for _ in range(min(len(one), _AT_ONCE)):
            one.popitem() if isinstance(one, dict) else one.pop()
        if time.perf_counter() - began > _PART:
            yield
            began = time.perf_counter()


def _namespace(obj: Any) -> str:
    """Of a whole object, read or not; what is only a part of one is nobody's."""
    if isinstance(obj, dict):
        meta = obj.get("metadata")
        return str(meta.get("namespace") or "") if isinstance(meta, dict) else ""
    return str(getattr(getattr(obj, "metadata", None), "namespace", None) or "")


class Remains:
    """Of one loop: what waits to be taken apart.

    Whoever else holds one (a reconcile that has listed the pods of a namespace, and they are deleted meanwhile) would
    free it when he ends, and all others of that list with it: 600 ms for two hundred large pods. So each is held here
    until nobody else does. That keeps nothing alive for longer than until the next look.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[list[Any], float]] = deque()  # alone in its list, and until when
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, obj: Any) -> None:
        """The caller lets go of it. Others may hold it for a while."""
        if obj is None or len(self._waiting) >= _MOST:
            return
        self._waiting.append(([obj], time.monotonic() + _LONGEST))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        pause = _AGAIN
        while self._waiting:
            if await self._look():
                pause = _AGAIN
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _SELDOM)

    async def _look(self) -> bool:
        """Once at each that waits; whether any was taken apart."""
        found = False
        for _ in range(len(self._waiting)):
            held, until = self._waiting.popleft()
            if sys.getrefcount(held[0]) == _OURS:
                found = True
                await self._take_apart(held)
            elif time.monotonic() < until:
                self._waiting.append((held, until))
        return found

    async def _take_apart(self, held: list[Any]) -> None:
        owner = shares.tenant(_namespace(held[0]))
        began = time.perf_counter()
        for _ in pieces(held):
            await asyncio.sleep(self._rest(owner) * (time.perf_counter() - began))
            began = time.perf_counter()

    def _rest(self, owner: str) -> float:
        return _REST if len(self._waiting) >= _PILE or shares.of_loop().alone({owner}) else _LONG_REST


of_loop: Final = PerLoop(Remains)
