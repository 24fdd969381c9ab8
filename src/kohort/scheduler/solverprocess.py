"""`python -m kohort.scheduler.solverprocess`: answers hard questions one after the other, until its input ends."""

from __future__ import annotations

import os
import signal
import sys
from time import monotonic
from typing import Final

import msgspec

from kohort import frames
from kohort.place.effort import Effort
from kohort.place.linear import LinearModel
from kohort.place.solving import answer

_NICENESS: Final = 5  # those who wait for nothing come first
_read = msgspec.msgpack.Decoder(LinearModel).decode


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    os.nice(_NICENESS)
    line_in, line_out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no answer
    while True:
        try:
            seconds, data = frames.read(line_in)
        except EOFError:
            return 0
        end = monotonic() + seconds
        effort = Effort(expired=lambda end=end: monotonic() > end, left=lambda end=end: end - monotonic())  # type: ignore[misc]
        said = answer(_read(data), effort)
        frames.write(line_out, [said.status.value, said.values])


if __name__ == "__main__":
    sys.exit(main())
