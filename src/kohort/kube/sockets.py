"""The sockets of an HTTP client: dead peers are noticed, and at the end none is left open."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import aiohttp

_GOODBYE_TURNS: Final = 100
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


def keep_alive(made: socket.socket) -> None:
    """A peer that vanished without a word is noticed within a minute, also where nothing is ever sent."""
    with contextlib.suppress(OSError):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Sockets:
    """`make` is for aiohttp's connector, `hang_up` for after its session was closed."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        keep_alive(made)
        self._made.add(made)
        return made

    async def hang_up(self) -> None:
        """Requests that were given up leave connections that wait for a TLS farewell, and nobody to wait for those.

        The event loop may end right after us: whatever is still open is cut here, and seen to be closed.
        """
        for _ in range(_GOODBYE_TURNS):
            left = [one for one in self._made if one.fileno() != -1]
            if not left:
                return
            for one in left:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0.001)
