"""Large lines of a watch: read later than others, so that whoever has small objects does not wait for them.

Reading an object of a megabyte takes as long as a hundred pods, and somebody may change such objects all day. So lines
above a limit wait in a queue of their own, and with them whatever follows about the same namespace, in order; lines of
other namespaces pass by. All queues of a loop are read one line at a time, with a rest after each, and after each part
of a long one. Of an object that changes while it waits only the newest state is read, in the place of the first: as
after a list.

They are read in a thread, not to be faster: the C library gives each thread memory of its own. What stays for long so
does not lie between what was large and has gone, and most pages of that can be given back.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from kohort.kube.clock import REAL
from kohort.kube.jsonpieces import MORE, advance
from kohort.kube.shares import of_loop, tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kohort.kube.clock import Clock

T = TypeVar("T")

LARGE: Final = 1 << 16  # bytes of a line
_PART: Final = 0.003  # seconds of a line, until there is a rest
_REST: Final = 5.0  # times as long as that took
_LONG_REST: Final = 15.0  # while another tenant is at it
_LONGEST_REST: Final = 0.4  # seconds
_PILE: Final = 8 << 20  # bytes that wait; above, no rest is long
_MOST: Final = 32 << 20  # above, there is none


class _Metadata(msgspec.Struct, rename="camel"):
    namespace: str | None = None
    name: str | None = None
    resource_version: str | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Line(msgspec.Struct):
    type: str = ""
    object: _Object = msgspec.field(default_factory=_Object)


_decoder: Final = msgspec.json.Decoder(_Line)
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = WeakKeyDictionary()
_reader: Final = ThreadPoolExecutor(1, "large-lines")


class _Waiting:
    __slots__ = ("key", "line", "place", "type")

    def __init__(self, place: str, key: tuple[str, str], kind: str, line: bytes) -> None:
        self.place, self.key, self.type, self.line = place, key, kind, line


class LateLines(Generic[T]):
    """Of one informer, since its last list. `read` takes a line, and yields where others may have their turn; `take`
    gets what it returns, on the loop. What they raise is told by `check`."""

    def __init__(
        self, read: Callable[[bytes], Generator[None, None, T]], take: Callable[[T], object], clock: Clock
    ) -> None:
        self._read, self._take, self._clock = read, take, clock
        self._lines: deque[_Waiting] = deque()
        self._newest: dict[tuple[str, str], _Waiting] = {}  # by object
        self._places: Counter[str] = Counter()
        self._bytes = 0
        self.version = ""  # of the last line that was kept
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._lines)

    def keeps(self, line: bytes) -> bool:
        """Whether it is read later. If not, it is the caller's."""
        large = len(line) > LARGE
        if not large and not self._lines:
            return False
        found = _change(line)
        if found is None:
            return False
        kind, namespace, name, version = found
        place, key = namespace or f"/{name}", (namespace, name)
        if not (large or place in self._places):
            return False
        self.version = version
        before = self._newest.get(key)
        if before is not None and before.type != "DELETED":
            self._bytes += len(line) - len(before.line)
            before.type, before.line = kind, line
            return True
        waiting = self._newest[key] = _Waiting(place, key, kind, line)
        self._lines.append(waiting)
        self._places[place] += 1
        self._bytes += len(line)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return True

    def check(self) -> None:
        """Raises what reading has raised. The lines after it are read nevertheless."""
        if self._task is None or not self._task.done():
            return
        task, self._task = self._task, None
        if self._lines:
            self._task = asyncio.create_task(self._run())
        task.result()

    def drop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        turns = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        while self._lines:
            async with turns:
                one = self._lines[0]
                if self._newest.get(one.key) is one:  # what changes from now on is another line
                    del self._newest[one.key]
                began = time.perf_counter()
                parts = self._read(one.line)
                try:
                    while (found := await self._advanced(one, parts)) is MORE:
                        if (took := time.perf_counter() - began) > _PART:
                            await self._rest(one, took)
                            began = time.perf_counter()
                    self._take(found)
                    del found  # who takes it apart waits until nobody holds it
                finally:
                    self._passed(one)
                await self._rest(one, time.perf_counter() - began)

    async def _advanced(self, one: _Waiting, parts: Generator[None, None, T]) -> Any:
        if len(one.line) <= LARGE or self._clock is not REAL:  # other clocks do not wait for threads
            return advance(parts)
        return await asyncio.get_running_loop().run_in_executor(_reader, advance, parts)

    async def _rest(self, one: _Waiting, took: float) -> None:
        owner, shares = tenant(one.key[0]), of_loop()
        shares.spent(owner, took)
        if self._bytes > _MOST:
            await asyncio.sleep(0)
            return
        factor = _REST if self._bytes > _PILE or shares.alone({owner}) else _LONG_REST
        await self._clock.sleep(min(_LONGEST_REST, factor * took))

    def _passed(self, one: _Waiting) -> None:
        self._lines.popleft()
        self._bytes -= len(one.line)
        self._places[one.place] -= 1
        if not self._places[one.place]:
            del self._places[one.place]


def _change(line: bytes) -> tuple[str, str, str, str] | None:
    """Its type, and the namespace, name and version of the object; None if it is not a change."""
    try:
        found = _decoder.decode(line)
    except msgspec.DecodeError:
        return None
    meta = found.object.metadata
    if found.type not in _CHANGES:
        return None
    return found.type, meta.namespace or "", meta.name or "", meta.resource_version or ""
