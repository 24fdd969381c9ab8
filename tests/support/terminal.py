"""A program in a terminal: what is typed goes in, what it writes comes out, and the window has a size."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

Size = tuple[int, int]  # rows, columns


class Terminal:
    """Around one program, which is gone afterwards."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, size: Size = (24, 80)
    ) -> None:
        self._ours, self._theirs = pty.openpty()  # both stay open: how it was left can be asked
        self.resize(*size)
        theirs = self._theirs
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(env), cwd=cwd, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - a system call and nothing else
        )  # fmt: skip
        self.written = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        os.close(self._ours)
        os.close(self._theirs)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def echoes(self) -> bool:
        """Whether what is typed appears, as it does before a program changes that."""
        return bool(termios.tcgetattr(self._ours)[3] & termios.ECHO)

    def wait(self, done: Callable[[str], bool], seconds: float = 60.0) -> str:
        """What was written since the last time, once that is enough."""
        ends, seen = time.monotonic() + seconds, ""
        while not done(seen):
            left = ends - time.monotonic()
            assert left > 0, f"not seen within {seconds:g} s; written was:\n{seen}"
            if select.select([self._ours], [], [], min(left, 0.2))[0]:
                seen += os.read(self._ours, 65536).decode(errors="replace")
            else:
                assert self.process.poll() is None, f"it has ended; written was:\n{seen}"
        self.written += seen
        return seen

    def ended(self, seconds: float = 30.0) -> int:
        """Its exit code; what it still writes is read."""
        ends = time.monotonic() + seconds
        while (running := self.process.poll() is None) or select.select([self._ours], [], [], 0)[0]:
            assert time.monotonic() < ends, f"it runs on; written was:\n{self.written[-2000:]}"
            if select.select([self._ours], [], [], 0.05 if running else 0)[0]:
                self.written += os.read(self._ours, 65536).decode(errors="replace")
        return self.process.returncode
