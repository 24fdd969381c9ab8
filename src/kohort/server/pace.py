"""Whose request is next when more come than one turn of the event loop should take.

A controller sends fifty writes together and each is short; all of them in one turn are not, and whoever comes behind
them should not wait for all of them. So requests are begun as they come while a turn is young; then they wait, each
with those of its own flow, and each turn begins a few, one flow after the other. Of what this process asks itself, and
of what administrators and the cluster's own components ask, a flow is what concerns one namespace; of others, what one
user asks.

And whoever has used the loop much rests while somebody lighter is at it (`kohort.kube.shares`). A tenant there is a
namespace: what our controllers do for it, and what its service accounts ask; other users are tenants of their own.
Administrators and what belongs to the cluster are nobody's.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from kohort.kube.shares import Metered, of_loop, tenant

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from kohort.kube.wire import Request

T = TypeVar("T")

SECONDS: Final = 0.004  # after the beginning of a turn, in which requests are begun as they come
_EACH_TURN: Final = 2  # requests of those that wait
_MOST: Final = 12  # of one tenant that is alone
_RECENTLY: Final = 0.1  # seconds for which nobody is alone after a request from outside
_SHORTEST: Final = 0.0001  # seconds of a request
_FADES: Final = 0.1  # of the difference, with each request that is shorter
_SELF: Final = "kohort:in-process"
_ACCOUNT: Final = "system:serviceaccount:"
_MASTERS: Final = "system:masters"
_PROBES: Final = ("/healthz", "/livez", "/readyz")
_INSIDE: Final = "/namespaces/"
_BINDING: Final = "/binding"

Flow = tuple[str, str]


class Pace:
    """Of one loop."""

    def __init__(self) -> None:
        self._until = 0.0  # then it is asked again whether this is still the same turn
        self._flows: dict[Flow, deque[tuple[asyncio.Future[None], str, int]]] = {}  # in the order of their turns
        self._came = 0  # requests that had to wait
        self._serving: asyncio.Handle | None = None
        self._rests = False  # it is served later, since all who wait have to rest
        self._asked = -_RECENTLY  # when the last request came that is not this process's own
        self._usual = SECONDS  # seconds that a request takes of late; what was long counts for a while

    async def handled(self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        """The work on a request, when it may begin, on its tenant's account."""
        whose = tenant_of(request)
        waits = self._waits(request, whose)
        if waits is not None:
            try:
                await waits
            except BaseException:
                work.close()
                raise
        return await self._metered(whose, work)

    async def turn(self, request: Request) -> None:
        """Returns when the request may begin."""
        waits = self._waits(request, tenant_of(request))
        if waits is not None:
            await waits

    def _waits(self, request: Request, whose: str) -> asyncio.Future[None] | None:
        """Until when; None: it may begin now."""
        if request.user is not None and request.user.name != _SELF:
            self._asked = time.perf_counter()
        rest = of_loop().asks(whose)
        if not rest and not self._flows and time.perf_counter() < self._until:
            return None
        if request.path.startswith(_PROBES):
            return None
        loop = asyncio.get_running_loop()
        begin: asyncio.Future[None] = loop.create_future()
        self._came += 1
        self._flows.setdefault(flow_of(request), deque()).append((begin, whose, self._came))
        if self._serving is not None and self._rests and not rest:
            self._serving.cancel()
            self._serving = None
        if self._serving is None:
            self._rests = False
            self._serving = loop.call_soon(self._serve)
        return begin

    def _metered(self, whose: str, work: Coroutine[Any, Any, T]) -> Metered[T]:
        shares = of_loop()

        def spent(seconds: float) -> None:
            shares.spent(whose, seconds)
            usual = self._usual
            self._usual = seconds if seconds > usual else usual + (seconds - usual) * _FADES

        return Metered(work, spent)

    def spent(self, namespace: str, seconds: float) -> None:
        """On what has changed in a namespace."""
        of_loop().spent(tenant(namespace), seconds)

    def _serve(self) -> None:
        begun, most, soonest = 0, self._at_once(), 0.0
        while self._flows:
            came, soonest = self._round(most - begun)
            begun += came
            if not came or begun >= most:
                break
        self._until = time.perf_counter() + SECONDS
        self._serving = None
        if self._flows:
            loop = asyncio.get_running_loop()
            self._rests = soonest > 0.0
            self._serving = loop.call_later(soonest, self._serve) if self._rests else loop.call_soon(self._serve)

    def _at_once(self) -> int:
        """How many this turn begins. Whatever is written wakes all who watch it, once for each turn in which something
        was: so it is as many as a turn has room for while they are all of one tenant, and nobody else is at it."""
        tenants = {waiting[0][1] for waiting in self._flows.values() if waiting} - {""}
        somebody = time.perf_counter() - self._asked < _RECENTLY  # a person, or a process, who wants an answer
        if len(tenants) > 1 or somebody or not of_loop().alone(tenants):
            return _EACH_TURN
        return min(max(int(SECONDS / max(self._usual, _SHORTEST)), _EACH_TURN), _MOST)

    def _round(self, room: int) -> tuple[int, float]:
        """One of each flow. How many were begun, and after how many seconds there may be more."""
        begun, soonest = 0, float("inf")
        for flow in list(self._flows):
            if begun == room:
                soonest = 0.0
                break
            waiting = self._flows[flow]
            while waiting and waiting[0][0].done():  # its client has gone
                waiting.popleft()
            if waiting and self._overtakes(flow, waiting[0][2]):
                soonest = 0.0
                continue
            rest = of_loop().asks(waiting[0][1]) if waiting else 0.0
            if rest:
                soonest = min(soonest, rest)
                continue
            del self._flows[flow]
            if not waiting:
                continue
            waiting.popleft()[0].set_result(None)
            begun += 1
            if waiting:
                self._flows[flow] = waiting  # behind the others
                soonest = 0.0
        return begun, soonest

    def _overtakes(self, flow: Flow, came: int) -> bool:
        """Bindings may pass what rests, but nothing passes the bindings of its namespace: else a kubelet would tell
        that the first pod of a gang runs while the last still waits for its node."""
        bindings = self._flows.get((flow[0], f"{flow[1]}{_BINDING}"))
        return bindings is not None and bindings[0][2] < came


def flow_of(request: Request) -> Flow:
    name = request.user.name if request.user is not None else ""
    if name != _SELF:
        # Whoever works for the whole cluster (`kohort run`, an operator) does it for one namespace after the other.
        return name, "" if request.user is None or tenant_of(request) else _namespace(request)
    namespace = _namespace(request)
    return name, f"{namespace}{_BINDING}" if request.path.endswith(_BINDING) else namespace


def tenant_of(request: Request) -> str:
    """Empty: nobody's."""
    user = request.user
    if user is None:
        return ""
    if user.name == _SELF:
        if request.path.endswith(_BINDING):  # few at a time, of all tenants: who rests would hold the place of others
            return ""
        return tenant(_namespace(request))
    if user.name.startswith(_ACCOUNT):
        return tenant(user.name.removeprefix(_ACCOUNT).partition(":")[0])
    return "" if _MASTERS in user.groups else f"user {user.name}"  # no namespace has a space in its name


def _namespace(request: Request) -> str:
    return request.path.partition(_INSIDE)[2].partition("/")[0]
