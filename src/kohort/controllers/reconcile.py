"""The reconcile of one key: what a controller decides, without doing it.

A reconcile is a generator. It is given what was observed and the time, yields steps (writes that may be done at once,
and events), gets for each write what the server answered, and ends with a Result. It does no I/O and reads no
clock: the same view and the same answers give the same steps. Whoever runs it may stop between any two writes; the
next run begins with a fresh view and does what is left.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from kohort.api.kind import Object

Verb = Literal["create", "update", "patch", "apply", "delete", "get"]
CREATES_AT_MOST: Final = 500  # children that one reconcile creates, as kube-controller-manager's; the next goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One request that changes something. `body`: the object, or the patch. (A `get` changes nothing; it is for what no
    watch brings, such as the scale of a kind that nobody knew of.)

    To apply is to create or change what is in the body and to leave the rest to others; what was in the body of the
    apply before, and is not any more, goes.
    """

    verb: Verb
    api_version: str
    kind: str
    namespace: str
    name: str = ""
    body: Any = None
    subresource: str = ""
    patch: Literal["merge", "strategic", "json"] = "merge"
    uid: str = ""  # of what is to be deleted: never another object of that name
    version: str = ""  # of what is to be deleted: not if it has changed since
    propagation: Literal["Background", "Foreground", "Orphan"] | None = None

    def __str__(self) -> str:
        what = f"{self.kind}{f'/{self.subresource}' if self.subresource else ''}"
        return (
            f"{self.verb} {what} {self.namespace}/{self.name or (self.body or {}).get('metadata', {}).get('name', '?')}"
        )


@dataclass(frozen=True, slots=True)
class Event:
    """An event, for people."""

    regarding: Object
    type: Literal["Normal", "Warning"]
    reason: str
    note: str
    action: str = ""  # what was being done; the reason where nobody says


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a write was not done. Code 0: no answer came, it may or may not have been done."""

    code: int
    reason: str
    message: str
    causes: frozenset[str] = frozenset()  # reasons of details.causes

    @property
    def not_found(self) -> bool:
        return self.code == 404

    @property
    def forbidden(self) -> bool:
        """By a role, or by a quota that is used up."""
        return self.code == 403

    @property
    def namespace_terminating(self) -> bool:
        return "NamespaceTerminating" in self.causes

    @property
    def already_exists(self) -> bool:
        return self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        return self.code == 409 and not self.already_exists


@dataclass(frozen=True, slots=True)
class Answer:
    """Of the server to one write: the object as it is now, or a refusal."""

    object: Object | None = None
    refusal: Refusal | None = None

    @property
    def ok(self) -> bool:
        return self.refusal is None


@dataclass(frozen=True, slots=True)
class Step:
    """Writes that do not depend on each other, and events that are recorded before they are done."""

    writes: Sequence[Write] = ()
    events: Sequence[Event] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a reconcile. `requeue_after`: reconcile again in so many seconds.

    `counted`: what has happened to the object, for counters of that name.
    """

    requeue_after: float | None = None
    counted: tuple[str, ...] = ()


class ReconcileError(Exception):
    """A write was refused and the reconcile cannot go on: it is run again later."""


Reconcile = Generator[Step, Sequence[Answer], Result]
# A part of a reconcile that ends with something else than a Result.
Part = Generator[Step, Sequence[Answer], Any]


def one(write: Write, *events: Event) -> Generator[Step, Sequence[Answer], Answer]:
    """Do one write, and have its answer."""
    (answer,) = yield Step((write,), events)
    return answer


def emit(*events: Event) -> Generator[Step, Sequence[Answer], None]:
    if events:
        yield Step((), events)


def must(write: Write, answer: Answer) -> Object:
    """The object of an accepted write; ReconcileError if it was refused."""
    if answer.refusal is not None:
        raise ReconcileError(f"{write}: {answer.refusal.code} {answer.refusal.message}")
    return answer.object or {}
