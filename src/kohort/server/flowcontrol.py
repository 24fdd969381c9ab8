"""How many requests are answered at the same time, and whose turn it is: API priority and fairness in small.

There are two budgets of seats, for requests that read and for those that write, as kube-apiserver's
--max-requests-inflight and --max-mutating-requests-inflight. A request that finds no seat waits in the queue of its
user; a seat that becomes free goes to the user who holds the fewest. So somebody with a thousand requests delays
somebody with one by no more than one. Nobody may hold more than half of the seats: slow bodies and slow readers of one
user leave room for others. A queue that is full, or a wait that is too long, is answered with 429 and Retry-After.

Administrators (system:masters), probes and what this process asks itself are exempt, as upstream. Watches hold no seat.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from kohort.server import status

if TYPE_CHECKING:
    from kohort.kube.wire import User
    from kohort.server.limits import Limits

_EXEMPT: Final = "system:masters"
_PROBES: Final = ("/healthz", "/livez", "/readyz")
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Seats:
    """One budget. Queues are kept by user."""

    def __init__(self, seats: int, limits: Limits) -> None:
        self._seats, self._limits = seats, limits
        self._most = max(1, seats // 2)  # of one user
        self._held: dict[str, int] = {}
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self.taken = 0
        self.waiting = 0
        self.rejected = 0

    async def take(self, user: str) -> None:
        """Returns with a seat, which `leave` gives back; 429 if there is none in time."""
        if self.taken < self._seats and self._held.get(user, 0) < self._most and user not in self._queues:
            self._seat(user)
            return
        if self.waiting >= self._limits.queued_requests or self._length(user) >= self._limits.queue_length:
            raise self._reject()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(user, deque()).append(turn)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.queue_seconds):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():  # the seat came at the same moment
                self.leave(user)
            else:
                self._forget(user, turn)
            if isinstance(error, TimeoutError):
                raise self._reject() from None
            raise

    def leave(self, user: str) -> None:
        self.taken -= 1
        held = self._held[user] - 1
        if held:
            self._held[user] = held
        else:
            del self._held[user]
        self._next()

    def _length(self, user: str) -> int:
        queue = self._queues.get(user)
        return len(queue) if queue is not None else 0

    def _seat(self, user: str) -> None:
        self.taken += 1
        self._held[user] = self._held.get(user, 0) + 1

    def _next(self) -> None:
        while self.taken < self._seats and self._queues:
            user = min(self._queues, key=lambda one: self._held.get(one, 0))  # of equals, who has waited longest
            if self._held.get(user, 0) >= self._most:
                return
            queue = self._queues.pop(user)
            turn = queue.popleft()
            if queue:
                self._queues[user] = queue  # behind the others
            self.waiting -= 1
            if turn.done():
                continue  # its client hung up, and its task has not noticed yet
            self._seat(user)
            turn.set_result(None)

    def _forget(self, user: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(user)
        if queue is None or turn not in queue:
            return
        queue.remove(turn)
        self.waiting -= 1
        if not queue:
            del self._queues[user]

    def _reject(self) -> status.ApiError:
        self.rejected += 1
        return status.too_many_requests("Too many requests, please try again later.", seconds=1)


class FlowControl:
    """The two budgets, and who needs none of them."""

    def __init__(self, limits: Limits) -> None:
        self.reading = Seats(limits.max_requests_inflight, limits)
        self.mutating = Seats(limits.max_mutating_requests_inflight, limits)

    def seats(self, method: str, path: str, user: User | None) -> Seats | None:
        """Where a request has to take one; None: it is exempt."""
        if (user is not None and _EXEMPT in user.groups) or path.startswith(_PROBES):
            return None
        return self.reading if method in _READING else self.mutating
