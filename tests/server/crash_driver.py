"""Kills a writer at a random moment, many times, on the same file; prints how many acknowledged writes were checked.

    python -m tests.server.crash_driver FOLDER ROUNDS SEED

A process of its own: it forks, which a test runner with threads had better not.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from pathlib import Path

from kohort.server.store import Store
from kohort.server.store.sqlite import SqliteJournal

TABLE = "things"


async def write(path: Path, start: int, out: int) -> None:
    """Sixteen writers at once, so that commits are of groups; every acknowledgement goes to the parent."""
    store = Store(SqliteJournal(path))
    await store.open()
    numbers = iter(range(start, start + 1_000_000))

    async def one() -> None:
        for number in numbers:
            value = f"{number}:{'x' * (number % 700)}:end".encode()
            await store.write(TABLE, "", f"n{number}", lambda _, value=value: value, expect=None)  # type: ignore[misc]
            os.write(out, f"{number}\n".encode())

    await asyncio.gather(*(one() for _ in range(16)))


async def read(path: Path) -> tuple[dict[str, bytes], int]:
    store = Store(SqliteJournal(path))
    await store.open()
    found = {item.name: item.value for item in store.table(TABLE).items()}
    revision = store.revision
    await store.close()
    return found, revision


def round_of(path: Path, start: int, seconds: float, *, writing: bool) -> list[int]:
    """`writing`: the time begins with the first acknowledgement, however long a busy machine takes until then.

    Else with the process, which may die before it has read the file.
    """
    incoming, outgoing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(incoming)
        try:
            asyncio.run(write(path, start, outgoing))
        finally:
            os._exit(1)
    os.close(outgoing)
    data = os.read(incoming, 1 << 16) if writing else b""
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while chunk := os.read(incoming, 1 << 16):
        data += chunk
    os.close(incoming)
    return [int(line) for line in data.split(b"\n")[:-1]]


def main(folder: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    path = folder / "store.db"
    acknowledged: set[int] = set()
    start = revision = 0
    for _ in range(rounds):
        acknowledged.update(round_of(path, start, chance.uniform(0.005, 0.12), writing=chance.random() < 0.8))
        found, newest = asyncio.run(read(path))
        missing = [number for number in acknowledged if f"n{number}" not in found]
        assert not missing, f"acknowledged and gone: {missing[:5]}"
        for name, value in found.items():
            number = int(name[1:])
            assert value == f"{number}:{'x' * (number % 700)}:end".encode(), f"half there: {name}"
        assert newest == len(found) >= revision, (newest, len(found))
        revision = newest
        start = max((int(name[1:]) for name in found), default=-1) + 1 + 16
    sys.stdout.write(f"{len(acknowledged)} acknowledged\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
