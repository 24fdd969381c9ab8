"""An event loop whose time does not pass while somebody works, and jumps to the next timer when nobody can.

A whole cluster in one process (API server, controllers, scheduler, nodes) runs on it an hour in a second, in the same
order each time, and no test waits for luck. Sockets and threads still work: before time jumps they are looked at.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Mapping
from typing import Any, Final

# How long a thread or a socket may take to answer before time goes on without it (real seconds).
_GRACE: Final = 0.0005


class _Selector(selectors.BaseSelector):
    """Passes everything on; only waiting is different."""

    def __init__(self, inner: selectors.BaseSelector) -> None:
        self._inner = inner
        self.loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return self._inner.select(timeout)
        ready = self._inner.select(_GRACE if self.loop.threads else 0)
        if not ready:
            self.loop.jump(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._inner.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._inner.modify(fileobj, events, data)

    def close(self) -> None:
        self._inner.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at zero seconds. `threads`: whether work outside the loop is waited for before each jump."""

    def __init__(self, *, threads: bool = True) -> None:
        self._virtual = 0.0
        self.threads = threads
        selector = _Selector(selectors.DefaultSelector())
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual

    def jump(self, seconds: float) -> None:
        self._virtual += seconds
