"""The store: order, visibility, history, compaction, and what a file brings back."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from kohort.server.store import CompactedError, ConflictError, Item, Store, StoreError
from kohort.server.store.journal import Journal, MemoryJournal
from kohort.server.store.sqlite import SqliteJournal


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
    states = {0: {}}
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
    await asyncio.wait_for(waiting, 1)


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
        ("PRAGMA user_version=99", "schema 99; this one reads schema 1"),
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


async def test_after_a_failed_write_nothing_is_accepted(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    store = Store(journal)
    await store.open()
    await put(store, "a", "1")
    journal._db.execute("PRAGMA query_only=1")  # as a full disk would
    with pytest.raises(StoreError):
        await put(store, "b", "2")
    with pytest.raises(StoreError):
        await put(store, "c", "3")
    assert state(store) == {"a": b"1"}
    await store.close()
