"""The journal in one SQLite file: one thread writes, and commits whatever has queued up meanwhile as one transaction.

A commit is fsynced before anybody is told (WAL, synchronous=FULL), so what was acknowledged survives kill -9 and a
power cut; a transaction that was not committed is not there at all. There is one table, the log: the current state is
the newest row of each object, so every write is one insert.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
from typing import TYPE_CHECKING, Final

from kohort.server.store.journal import Saved
from kohort.server.store.records import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from kohort.server.store.records import Entry

SCHEMA: Final = 1
_APPLICATION: Final = 0x4B6F686F  # "Koho": tells our files from others
_BATCH: Final = 2_000  # rows of a transaction; more wait for the next one
_TABLES: Final = """
CREATE TABLE log (revision INTEGER PRIMARY KEY, change INTEGER NOT NULL, resource TEXT NOT NULL,
                  namespace TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL) STRICT;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""
_INSERT: Final = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)"
_SET: Final = "INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class _Compaction:
    __slots__ = ("last", "revision", "superseded")

    def __init__(self, revision: int, last: int, superseded: Sequence[int]) -> None:
        self.revision = revision
        self.last = last
        self.superseded = superseded


class SqliteJournal:
    """`about`: facts that must be the same at every opening, such as the Kubernetes minor of the objects."""

    def __init__(self, path: Path, about: dict[str, str] | None = None) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[Entry | _Compaction | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._done: Callable[[Sequence[Entry], BaseException | None], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._db = _open(path)
        try:
            _prepare(self._db, path, about or {})
        except BaseException:
            self._db.close()
            raise

    def load(self) -> Saved:
        facts = dict(self._db.execute("SELECT name, value FROM about"))
        newest = self._db.execute("SELECT max(revision) FROM log").fetchone()[0] or 0
        return Saved(self._rows(), max(newest, int(facts.get("revision", 0))), int(facts.get("compacted", 0)))

    def _rows(self) -> Iterator[tuple[int, int, str, str, str, bytes]]:
        yield from self._db.execute("SELECT revision, change, resource, namespace, name, value FROM log ORDER BY 1")

    def start(self, done: Callable[[Sequence[Entry], BaseException | None], None]) -> None:
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="kohort-journal", daemon=True)
        self._thread.start()

    def append(self, entry: Entry) -> None:
        self._queue.put(entry)

    def compact(self, revision: int, last: int, superseded: Sequence[int]) -> None:
        self._queue.put(_Compaction(revision, last, superseded))

    def close(self) -> None:
        """Write what is queued, then close the file."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        self._db.close()

    # ---- the writing thread

    def _write(self) -> None:
        going = True
        while going:
            entries, compactions, going = self._take()
            error: BaseException | None = None
            try:
                self._commit(entries, compactions)
            except sqlite3.Error as found:
                error = StoreError(f"{self._path}: {found}")
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
            if entries and self._loop is not None and self._done is not None:
                with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits
                    self._loop.call_soon_threadsafe(self._done, entries, error)
            if error is not None:
                going = self._refuse(error)

    def _refuse(self, error: BaseException) -> bool:
        """After a failed write the store in memory and the file differ: nothing more is accepted."""
        while True:
            entries, _, going = self._take()
            if entries and self._loop is not None and self._done is not None:
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._done, entries, error)
            if not going:
                return False

    def _take(self) -> tuple[list[Entry], list[_Compaction], bool]:
        entries: list[Entry] = []
        compactions: list[_Compaction] = []
        found = self._queue.get()
        while True:
            if found is None:
                return entries, compactions, False
            if isinstance(found, _Compaction):
                compactions.append(found)
            else:
                entries.append(found)
            if len(entries) >= _BATCH:
                return entries, compactions, True
            try:
                found = self._queue.get_nowait()
            except queue.Empty:
                return entries, compactions, True

    def _commit(self, entries: list[Entry], compactions: list[_Compaction]) -> None:
        db = self._db
        if not entries and not compactions:
            return
        db.execute("BEGIN IMMEDIATE")
        db.executemany(_INSERT, map(_row, entries))
        for one in compactions:
            db.executemany("DELETE FROM log WHERE revision = ?", ((revision,) for revision in one.superseded))
            db.executemany(_SET, (("compacted", str(one.revision)), ("revision", str(one.last))))
        db.execute("COMMIT")


def _row(entry: Entry) -> tuple[int, int, str, str, str, bytes]:
    item = entry.event.item
    return (item.revision, int(entry.event.change), entry.table, item.namespace, item.name, item.value)


def _open(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # secrets are in it
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.2)
        # One process at a time: a second server on the same folder is told so.
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA wal_autocheckpoint=8000")
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path}: {_reason(error)}") from None
    return db


def _reason(error: Exception) -> str:
    text = str(error)
    if "locked" in text:
        return "another process has it open; stop that one (kohort down) or give another --data-dir"
    if "not a database" in text:
        return "this is not a Kohort store; give another --data-dir"
    return text


def _prepare(db: sqlite3.Connection, path: Path, about: dict[str, str]) -> None:
    """Make the tables of a new file; refuse one that is not ours or newer than we are."""
    try:
        empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        application = db.execute("PRAGMA application_id").fetchone()[0]
        schema = db.execute("PRAGMA user_version").fetchone()[0]
        if empty:
            db.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id={_APPLICATION}")
            db.execute(f"PRAGMA user_version={SCHEMA}")
            db.executemany(_SET, about.items())
            db.execute("COMMIT")
            return
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {_reason(error)}") from None
    if application != _APPLICATION:
        raise StoreError(f"{path}: this is not a Kohort store; give another --data-dir")
    if schema != SCHEMA:
        raise StoreError(f"{path}: written by another Kohort (schema {schema}; this one reads schema {SCHEMA})")
    facts = dict(db.execute("SELECT name, value FROM about"))
    for name, wanted in about.items():
        found = facts.get(name)
        if found is not None and found != wanted:
            raise StoreError(f"{path}: holds objects of {name} {found}, not {wanted}; use that or another --data-dir")
        if found is None:
            db.execute(_SET, (name, wanted))
