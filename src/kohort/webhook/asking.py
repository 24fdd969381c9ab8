"""Rules that look other objects up, where each look is a request to an API server.

Rules are plain functions and wait for nothing. So they are run with what is known; one that misses an object ends, the
object is fetched by whoever drives the generator, and the rule is run again. Rules look at a handful of objects, and a
look that repeats itself costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Final, NamedTuple

from kohort.api.kind import Object
from kohort.gang.compile import CompileContext, Lookup
from kohort.webhook.review import Answer

MOST: Final = 32  # looks of one question


class Wanted(NamedTuple):
    """An object, or (name None) all of a kind in a namespace."""

    kind: str
    name: str | None
    namespace: str | None


class TooManyLooksError(Exception):
    """A question that would keep the API server busy."""


class _UnknownError(Exception):
    """No ValueError or the like: rules take those for objects that nobody can read."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class _Known(Lookup):
    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[Wanted, list[Object]] = {}

    def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        found = self._look(Wanted(kind, name, namespace))
        return found[0] if found else None

    def every(self, kind: str, namespace: str | None = None) -> list[Object]:
        return self._look(Wanted(kind, None, namespace))

    def _look(self, wanted: Wanted) -> list[Object]:
        if wanted not in self.answers:
            raise _UnknownError(wanted)
        return self.answers[wanted]


Asking = Generator[Wanted, list[Object], Answer]


def asking(check: Callable[[CompileContext], Answer], ctx: CompileContext) -> Asking:
    """Yields what it wants to see, is sent what there is of it, and returns the answer."""
    known = _Known()
    within = replace(ctx, lookup=known)
    while True:
        try:
            return check(within)
        except _UnknownError as gap:
            wanted = gap.wanted
        if len(known.answers) >= MOST:
            raise TooManyLooksError(f"more than {MOST} objects are looked up")
        known.answers[wanted] = yield wanted
