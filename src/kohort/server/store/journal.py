"""Where committed changes go: the contract, and the one that forgets (`--in-memory`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kohort.server.store.records import Entry


@dataclass(frozen=True, slots=True)
class Saved:
    """What a journal knows of the time before: changes in the order of their revisions, and two numbers."""

    entries: Iterable[tuple[int, int, str, str, str, bytes]] = field(default=())  # revision, change, table, ns, name
    revision: int = 0
    compacted: int = 0


class Journal(Protocol):
    """`done` is called on the event loop, once for every batch, in order, when the batch is durable, or with an error.

    After an error the store and the journal agree on what is there in three steps: the store refuses writes and says so
    (`refuses`), the journal gives back what came before that, and says when it can write again (`writable`).
    """

    def load(self) -> Saved: ...

    def start(
        self, done: Callable[[Sequence[Entry], BaseException | None], None], writable: Callable[[], None]
    ) -> None: ...

    def refuses(self) -> None:
        """The store accepts no writes, until `writable` is called."""

    def append(self, entry: Entry) -> None: ...

    def compact(self, revision: int, last: int, superseded: Sequence[int]) -> None:
        """Forget these revisions; nothing at or below `revision` can be watched from now on."""

    def close(self) -> None: ...


class MemoryJournal:
    """Everything is durable at once, until the process ends."""

    def __init__(self) -> None:
        self._done: Callable[[Sequence[Entry], BaseException | None], None] | None = None

    def load(self) -> Saved:
        return Saved()

    def start(
        self, done: Callable[[Sequence[Entry], BaseException | None], None], _writable: Callable[[], None]
    ) -> None:
        self._done = done

    def refuses(self) -> None:
        """Memory does not fail."""

    def append(self, entry: Entry) -> None:
        if self._done is None:
            raise RuntimeError("the journal was not started")
        self._done((entry,), None)

    def compact(self, revision: int, last: int, superseded: Sequence[int]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        self._done = None
