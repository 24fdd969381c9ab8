"""Hard questions of roots, put aside: others are decided while they are searched, and the answer is used when it comes.

A root has one question at a time. What was found is checked against the state as it then is; that nothing was found, or
that nothing can be, counts as long as the same question would be asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import msgspec

from kohort.place.effort import Effort
from kohort.place.highs import SolverStatus
from kohort.place.solving import Back, HardModel, Verdict
from kohort.place.state import ClusterState

_KEPT: Final = 4  # verdicts for each root
_encode = msgspec.msgpack.Encoder().encode


@dataclass(slots=True)
class HardQuestion:
    """Of one root. `kind` and `data`: the model as it is sent; `read`: values to pods and the names of their nodes."""

    root: str
    kind: str
    data: bytes
    read: Callable[[list[int]], dict[str, str]]
    last: bool = True  # of those that the root has
    seconds: float | None = None  # that it may take at the most, where that is less than others may
    sent: bool = False

    @property
    def digest(self) -> bytes:
        return blake2b(self.data, digest_size=16).digest()


@dataclass(slots=True)
class _Known:
    """About a root: where it was found to fit, and questions to which there is no such answer."""

    found: dict[str, str] = field(default_factory=dict)
    verdicts: dict[bytes, Verdict] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)  # kinds of questions without an answer, until the last kind was asked


class HardQuestions:
    """What is being searched, and what came of it."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._open: dict[str, HardQuestion] = {}
        self._known: dict[str, _Known] = {}

    def __len__(self) -> int:
        return len(self._open)

    def of(self, root: str, seconds: float | None = None) -> RootSolver:
        return RootSolver(self, root, seconds)

    def is_open(self, root: str) -> bool:
        return root in self._open

    def found(self, root: str) -> dict[str, int]:
        """Pod -> row, as far as its nodes are there."""
        known = self._known.get(root)
        if known is None:
            return {}
        rows = {uid: self._state.row(node) for uid, node in known.found.items()}
        return {uid: row for uid, row in rows.items() if row is not None}

    def put(self, root: str, model: HardModel, back: Back, *, last: bool, seconds: float | None = None) -> Verdict:
        """What is known of this very question; else it is put aside."""
        names = [None if info is None else info.name for info in self._state.node_infos]

        def read(values: list[int]) -> dict[str, str]:
            return {uid: name for uid, row in back(values).items() if (name := names[row]) is not None}

        asked = HardQuestion(root, type(model).__name__, _encode(model), read, last, seconds)
        known = self._known.setdefault(root, _Known())
        known.found = {}  # it did not hold
        verdict = known.verdicts.get(asked.digest)
        if verdict is None and not last and asked.kind in known.passed:
            # The cluster has changed a little: the next kind of question has its turn, or it never would.
            verdict = Verdict(SolverStatus.UNKNOWN)
        if verdict is None:
            self._open[root] = asked
            verdict = Verdict(SolverStatus.SEARCHING)
        return verdict

    def take(self) -> list[HardQuestion]:
        """Those that nobody works on yet."""
        found = [one for one in self._open.values() if not one.sent]
        for one in found:
            one.sent = True
        return found

    def answered(self, question: HardQuestion, verdict: Verdict) -> bool:
        """Whether anybody still waits for it."""
        if self._open.get(question.root) is not question:
            return False
        del self._open[question.root]
        known = self._known.setdefault(question.root, _Known())
        if verdict.status is SolverStatus.FOUND:
            known.found = question.read(verdict.values)
        else:
            while len(known.verdicts) >= _KEPT:
                del known.verdicts[next(iter(known.verdicts))]
            known.verdicts[question.digest] = verdict
            known.passed = set() if question.last else {*known.passed, question.kind}
        return True

    def drop(self, root: str) -> None:
        """The root is placed, or gone."""
        self._open.pop(root, None)
        self._known.pop(root, None)


class RootSolver:
    """For one decision about one root."""

    def __init__(self, questions: HardQuestions, root: str, seconds: float | None = None) -> None:
        self._questions, self._root, self._seconds = questions, root, seconds

    def under_way(self) -> bool:
        return self._questions.is_open(self._root)

    def ask(self, model: HardModel, effort: Effort, back: Back, *, last: bool) -> Verdict:  # noqa: ARG002
        return self._questions.put(self._root, model, back, last=last, seconds=self._seconds)
