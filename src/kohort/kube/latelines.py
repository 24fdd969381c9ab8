"""Large lines of a watch: read later than others, so that whoever has small objects does not wait for them.

Reading an object of a megabyte takes as long as a hundred pods, and somebody may change such objects all day. So lines
above a limit wait in a queue of their own, and with them whatever follows about the same namespace, in order; lines of
other namespaces pass by. All queues of a loop are read one line at a time, with a rest after each.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.kube.clock import Clock

LARGE: Final = 1 << 16  # bytes of a line
_REST: Final = 3.0  # times as long as a line took
_LONGEST_REST: Final = 0.25  # seconds
_MOST: Final = 32 << 20  # bytes that wait; above, there is no rest


class _Metadata(msgspec.Struct):
    namespace: str | None = None
    name: str | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Line(msgspec.Struct):
    type: str = ""
    object: _Object = msgspec.field(default_factory=_Object)


_decoder: Final = msgspec.json.Decoder(_Line)
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = WeakKeyDictionary()


class LateLines:
    """Of one watch. `read` takes a line; what it raises is told by `drained`."""

    def __init__(self, read: Callable[[bytes], object], clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._lines: deque[tuple[str, bytes]] = deque()
        self._places: Counter[str] = Counter()
        self._bytes = 0
        self._hurry = False
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._lines)

    def keeps(self, line: bytes) -> bool:
        """Whether it is read later. If not, it is the caller's."""
        large = len(line) > LARGE
        if not large and not self._lines:
            return False
        place = _place(line)
        if not place or not (large or place in self._places):
            return False
        self._lines.append((place, line))
        self._places[place] += 1
        self._bytes += len(line)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return True

    async def drained(self) -> None:
        """Everything is read, without rests."""
        task, self._hurry = self._task, True
        try:
            if task is not None:
                await task
        finally:
            self._hurry, self._task = False, None

    def drop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        turns = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        while self._lines:
            async with turns:
                began = time.perf_counter()
                place, line = self._lines[0]
                try:
                    self._read(line)
                finally:
                    self._lines.popleft()
                    self._bytes -= len(line)
                    self._places[place] -= 1
                    if not self._places[place]:
                        del self._places[place]
                rest = min(_LONGEST_REST, _REST * (time.perf_counter() - began))
                hurry = self._hurry or self._bytes > _MOST
                await (asyncio.sleep(0) if hurry else self._clock.sleep(rest))


def _place(line: bytes) -> str:
    """What has to stay in order: a namespace, or an object outside of them. Empty: not a change."""
    try:
        found = _decoder.decode(line)
    except msgspec.DecodeError:
        return ""
    meta = found.object.metadata
    return (meta.namespace or f"/{meta.name}") if found.type in _CHANGES else ""
