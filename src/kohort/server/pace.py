"""Whose request is next when more come than one turn of the event loop should take.

A controller sends fifty writes together and each is short; all of them in one turn are not, and whoever comes behind
them should not wait for all of them. So requests are begun as they come while a turn is young; then they wait, each
with those of its own flow, and each turn begins a few, one flow after the other. Of what this process asks itself a
flow is what concerns one namespace; of others, what one user asks.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.kube.wire import Request

SECONDS: Final = 0.004  # after the beginning of a turn, in which requests are begun as they come
_EACH_TURN: Final = 2  # requests of those that wait
_SELF: Final = "kohort:in-process"
_PROBES: Final = ("/healthz", "/livez", "/readyz")
_INSIDE: Final = "/namespaces/"

Flow = tuple[str, str]


class Pace:
    """Of one loop."""

    def __init__(self) -> None:
        self._until = 0.0  # then it is asked again whether this is still the same turn
        self._flows: dict[Flow, deque[asyncio.Future[None]]] = {}  # in the order of their turns
        self._serving = False

    async def turn(self, request: Request) -> None:
        """Returns when the request may begin."""
        if not self._flows and time.perf_counter() < self._until:
            return
        if request.path.startswith(_PROBES):
            return
        loop = asyncio.get_running_loop()
        begin: asyncio.Future[None] = loop.create_future()
        self._flows.setdefault(flow_of(request), deque()).append(begin)
        if not self._serving:
            self._serving = True
            loop.call_soon(self._serve)
        await begin

    def _serve(self) -> None:
        begun = 0
        while self._flows and begun < _EACH_TURN:
            flow = next(iter(self._flows))
            waiting = self._flows.pop(flow)
            begin = waiting.popleft()
            if waiting:
                self._flows[flow] = waiting  # behind the others
            if not begin.done():  # its client has gone
                begin.set_result(None)
                begun += 1
        self._until = time.perf_counter() + SECONDS
        self._serving = bool(self._flows)
        if self._serving:
            asyncio.get_running_loop().call_soon(self._serve)


def flow_of(request: Request) -> Flow:
    name = request.user.name if request.user is not None else ""
    if name != _SELF:
        return name, ""
    return name, request.path.partition(_INSIDE)[2].partition("/")[0]
