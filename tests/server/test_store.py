"""The store: order, visibility, history, compaction, and what a file brings back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.server.store import CompactedError, ConflictError, Item, Store, StoreError, packing, sqlite
from kohort.server.store.journal import Journal, MemoryJournal
from kohort.server.store.sqlite import SqliteJournal

_LARGE = "large " * 100_000


def _journal(kind: str, folder: Path) -> Journal:
    return MemoryJournal() if kind == "memory" else SqliteJournal(folder / "store.db", {"Kubernetes": "1.37"})


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path):
    made = Store(_journal(request.param, tmp_path))
    await made.open()
    yield made
    await made.close()


async def put(store: Store, name: str, text: str, table: str = "pods") -> Item:
    return await store.write(table, "d", name, lambda _: text.encode(), expect=store.table(table).head("d", name))


async def remove(store: Store, name: str, table: str = "pods") -> Item:
    head = store.table(table).head("d", name)
    return await store.write(table, "d", name, lambda _: b"gone", expect=head, delete=True)


def state(store: Store, table: str = "pods") -> dict[str, bytes]:
    return {item.name: item.value for item in store.table(table).items()}


async def test_revisions_count_over_all_tables(store: Store) -> None:
    first, second, third = await put(store, "a", "1"), await put(store, "b", "2", "jobs"), await put(store, "a", "3")
    assert [first.revision, second.revision, third.revision] == [1, 2, 3]
    assert store.revision == 3
    assert state(store) == {"a": b"3"}
    assert [(event.change.event_type, event.revision) for event in store.since("pods", 0)] == [
        ("ADDED", 1),
        ("MODIFIED", 3),
    ]


async def test_a_writer_that_is_late_is_told_what_is_there(store: Store) -> None:
    old = await put(store, "a", "1")
    new = await put(store, "a", "2")
    with pytest.raises(ConflictError) as caught:
        store.write("pods", "d", "a", lambda _: b"3", expect=old)
    assert caught.value.found is new
    with pytest.raises(ConflictError):
        store.write("pods", "d", "a", lambda _: b"3", expect=None)


async def test_writers_build_on_what_is_under_way(store: Store) -> None:
    waiting = [
        store.write("pods", "d", "a", lambda revision: b"%d" % revision, expect=store.table("pods").head("d", "a"))
        for _ in range(5)
    ]
    await asyncio.gather(*waiting)
    assert state(store) == {"a": b"5"}
    assert [event.item.value for event in store.since("pods", 0)] == [b"1", b"2", b"3", b"4", b"5"]


async def test_history_gives_every_earlier_state(store: Store) -> None:
    states: dict[int, dict[str, Any]] = {0: {}}
    for step, name in enumerate("abacbd"):
        if step in {3, 4}:
            await remove(store, name) if name in state(store) else await put(store, name, str(step))
        else:
            await put(store, name, str(step))
        states[store.revision] = state(store)
    for revision, wanted in states.items():
        assert {item.name: item.value for item in store.items_at("pods", revision)} == wanted
        replayed = dict(wanted)
        for event in store.since("pods", revision):
            if event.change.event_type == "DELETED":
                del replayed[event.item.name]
            else:
                replayed[event.item.name] = event.item.value
        assert replayed == state(store)


async def test_compaction_keeps_the_state_and_forgets_the_way(store: Store) -> None:
    for step in range(4):
        await put(store, "a", str(step))
    store.compact(3)
    assert state(store) == {"a": b"3"}
    assert len(store.since("pods", 3)) == 1
    with pytest.raises(CompactedError):
        store.since("pods", 2)


async def test_a_watcher_wakes_up(store: Store) -> None:
    waiting = asyncio.ensure_future(store.table("pods").changed())
    await asyncio.sleep(0)
    await put(store, "a", "1")
    await asyncio.wait_for(waiting, 30)


async def test_a_file_brings_everything_back(tmp_path: Path) -> None:
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    for step in range(3):
        await put(store, "a", str(step))
    await put(store, "b", "b")
    await remove(store, "b")
    store.compact(2)
    await put(store, "c", "c")
    await store.close()

    again = Store(_journal("sqlite", tmp_path))
    await again.open()
    assert again.revision == 6
    assert again.compacted == 2
    assert state(again) == {"a": b"2", "c": b"c"}
    assert [(event.revision, event.change.event_type) for event in again.since("pods", 2)] == [
        (3, "MODIFIED"),
        (4, "ADDED"),
        (5, "DELETED"),
        (6, "ADDED"),
    ]
    assert again.since("pods", 2)[0].before is not None
    await again.close()


async def test_large_values_are_packed_and_come_back(tmp_path: Path) -> None:
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    large, noise = "large " * 100_000, os.urandom(1 << 18).hex()
    for name, text in (("large", large), ("noise", noise), ("small", "small")):
        await put(store, name, text)
    await remove(store, "noise")
    await put(store, "large", f"{large}2")
    before = state(store)
    await store.close()
    assert (tmp_path / "store.db").stat().st_size < len(large) + len(noise)

    again = Store(_journal("sqlite", tmp_path))
    await again.open()
    assert state(again) == before == {"large": f"{large}2".encode(), "small": b"small"}
    assert again.since("pods", 0)[0].item.value == large.encode()
    await again.close()


async def test_what_a_worker_has_packed_is_written_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its revision in the middle of it. The thread that commits has packed nothing."""
    monkeypatch.setattr(packing, "packed", lambda value: pytest.fail("packed once more"))
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    before, after = b"before " * 10_000, b" after" * 10_000
    found = packing.around(before, after)
    assert found is not None
    item = await store.write(
        "pods", "", "large", lambda revision: b"%b%d%b" % (before, revision, after), expect=None, packed=found
    )
    await store.close()
    assert (tmp_path / "store.db").stat().st_size < len(before)
    again = Store(_journal("sqlite", tmp_path))
    await again.open()
    assert state(again) == {"large": item.value} == {"large": before + b"1" + after}
    await again.close()


@pytest.mark.parametrize(("before", "after"), [(b"a", b"b"), (os.urandom(1 << 16), os.urandom(1 << 16))])
def test_what_packing_does_not_make_smaller_is_left_alone(before: bytes, after: bytes) -> None:
    assert packing.around(before, after) is None
    assert packing.packed(before + after) is None


async def test_many_rows_of_one_commit(tmp_path: Path) -> None:
    """Few are one statement, many a transaction."""
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    for count in (1, 2, 32, 33, 500):
        writes = [
            store.write("pods", "", f"{count}-{number}", lambda _: b"value", expect=None) for number in range(count)
        ]
        await asyncio.gather(*writes)
    before = state(store)
    await store.close()
    again = Store(_journal("sqlite", tmp_path))
    await again.open()
    assert state(again) == before
    assert len(before) == 568
    await again.close()


async def test_who_writes_is_told_before_the_log_goes_into_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the log stays short: what one commit has to wait for is little, however much others have written."""
    monkeypatch.setattr(sqlite, "_CHECKPOINT", 1 << 20)
    monkeypatch.setattr(sqlite, "_FULL", 1 << 20)
    journal = SqliteJournal(tmp_path / "store.db")
    order: list[str] = []
    tell, checkpoint = journal._tell, journal._checkpoint

    def told(entries: Any, error: Any) -> None:
        order.append("told")
        tell(entries, error)

    def moved(least: int) -> None:
        before = journal._ahead
        checkpoint(least)
        if journal._ahead < before:
            order.append("moved")

    monkeypatch.setattr(journal, "_tell", told)
    monkeypatch.setattr(journal, "_checkpoint", moved)
    store = Store(journal)
    await store.open()
    longest = 0
    for number in range(40):
        await put(store, f"p{number}", os.urandom(1 << 17).hex())
        longest = max(longest, (tmp_path / "store.db-wal").stat().st_size)
    await store.close()
    assert order.count("moved") >= 4
    assert order[0] == "told"
    assert longest < 4 << 20


async def test_history_is_dropped_a_little_at_a_time_and_after_a_kill_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_DROP_SECONDS", 0.0)
    journal = SqliteJournal(tmp_path / "store.db")
    store = Store(journal)
    await store.open()
    for turn in range(10):
        for name in "abc":
            await put(store, name, f"{turn}")
    await remove(store, "c")
    dropped = journal._dropped
    turns = 0

    def killed(one: Any) -> None:
        """After two turns the process is as good as gone."""
        nonlocal turns
        turns += 1
        if turns > 2:
            raise sqlite3.OperationalError("gone")
        dropped(one)

    monkeypatch.setattr(journal, "_dropped", killed)
    store.compact(store.revision)
    await put(store, "d", "d")
    await asyncio.sleep(10 * sqlite._SILENT)
    await store.close()
    rows = _count(tmp_path)
    assert rows == 32 - 2, "two turns of one row"
    assert turns <= 5, "what fails is tried again after a write, not all the time"
    again = Store(SqliteJournal(tmp_path / "store.db"))
    await again.open()
    assert state(again) == {"a": b"9", "b": b"9", "d": b"d"}
    assert again.compacted == 31
    assert [event.item.name for event in again.since("pods", 31)] == ["d"]
    await put(again, "e", "e")
    await again.close()
    assert _count(tmp_path) == 4, "what was left has gone"
    last = Store(SqliteJournal(tmp_path / "store.db"))
    await last.open()
    assert state(last) == {"a": b"9", "b": b"9", "d": b"d", "e": b"e"}
    await last.close()


def _count(folder: Path) -> int:
    db = sqlite3.connect(folder / "store.db")
    try:
        return int(db.execute("SELECT count(*) FROM log").fetchone()[0])
    finally:
        db.close()


async def _with_history(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[SqliteJournal, Store]:
    """Of 49 changes, to be dropped one at a time."""
    monkeypatch.setattr(sqlite, "_DROP_SECONDS", 0.0)
    journal = SqliteJournal(folder / "store.db")
    store = Store(journal)
    await store.open()
    for turn in range(50):
        await put(store, "a", str(turn))
    store.compact(store.revision)
    return journal, store


async def test_whoever_writes_goes_before_history_that_is_to_be_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, store = await _with_history(tmp_path, monkeypatch)
    done = []
    for number in range(10):
        await put(store, f"b{number}", "b")
        done.append(sum(one.done for one in journal._owed))
    assert done[-1] < 49, "none of them waited for all of it"
    await store.close()
    assert _count(tmp_path) == 11


async def test_history_goes_when_nobody_writes_and_in_time_also_when_somebody_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_SILENT", 0.5)
    journal, store = await _with_history(tmp_path, monkeypatch)
    owed: list[int] = []
    end = time.monotonic() + 30.0
    while len(set(owed)) < 3 and time.monotonic() < end:  # without half a second of silence
        await put(store, "b", "b")
        owed.append(sum(len(one.superseded) - one.done for one in journal._owed))
    assert len(set(owed)) == 3
    assert owed[-1] > 40, "one turn each quarter of a second"
    while journal._owed:
        await asyncio.sleep(0.01)
    await store.close()
    assert _count(tmp_path) < len(owed) + 2


@pytest.mark.parametrize("schema", [1, 2])
async def test_a_file_of_a_release_before_is_read(tmp_path: Path, schema: int) -> None:
    """In the first no value is packed, in the second each as one stream. After this they cannot read it."""
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    await put(store, "a", "a" if schema == 1 else _LARGE)
    await store.close()
    with sqlite3.connect(tmp_path / "store.db") as db:
        db.execute(f"PRAGMA user_version={schema}")
    db.close()
    again = Store(_journal("sqlite", tmp_path))
    await again.open()
    assert state(again) == {"a": b"a" if schema == 1 else _LARGE.encode()}
    await again.close()
    with sqlite3.connect(tmp_path / "store.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
    db.close()


async def test_a_revision_is_never_given_out_twice(tmp_path: Path) -> None:
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    await put(store, "a", "a")
    await remove(store, "a")
    store.compact(2)
    await store.close()
    again = Store(_journal("sqlite", tmp_path))
    await again.open()
    assert state(again) == {}
    assert (await put(again, "a", "a")).revision == 3
    await again.close()


async def test_the_file_is_for_one_process_and_one_reader(tmp_path: Path) -> None:
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    await put(store, "a", "a")
    assert (tmp_path / "store.db").stat().st_mode & 0o777 == 0o600
    with pytest.raises(StoreError, match="another process has it open"):
        _journal("sqlite", tmp_path)
    await store.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("PRAGMA user_version=99", "schema 99; this one reads 1, 2 and 3"),
        ("PRAGMA application_id=1", "not a Kohort store"),
        ("UPDATE about SET value = '1.35'", "holds objects of Kubernetes 1.35, not 1.37"),
    ],
)
async def test_a_foreign_file_is_refused_with_the_reason(tmp_path: Path, spoil: str, words: str) -> None:
    store = Store(_journal("sqlite", tmp_path))
    await store.open()
    await store.close()
    db = sqlite3.connect(tmp_path / "store.db")
    db.execute(spoil)
    db.commit()
    db.close()
    with pytest.raises(StoreError, match=words):
        _journal("sqlite", tmp_path)


async def test_text_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("hello " * 500)
    with pytest.raises(StoreError, match="not a Kohort store"):
        _journal("sqlite", tmp_path)


async def _refused(store: Store, name: str) -> bool:
    try:
        await put(store, name, "x")
    except StoreError:
        return True
    return False


async def test_a_failed_write_is_refused_and_later_ones_too_until_there_is_room(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    store = Store(journal)
    await store.open()
    await put(store, "a", "1")
    journal._db.execute("PRAGMA query_only=1")  # as a disk that cannot be written
    with pytest.raises(StoreError):
        await put(store, "b", "2")
    assert not store.accepts_writes
    with pytest.raises(StoreError):
        await put(store, "c", "3")
    assert state(store) == {"a": b"1"}
    journal._db.execute("PRAGMA query_only=0")
    await asyncio.wait_for(store.until_writable(), 30)
    await put(store, "b", "4")
    assert state(store) == {"a": b"1", "b": b"4"}
    await store.close()


async def test_a_full_disk_loses_nothing_that_was_acknowledged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite's own limit of pages: the error is the one of a full disk. Many writers, some on top of others' writes."""
    journal = SqliteJournal(tmp_path / "store.db")
    store = Store(journal)
    await store.open()
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count={pages + 40}")
    acknowledged: dict[str, bytes] = {}
    failures = 0

    async def write(writer: int) -> None:
        nonlocal failures
        for turn in range(200):
            name, value = f"w{writer}", f"{turn} ".encode() * 500
            try:
                head = store.table("pods").head("d", name)
                await store.write("pods", "d", name, _always(value), expect=head)
                acknowledged[name] = value
            except StoreError:
                failures += 1
                return

    await asyncio.gather(*(write(number) for number in range(20)))
    assert failures == 20
    assert state(store) == acknowledged
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "the disk is full" in caplog.text
    store.compact(store.revision)  # waits for room
    journal._db.execute("PRAGMA max_page_count=1000000")
    await asyncio.wait_for(store.until_writable(), 30)
    assert "accepts writes again" in caplog.text
    await put(store, "after", "1")
    await store.close()
    again = Store(SqliteJournal(tmp_path / "store.db"))
    await again.open()
    assert state(again) == acknowledged | {"after": b"1"}
    assert again.compacted > 0
    await again.close()


async def test_closing_while_nothing_can_be_written(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    store = Store(journal)
    await store.open()
    journal._db.execute("PRAGMA query_only=1")
    assert await _refused(store, "a")
    await asyncio.wait_for(store.close(), 30)


async def test_files_are_for_us_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "data" / "store.db"
    old_mask = os.umask(0)
    try:
        store = Store(SqliteJournal(path))
        await store.open()
        await put(store, "a", "1")
        modes = {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()}
        assert set(modes.values()) == {0o600}, modes
        assert [one.stat().st_mode & 0o777 for one in (path.parent, path.parent.parent)] == [0o700, 0o700]
        await store.close()
        path.chmod(0o644)  # a restored backup
        await _opened(path)
        assert path.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old_mask)


async def _opened(path: Path) -> None:
    store = Store(SqliteJournal(path))
    await store.open()
    await store.close()


async def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = Store(SqliteJournal(path))
    await store.open()
    for number in range(300):
        await put(store, f"a{number}", "x" * 500)
    await store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 3 :] = os.urandom(len(content) - 4096 * 3)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="the file is damaged"):
        await _opened(path)


@pytest.mark.parametrize("damage", [lambda value: value[:-9], lambda value: value[:40] + b"??" + value[42:]])
async def test_a_damaged_packed_value_is_told(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "store.db"
    store = Store(SqliteJournal(path))
    await store.open()
    await put(store, "a", "x" * 50_000)
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        ((value,),) = db.execute("SELECT value FROM log").fetchall()
        assert len(value) < 50_000
        db.execute("UPDATE log SET value = ?", (damage(value),))
    with pytest.raises(StoreError, match="the file is damaged"):
        await _opened(path)


def _always(value: bytes) -> Callable[[Any], bytes]:
    return lambda _: value
