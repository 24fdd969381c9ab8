"""Any interleaving of writes, deletions, compactions, restarts gives what a plain dictionary gives."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kohort.server.store import CompactedError, ConflictError, Store
from kohort.server.store.sqlite import SqliteJournal

NAMES = st.sampled_from(["a", "b", "c", "d"])
TABLES = st.sampled_from(["pods", "jobs"])
State = dict[tuple[str, str], bytes]


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.history: list[State] = [{}]  # by revision
        self.compacted = 0
        self.open()

    def open(self) -> None:
        self.store = Store(SqliteJournal(Path(self.folder.name) / "store.db"))
        self.loop.run_until_complete(self.store.open())

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @property
    def state(self) -> State:
        return self.history[-1]

    @rule(writes=st.lists(st.tuples(TABLES, NAMES, st.binary(max_size=20)), min_size=1, max_size=5))
    def put(self, writes: list[tuple[str, str, bytes]]) -> None:
        """Several at once: one group."""

        async def all_of_them() -> None:
            waiting = []
            for table, name, value in writes:
                head = self.store.table(table).head("", name)
                waiting.append(self.store.write(table, "", name, lambda _, value=value: value, expect=head))  # type: ignore[misc]
                self.history.append({**self.state, (table, name): value})
            await asyncio.gather(*waiting)

        self.do(all_of_them())

    @rule(table=TABLES, name=NAMES)
    def delete(self, table: str, name: str) -> None:
        head = self.store.table(table).get("", name)
        assert (head is None) == ((table, name) not in self.state)
        if head is None:
            return

        async def go() -> None:
            await self.store.write(table, "", name, lambda _: b"last", expect=head, delete=True)

        self.do(go())
        self.history.append({key: value for key, value in self.state.items() if key != (table, name)})

    @rule(table=TABLES, name=NAMES)
    def late_writer(self, table: str, name: str) -> None:
        async def go() -> None:
            self.store.write(table, "", name, lambda _: b"", expect=object())  # type: ignore[arg-type]

        with pytest.raises(ConflictError):
            self.do(go())

    @precondition(lambda self: len(self.history) > 1)
    @rule(data=st.data())
    def compact(self, data: Any) -> None:
        revision = data.draw(st.integers(0, len(self.history) - 1))
        self.store.compact(revision)
        self.compacted = max(self.compacted, revision)

    @rule()
    def restart(self) -> None:
        self.do(self.store.close())
        self.open()

    @invariant()
    def the_newest_is_the_newest(self) -> None:
        assert self.store.revision == len(self.history) - 1
        for table in ("pods", "jobs"):
            found = {item.name: item.value for item in self.store.table(table).items()}
            assert found == {name: value for (inside, name), value in self.state.items() if inside == table}
            assert self.store.table(table).size == len(found)

    @invariant()
    def every_kept_revision_can_be_read_and_watched(self) -> None:
        for revision in range(len(self.history)):
            for table in ("pods", "jobs"):
                if revision < self.compacted:
                    with pytest.raises(CompactedError):
                        self.store.since(table, revision)
                    continue
                wanted = {name: value for (inside, name), value in self.history[revision].items() if inside == table}
                then = {item.name: item.value for item in self.store.items_at(table, revision)}
                assert then == wanted
                last = revision
                for event in self.store.since(table, revision):
                    assert event.revision > last
                    last = event.revision
                    known = then.get(event.item.name)
                    assert (event.before.value if event.before else None) == known
                    if event.change.event_type == "DELETED":
                        del then[event.item.name]
                    else:
                        assert (event.change.event_type == "ADDED") == (known is None)
                        then[event.item.name] = event.item.value
                assert then == {name: value for (inside, name), value in self.state.items() if inside == table}

    def teardown(self) -> None:
        self.do(self.store.close())
        self.loop.close()
        self.folder.cleanup()


TestStoreModel = StoreMachine.TestCase
TestStoreModel.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
