"""GroupingRules of the cluster: what they say together with the configuration, and what is told of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError
from kohort.grouping.api import ACCEPTED, INVALID, READABLE, VALID
from kohort.grouping.model import Rule
from kohort.grouping.settings import Grouping, extended
from kohort.scheduler.companion import Objects
from kohort.scheduler.model import Condition

Json = dict[str, Any]
_LONGEST: Final = 32_768  # of a condition's message


class GroupingRules:
    """`base`: what the configuration says."""

    def __init__(self, base: Grouping) -> None:
        self._base = base
        self._bodies: dict[str, Json] = {}
        self._problems: dict[str, list[FieldError]] = {}
        self._rules: dict[str, Rule] = {}

    def set(self, name: str, body: Json | None) -> Grouping | None:
        """One comes, changes or (None) goes. -> what counts now; None: the same as before"""
        before = self._bodies.get(name)
        if body is None:
            self._bodies.pop(name, None)
        else:
            self._bodies[name] = body
        if (before or {}).get("spec") == (body or {}).get("spec"):
            return None  # only its status moved
        made, self._problems = extended(self._base, self._bodies.values())
        self._rules = {one.name: one for one in made.custom}
        return made

    def conditions(self, objects: Objects, now: str) -> Iterator[tuple[str, str, Condition]]:
        """Those that are not there yet, each with the name and the uid of its rule. `objects`: what grouping reads."""
        for name, body in self._bodies.items():
            meta = body["metadata"]
            generation = int(meta.get("generation") or 0)
            for kind, said in self._wanted(name, objects):
                if _said(body, kind) != (*said, generation):
                    yield name, str(meta.get("uid") or ""), Condition(kind, *said, now, generation)

    def _wanted(self, name: str, objects: Objects) -> Iterator[tuple[str, tuple[str, str, str]]]:
        """Types of conditions with status, reason and message."""
        problems = self._problems.get(name)
        if problems:
            yield ACCEPTED, ("False", INVALID, "; ".join(map(str, problems))[:_LONGEST])
            return
        yield ACCEPTED, ("True", VALID, "the scheduler groups pods by this rule")
        kind = self._rules[name].reads[0]
        if kind in objects.readable:
            yield READABLE, ("True", "Read", f"{kind.name}.{kind.group} is read")
        elif kind in objects.missed:
            text = f"{kind.name}.{kind.group} is not served, or the scheduler may not list and watch it"
            yield READABLE, ("False", "NotReadable", text)


def _said(body: Json, kind: str) -> tuple[Any, ...] | None:
    for one in (body.get("status") or {}).get("conditions") or ():
        if one.get("type") == kind:
            return one.get("status"), one.get("reason"), one.get("message"), one.get("observedGeneration")
    return None
