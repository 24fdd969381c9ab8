"""How much a request may cost on the event loop before it is begun again in a worker."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

CEL_COST: Final = 50_000  # about 20 ms
# Set for requests that a worker could take over; None: there is none, and whatever it costs is spent here.
LOOP_COST: Final[ContextVar[int | None]] = ContextVar("loop_cost", default=None)


class TooExpensiveError(Exception):
    """The request is abandoned where it is, and given to a worker. Nothing has been written yet."""
