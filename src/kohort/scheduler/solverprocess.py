"""`python -m kohort.scheduler.solverprocess`: answers hard questions one after the other, until its input ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from time import monotonic
from typing import Final

import msgspec

from kohort import frames
from kohort.place.effort import Effort
from kohort.place.linear import LinearModel
from kohort.place.packing import Packing
from kohort.place.solving import HardModel, answer

_NICENESS: Final = 5  # those who wait for nothing come first
_LOOKS: Final = 1_000_000
_READ: Final[dict[str, Callable[[bytes], HardModel]]] = {
    "LinearModel": msgspec.msgpack.Decoder(LinearModel).decode,
    "Packing": msgspec.msgpack.Decoder(Packing).decode,
}


def _within(seconds: float) -> Effort:
    """Nobody waits for us: the clock is the only fence."""
    end = monotonic() + seconds
    return Effort(solver_work=_LOOKS, expired=lambda: monotonic() > end, left=lambda: end - monotonic())


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    os.nice(_NICENESS)
    line_in, line_out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no answer
    while True:
        try:
            seconds, last, kind, data = frames.read(line_in)
        except EOFError:
            return 0
        said = answer(_READ[kind](data), _within(seconds), last=last)
        frames.write(line_out, [said.status.value, said.values])


if __name__ == "__main__":
    sys.exit(main())
