"""Room that belongs to somebody who is not there yet: nominated after a preemption, held for a gang that waits long,
or kept for a pod whose binding was refused.

An earmark looks like pods on nodes to every root of equal or lower priority. A root of higher priority, and the owner
itself, do not see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kohort.place.demand import Pod, renewed_pod
from kohort.place.pairs import PairClass
from kohort.place.state import ClusterState


@dataclass(frozen=True, slots=True)
class Earmark:
    """Seats of pods (by uid) by node name, for one root."""

    root: str
    priority: int
    seats: dict[str, tuple[Pod, str]]
    held: bool = False  # by waiting long, not by preemption

    def rows(self, state: ClusterState) -> Iterator[tuple[PairClass, int]]:
        for pod, node in self.seats.values():
            row = state.row(node)
            if row is not None:
                yield renewed_pod(pod, state.pairs).kind, row


class Earmarks:
    """All earmarks, one per root. None of them is in the state but inside `seen_by`."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._marks: dict[str, Earmark] = {}

    def __len__(self) -> int:
        return len(self._marks)

    def __iter__(self) -> Iterator[Earmark]:
        return iter(self._marks.values())

    def get(self, root: str) -> Earmark | None:
        return self._marks.get(root)

    def set(self, mark: Earmark) -> None:
        if mark.seats:
            self._marks[mark.root] = mark
        else:
            self._marks.pop(mark.root, None)

    def drop(self, root: str) -> bool:
        """Whether there was one."""
        return self._marks.pop(root, None) is not None

    def drop_pod(self, root: str, uid: str) -> None:
        mark = self._marks.get(root)
        if mark is not None and uid in mark.seats:
            self.set(Earmark(root, mark.priority, {k: v for k, v in mark.seats.items() if k != uid}, mark.held))

    def against(self, root: str, priority: int) -> list[Earmark]:
        """Those that a root has to respect."""
        return [one for one in self._marks.values() if one.root != root and one.priority >= priority]

    @contextmanager
    def seen_by(self, root: str, priority: int) -> Iterator[Sequence[Earmark]]:
        """Within, the room of others is taken."""
        others = self.against(root, priority)
        seats = [seat for one in others for seat in one.rows(self._state)]
        for kind, row in seats:
            self._move(kind, row, 1)
        try:
            yield others
        finally:
            for kind, row in reversed(seats):
                self._move(kind, row, -1)

    def _move(self, kind: PairClass, row: int, count: int) -> None:
        self._state.take(kind.shape, row, count)
        self._state.pairs.place(kind, row, count)
