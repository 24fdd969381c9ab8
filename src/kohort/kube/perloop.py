"""One of something for each event loop: tests have many, and what belongs to one must not be found by the next."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Called, gives that of the loop that runs. Asked some ten times for each request, nearly always by the same loop:
    that one is remembered, since a look into a dictionary of weak references takes ten times as long."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._every: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()
        self._last: tuple[ref[asyncio.AbstractEventLoop], T] | None = None

    def __call__(self) -> T:
        loop, last = asyncio.get_running_loop(), self._last
        if last is not None and last[0]() is loop:
            return last[1]
        found = self._every.get(loop)
        if found is None:
            found = self._every[loop] = self._make()
        self._last = (ref(loop), found)
        return found
