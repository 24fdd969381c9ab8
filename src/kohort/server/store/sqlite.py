"""The journal in one SQLite file: one thread writes, and commits whatever has queued up meanwhile as one transaction.

A commit is fsynced before anybody is told (WAL, synchronous=FULL), so what was acknowledged survives kill -9 and a
power cut; a transaction that was not committed is not there at all. There is one table, the log: the current state is
the newest row of each object, so every write is one insert. Large values are packed: somebody whose objects are large
and change all day would else make everybody's commits wait for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import queue
import sqlite3
import threading
import time
import zlib
from functools import cache
from typing import TYPE_CHECKING, Final

from kohort.server.auth import private
from kohort.server.store import packing
from kohort.server.store.journal import Saved
from kohort.server.store.records import Change, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from kohort.server.store.records import Entry

log = logging.getLogger(__name__)
SCHEMA: Final = 3
_READS: Final = (1, 2, SCHEMA)  # in 1 no value is packed, in 2 each as one stream
_APPLICATION: Final = 0x4B6F686F  # "Koho": tells our files from others
_BATCH: Final = 2_000  # rows of a transaction; more wait for the next one
_TABLES: Final = """
CREATE TABLE log (revision INTEGER PRIMARY KEY, change INTEGER NOT NULL, resource TEXT NOT NULL,
                  namespace TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL) STRICT;
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""
_PACKED: Final = 8  # added to what a change is
_CHECKPOINT: Final = 4 << 20  # bytes of the WAL after which it goes into the file: 10 ms, and 70 where it is 32 MiB
_FULL: Final = 2 * _CHECKPOINT  # bytes of it after which it goes there also while others write
_PAGES: Final = 2 << 12  # bytes that a row takes there beside its value
_DROP_SECONDS: Final = 0.005
_SILENT: Final = 0.02  # seconds without a write: nobody's gang is being started
_PATIENCE: Final = 0.25  # seconds for which history may wait for that
_PROBE_SECONDS: Final = 0.5  # between looks whether a file that failed can be written again
_PROBE_BYTES: Final = 64 << 10
_ROW: Final = "(?, ?, ?, ?, ?, ?)"
_INSERT: Final = f"INSERT INTO log VALUES {_ROW}"
_FEW: Final = 32  # rows that are one statement
_SET: Final = "INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class _Compaction:
    """`superseded`: rows to delete, each after the older ones of its object. `done`: so many of them are gone."""

    __slots__ = ("done", "last", "revision", "superseded")

    def __init__(self, revision: int, last: int, superseded: Sequence[int]) -> None:
        self.revision = revision
        self.last = last
        self.superseded = superseded
        self.done = 0


class _Refuses:
    """What comes after this mark was written in the knowledge that a write had failed."""


class SqliteJournal:
    """`about`: facts that must be the same at every opening, such as the Kubernetes minor of the objects."""

    def __init__(self, path: Path, about: dict[str, str] | None = None) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[Entry | _Compaction | _Refuses | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._done: Callable[[Sequence[Entry], BaseException | None], None] | None = None
        self._writable: Callable[[], None] | None = None
        self._owed: list[_Compaction] = []  # not yet in the file
        self._ahead = 0  # bytes of the WAL, roughly, that are not yet in the file
        self._kept_up = 0.0  # when history was last dropped
        self._failed = False  # it could not be: again after the next write
        self._loop: asyncio.AbstractEventLoop | None = None
        self._db = _open(path)
        try:
            _prepare(self._db, path, about or {})
        except BaseException:
            self._db.close()
            raise

    def load(self) -> Saved:
        try:
            facts = dict(self._db.execute("SELECT name, value FROM about"))
            newest = self._db.execute("SELECT max(revision) FROM log").fetchone()[0] or 0
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: {_reason(error)}") from None
        last, compacted = max(newest, int(facts.get("revision", 0))), int(facts.get("compacted", 0))
        return Saved(self._rows(compacted, last), last, compacted)

    def _rows(self, compacted: int, last: int) -> Iterator[tuple[int, int, str, str, str, bytes]]:
        """A process that was killed while it dropped history has left some of it, which is to go now."""
        left: list[int] = []
        newest: dict[tuple[str, str, str], int] = {}
        try:
            for row in self._db.execute(
                "SELECT revision, change, resource, namespace, name, value FROM log ORDER BY 1"
            ):
                found = _unpacked(row)
                if found[0] <= compacted:
                    before = newest.pop(found[2:5], None)
                    left += [before] if before is not None else []
                    if found[1] == Change.DELETE:
                        left.append(found[0])
                    else:
                        newest[found[2:5]] = found[0]
                yield found
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: {_reason(error)}") from None
        except zlib.error as error:
            raise StoreError(f"{self._path}: {_damaged(error)}") from None
        if left:
            self._owed.append(_Compaction(compacted, last, left))

    def start(
        self, done: Callable[[Sequence[Entry], BaseException | None], None], writable: Callable[[], None]
    ) -> None:
        self._done, self._writable = done, writable
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="kohort-journal", daemon=True)
        self._thread.start()

    def refuses(self) -> None:
        self._queue.put(_Refuses())

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
        while self._write_some():
            pass  # and hold nothing of it: it may be long until there is more

    def _write_some(self) -> bool:
        """What has come; whether to go on."""
        entries, compactions, going = self._take()
        self._owed += compactions
        try:
            self._commit(entries)
        except sqlite3.Error as found:
            error = self._rolled_back(found)
            self._tell(entries, error)
            return going and self._recover(error)
        self._tell(entries, None)
        self._keep_up(silent=not entries or not going)
        return going

    def _rolled_back(self, error: sqlite3.Error) -> StoreError:
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")
        return StoreError(f"{self._path}: {_reason(error)}")

    def _tell(self, entries: Sequence[Entry], error: BaseException | None) -> None:
        if entries and self._done is not None:
            self._call(self._done, entries, error)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits
                self._loop.call_soon_threadsafe(function, *args)

    def _recover(self, error: StoreError) -> bool:
        """Give back what was queued on top of a failed write, until the store says that it refuses more; then try until
        the file can be written. Whether to go on: not if the journal is closed meanwhile."""
        agreed = False
        while True:
            try:
                found = self._queue.get(timeout=_PROBE_SECONDS if agreed else None)
            except queue.Empty:
                if self._probe() and self._writable is not None:
                    self._call(self._writable)
                    return True
                continue
            if found is None:
                return False
            if isinstance(found, _Compaction):
                self._owed.append(found)
            elif isinstance(found, _Refuses):
                agreed = True
            else:
                self._tell([found], error)

    def _probe(self) -> bool:
        """Whether there is room for more than a page. A full disk may have some bytes left."""
        try:
            self._db.execute(_SET, ("probe", "x" * _PROBE_BYTES))
            self._db.execute("DELETE FROM about WHERE name = 'probe'")
        except sqlite3.Error as error:
            self._rolled_back(error)
            return False
        return True

    def _take(self) -> tuple[list[Entry], list[_Compaction], bool]:
        entries: list[Entry] = []
        compactions: list[_Compaction] = []
        try:
            found = self._queue.get(timeout=_SILENT if self._is_behind() else None)
        except queue.Empty:
            return entries, compactions, True
        while True:
            if found is None:
                return entries, compactions, False
            if isinstance(found, _Compaction):
                compactions.append(found)
            elif not isinstance(found, _Refuses):
                entries.append(found)
            if len(entries) >= _BATCH:
                return entries, compactions, True
            try:
                found = self._queue.get_nowait()
            except queue.Empty:
                return entries, compactions, True

    def _commit(self, entries: list[Entry]) -> None:
        """A few rows are one statement, which is a transaction of its own: for each statement, and for each row of
        `executemany`, this thread gives the interpreter away and has to get it back from a loop that is busy."""
        if 0 < len(entries) <= _FEW:
            rows = [cell for entry in entries for cell in self._counted(entry)]
            self._db.execute(_insert(len(entries)), rows)
        elif entries:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(_INSERT, map(self._counted, entries))
            self._db.execute("COMMIT")

    def _counted(self, entry: Entry) -> tuple[int, int, str, str, str, bytes]:
        row = _row(entry)
        self._ahead += len(row[-1]) + _PAGES
        return row

    def _keep_up(self, *, silent: bool) -> None:
        """A gang is a score of commits, one soon after the other, and each would wait for a part of this. So it is done
        when nobody has written for a moment, and else only as much of it as must be."""
        self._failed = self._failed and silent
        if silent:
            self._compact()
            self._checkpoint(_CHECKPOINT)
        elif self._owed and time.monotonic() - self._kept_up > _PATIENCE:
            self._compact(once=True)
        self._checkpoint(_FULL)

    def _is_behind(self) -> bool:
        return bool(self._owed and not self._failed) or self._ahead >= _CHECKPOINT

    def _checkpoint(self, least: int) -> None:
        """Left to SQLite it is a part of the commit that fills the WAL: whoever wrote would wait for all that others
        had written before. Here they have been told, and who comes next waits for little."""
        if self._ahead < least:
            return
        self._ahead = 0
        try:
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:  # it is all in the WAL; another one comes
            log.warning("%s: the log is not yet in the file: %s", self._path, _reason(error))

    def _compact(self, *, once: bool = False) -> None:
        """In transactions of its own: it can wait, and nobody's write fails with it. Each is short, and whoever has
        come meanwhile goes first."""
        while self._owed:
            one = self._owed[0]
            try:
                self._dropped(one)
            except sqlite3.Error as error:
                self._failed = True
                log.warning("history is kept, to be dropped later: %s", self._rolled_back(error))
                return
            if one.done == len(one.superseded):
                del self._owed[0]
            self._kept_up = time.monotonic()
            self._checkpoint(_FULL)
            if once or not self._queue.empty():
                return

    def _dropped(self, one: _Compaction) -> None:
        """For a few milliseconds. First comes that it is history no more: what is left of it after a kill goes then."""
        db, done, end = self._db, one.done, time.perf_counter() + _DROP_SECONDS
        db.execute("BEGIN IMMEDIATE")
        if not done:
            db.executemany(_SET, (("compacted", str(one.revision)), ("revision", str(one.last))))
        while done < len(one.superseded):
            db.execute("DELETE FROM log WHERE revision = ?", (one.superseded[done],))  # a large one is many pages
            done += 1
            if time.perf_counter() > end:
                break
        db.execute("COMMIT")
        self._ahead += (done - one.done) * _PAGES
        one.done = done


@cache
def _insert(rows: int) -> str:
    return f"INSERT INTO log VALUES {', '.join([_ROW] * rows)}"


def _row(entry: Entry) -> tuple[int, int, str, str, str, bytes]:
    item, change = entry.event.item, int(entry.event.change)
    # What no worker has packed is packed here; others run meanwhile.
    found = entry.packed.at(item.revision) if entry.packed is not None else packing.packed(item.value)
    if found is None:
        return (item.revision, change, entry.table, item.namespace, item.name, item.value)
    return (item.revision, change + _PACKED, entry.table, item.namespace, item.name, found)


def _unpacked(row: tuple[int, int, str, str, str, bytes]) -> tuple[int, int, str, str, str, bytes]:
    revision, change, table, namespace, name, value = row
    return (revision, change - _PACKED, table, namespace, name, packing.unpacked(value)) if change >= _PACKED else row


def _open(path: Path) -> sqlite3.Connection:
    try:
        private.folder(path.parent)
        for one in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            private.tighten(one)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, private.FILE))  # secrets are in it
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.2)
        # One process at a time: a second server on the same folder is told so.
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("PRAGMA wal_autocheckpoint=0")
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path}: {_reason(error)}") from None
    return db


def _reason(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest says more than is needed here
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return "another process has it open; stop that one (kohort down) or give another --data-dir"
    if code == sqlite3.SQLITE_NOTADB:
        return "this is not a Kohort store; give another --data-dir"
    if code == sqlite3.SQLITE_FULL or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return "the disk is full; make room, or give another --data-dir"
    if code == sqlite3.SQLITE_CORRUPT:
        return _damaged(error)
    return str(error)


def _damaged(error: Exception) -> str:
    return f"the file is damaged ({error}); restore it from a backup, or give another --data-dir"


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
    if schema not in _READS:
        known = f"{', '.join(map(str, _READS[:-1]))} and {_READS[-1]}"
        raise StoreError(f"{path}: written by another Kohort (schema {schema}; this one reads {known})")
    try:
        db.execute(f"PRAGMA user_version={SCHEMA}")
        _check_facts(db, path, about)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {_reason(error)}") from None


def _check_facts(db: sqlite3.Connection, path: Path, about: dict[str, str]) -> None:
    facts = dict(db.execute("SELECT name, value FROM about"))
    for name, wanted in about.items():
        found = facts.get(name)
        if found is not None and found != wanted:
            raise StoreError(f"{path}: holds objects of {name} {found}, not {wanted}; use that or another --data-dir")
        if found is None:
            db.execute(_SET, (name, wanted))
