"""Child processes that are asked over their standard input and answer over their standard output: one, or a pool."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any, Final, Self

from kohort import frames

_BUFFER: Final = 4 << 20


class ChildEndedError(Exception):
    """The process went away before it had answered."""


class ChildProcess:
    """A Python module that reads frames and writes frames, until its input ends."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer

    @classmethod
    async def run(cls, module: str) -> Self:
        """Started by `subprocess`, which shares all memory until the program is loaded. uvloop forks: that copies the
        tables of all pages, 50 ms for 2 GiB, and nothing else happens meanwhile.
        """
        pipe, loop = subprocess.PIPE, asyncio.get_running_loop()
        process = subprocess.Popen([sys.executable, "-m", module], stdin=pipe, stdout=pipe, bufsize=0)
        reader = asyncio.StreamReader(_BUFFER)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
        return cls(process, reader, asyncio.StreamWriter(transport, protocol, None, loop))

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
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    async def end(self) -> None:
        """Its input ends, and it with it; killed if it does not."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.close()
        try:
            await asyncio.to_thread(self._process.wait, 1.0)
        except subprocess.TimeoutExpired:
            self.kill()
            await asyncio.to_thread(self._process.wait)


class ChildPool:
    """Up to `count` of one module. A process is started by the first question, and ends when it has been idle for a
    while; whoever asks waits for a turn.
    """

    def __init__(self, module: str, count: int, idle: float = 30.0) -> None:
        self._module, self._seconds = module, idle
        self._turns = asyncio.Semaphore(max(count, 1))
        self._idle: list[tuple[ChildProcess, asyncio.TimerHandle]] = []
        self._ending: set[asyncio.Task[None]] = set()
        self.started = 0

    @contextlib.asynccontextmanager
    async def borrowed(self) -> AsyncIterator[ChildProcess]:
        """For one question, whose answer was read when the block ends. After an error or a time-out nobody knows what
        the process is at: it is killed, and the next question gets another one.
        """
        async with self._turns:
            process = await self._take()
            try:
                yield process
            except BaseException:
                process.kill()
                self._later(process)
                raise
            timer = asyncio.get_running_loop().call_later(self._seconds, self._retire, process)
            self._idle.append((process, timer))

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for process, timer in idle:
            timer.cancel()
            await process.end()
        await asyncio.gather(*self._ending)

    async def _take(self) -> ChildProcess:
        while self._idle:
            process, timer = self._idle.pop()
            timer.cancel()
            if process.alive:
                return process
            await process.end()
        self.started += 1
        return await ChildProcess.run(self._module)

    def _retire(self, process: ChildProcess) -> None:
        self._idle = [one for one in self._idle if one[0] is not process]
        self._later(process)

    def _later(self, process: ChildProcess) -> None:
        task = asyncio.create_task(process.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
