"""`python -m kohort.webhook.worker`: judges one object after the other, until its input ends.

Questions are judged here and not where they arrive: an object of megabytes takes seconds, and the process that listens
answers probes and other questions meanwhile. Whoever asks kills this process when its time is over.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, BinaryIO, Final

from kohort import frames
from kohort.api.releases import Gate, release
from kohort.gang.compile import CompileContext
from kohort.webhook.asking import Asking, TooManyLooksError, Wanted, asking
from kohort.webhook.review import BadReviewError, read, write
from kohort.webhook.validating import check, checked

_NICENESS: Final = 2
LOOK, SAID, FAILED = "look", "said", "failed"


def context(minor: str, gates: list[str], options: list[str]) -> CompileContext:
    return CompileContext(release(minor), frozenset(map(Gate, gates)), frozenset(options))


def _judge(line_in: BinaryIO, line_out: BinaryIO, body: bytes, about: dict[str, Any]) -> None:
    try:
        question = read(body)
        ctx = context(about["minor"], about["gates"], about["options"])
        answer = _drive(asking(lambda within: check(question, within, about["controllers"]), ctx), line_in, line_out)
    except (BadReviewError, TooManyLooksError) as error:
        frames.write(line_out, [FAILED, str(error)])
        return
    except (RecursionError, MemoryError, AttributeError, KeyError, TypeError, ValueError, IndexError) as fault:
        frames.write(line_out, [FAILED, f"cannot be judged: {type(fault).__name__}: {fault}"[:500]])
        return
    word = "denied" if answer.refusal is not None else "allowed"
    frames.write(line_out, [SAID, word, question.kind.kind, write(question.uid, answer)])


def _drive(steps: Asking, line_in: BinaryIO, line_out: BinaryIO) -> Any:
    try:
        wanted: Wanted = next(steps)
        while True:
            frames.write(line_out, [LOOK, *wanted])
            wanted = steps.send(frames.read(line_in))
    except StopIteration as end:
        return end.value


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    os.nice(_NICENESS)
    line_in, line_out = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no answer
    checked()  # all that is imported for the first question would be counted as its time
    while True:
        try:
            body, about = frames.read(line_in)
            _judge(line_in, line_out, body, about)
        except EOFError:
            return 0


if __name__ == "__main__":
    sys.exit(main())
