"""Kills a writer at a random moment, many times, on the same file; prints how many acknowledged writes were checked.

    python -m tests.server.crash_driver FOLDER ROUNDS SEED

A process of its own: it forks, which a test runner with threads had better not.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

from kohort.server.store import Store
from kohort.server.store.sqlite import SqliteJournal

TABLE, CHURN = "things", "churn"
LARGE = 200_000  # bytes: the log is moved into the file every few of them


async def write(path: Path, start: int, out: int) -> None:
    """Sixteen writers at once, so that commits are of groups; every acknowledgement goes to the parent. Others write
    the same few objects again and again, some of them large, and history is dropped all the time."""
    store = Store(SqliteJournal(path))
    await store.open()
    numbers = iter(range(start, start + 1_000_000))

    async def one() -> None:
        for number in numbers:
            value = f"{number}:{'x' * (number % 700)}:end".encode()
            await store.write(TABLE, "", f"n{number}", lambda _, value=value: value, expect=None)  # type: ignore[misc]
            os.write(out, f"{number}\n".encode())

    async def churn(number: int) -> None:
        name, table = f"c{number}", store.table(CHURN)
        for turn in itertools.count():
            value = os.urandom(LARGE if turn % 5 == 0 else 500)
            await store.write(CHURN, "", name, lambda _, value=value: value, expect=table.head("", name))  # type: ignore[misc]
            if turn % 3 == 2:
                await store.write(CHURN, "", name, lambda _: b"", expect=table.head("", name), delete=True)

    async def forget() -> None:
        while True:
            await asyncio.sleep(0.005)
            store.compact(store.revision - 20)

    await asyncio.gather(forget(), *(churn(number) for number in range(4)), *(one() for _ in range(16)))


async def read(path: Path) -> tuple[dict[str, bytes], int]:
    """What is there, and the newest revision. A write more lets go what was left of history."""
    store = Store(SqliteJournal(path))
    await store.open()
    found = {item.name: item.value for item in store.table(TABLE).items()}
    await store.write(CHURN, "", "last", lambda _: b"", expect=store.table(CHURN).head("", "last"))
    revision, compacted = store.revision, store.compacted
    there = sum(table.size for table in store.tables.values())
    after = sum(1 for table in store.tables.values() for event in table.log if event.revision > compacted)
    await store.close()
    db = sqlite3.connect(path)
    rows = db.execute("SELECT count(*) FROM log").fetchone()[0]
    db.close()
    assert rows <= there + after, f"{rows} rows for {there} objects and {after} changes after {compacted}"
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
        assert newest > revision, (newest, revision)
        revision = newest
        start = max((int(name[1:]) for name in found), default=-1) + 1 + 16
    sys.stdout.write(f"{len(acknowledged)} acknowledged\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
