"""Worker processes for requests that take long: a large body, a large object, rules that cost much.

Nothing that takes a third of a second may run on the event loop that renews leases, answers probes and binds gangs. A
worker runs the same handlers as the server does; whatever they ask of the store, it asks the server, which answers
between two other things. So both ways have one result, letter by letter, and only the server ever writes.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

CEL_COST: Final = 50_000  # what rules may cost on the loop before a worker begins the request again: about 20 ms
# Set for requests that a worker could take over; None: there is none, and whatever it costs is spent here.
LOOP_COST: Final[ContextVar[int | None]] = ContextVar("loop_cost", default=None)


class TooExpensiveError(Exception):
    """The request is abandoned where it is, and given to a worker. Nothing has been written yet."""


class UnknownResourceError(Exception):
    """The worker does not serve this (yet)."""
