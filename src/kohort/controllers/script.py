"""What a controller decides, without doing it: a script.

A script is a generator. It is given what was observed and the time, yields steps (writes that may be done at once, and
events to tell), gets for each write what the server answered, and ends with an Outcome. It does no I/O and reads no
clock: the same view and the same answers give the same steps. Whoever runs it may stop between any two writes; the
next run begins with a fresh view and does what is left.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kohort.api.kind import Object

Verb = Literal["create", "update", "patch", "apply", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One request that changes something. `body`: the object, or the patch.

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
class Told:
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

    @property
    def not_found(self) -> bool:
        return self.code == 404

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
    """Writes that do not depend on each other, and events that are told before they are done."""

    writes: Sequence[Write] = ()
    events: Sequence[Told] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a script. `after`: look again in so many seconds; `failed`: it did not work, look again soon.

    `counted`: what has happened to the object, for counters of that name.
    """

    after: float | None = None
    failed: str = ""
    counted: tuple[str, ...] = ()


class SyncError(Exception):
    """A write was refused and the script cannot go on: it is run again later."""


Script = Generator[Step, Sequence[Answer], Outcome]
# A part of a script that ends with something else than an outcome.
Part = Generator[Step, Sequence[Answer], Any]


def one(write: Write, *events: Told) -> Generator[Step, Sequence[Answer], Answer]:
    """Do one write, and have its answer."""
    (answer,) = yield Step((write,), events)
    return answer


def tell(*events: Told) -> Generator[Step, Sequence[Answer], None]:
    if events:
        yield Step((), events)


def must(write: Write, answer: Answer) -> Object:
    """The object of an accepted write; SyncError if it was refused."""
    if answer.refusal is not None:
        raise SyncError(f"{write}: {answer.refusal.code} {answer.refusal.message}")
    return answer.object or {}
