"""One of something for each event loop: tests have many, and what belongs to one must not be found by the next."""

from __future__ import annotations

import asyncio
from threading import get_ident
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Called, gives that of the loop that runs. Asked some ten times for each request, nearly always by the same loop:
    that one is remembered. Whether it still runs in this thread takes a third of the time of asking which one does,
    which asks the system for the number of the process."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._every: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()
        self._last: tuple[ref[asyncio.AbstractEventLoop], int, T] | None = None

    def __call__(self) -> T:
        last = self._last
        if last is not None and last[1] == get_ident() and (loop := last[0]()) is not None and loop.is_running():
            return last[2]
        loop = asyncio.get_running_loop()
        found = self._every.get(loop)
        if found is None:
            found = self._every[loop] = self._make()
        self._last = (ref(loop), get_ident(), found)
        return found
