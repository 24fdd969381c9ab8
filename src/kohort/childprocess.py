"""A child process that is asked over its standard input and answers over its standard output."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Any, Final, Self

from kohort import frames

_BUFFER: Final = 4 << 20


class ChildEndedError(Exception):
    """The process went away before it had answered."""


class ChildProcess:
    """A Python module that reads frames and writes frames, until its input ends."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._writer, self._reader = process.stdin, process.stdout

    @classmethod
    async def run(cls, module: str) -> Self:
        pipe = asyncio.subprocess.PIPE
        command = [sys.executable, "-m", module]
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=_BUFFER))

    async def send(self, message: Any) -> None:
        try:
            self._writer.write(frames.pack(message))
            await self._writer.drain()
        except (ConnectionError, RuntimeError) as error:
            raise ChildEndedError from error

    async def read(self) -> Any:
        try:
            head = await self._reader.readexactly(frames.HEAD)
            return frames.unpack(await self._reader.readexactly(frames.size(head)))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ChildEndedError from error

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    async def end(self) -> None:
        """Its input ends, and it with it; killed if it does not."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.close()
        try:
            await asyncio.wait_for(self._process.wait(), 1.0)
        except TimeoutError:
            self.kill()
            await self._process.wait()
