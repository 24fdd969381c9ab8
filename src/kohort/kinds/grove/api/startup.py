"""Rules of `startsAfter`, which only the startup type Explicit reads."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from kohort.api.errors import FieldError, duplicate, invalid, required
from kohort.api.kind import Object
from kohort.kinds.grove.api import constants, parts


def check(obj: Object) -> Iterator[FieldError]:
    if parts.template(obj).get("cliqueStartupType") != constants.EXPLICIT:
        return
    known = {str(clique.get("name")) for _, clique in parts.cliques(obj)}
    after: dict[str, list[str]] = {}
    for path, clique in parts.cliques(obj):
        name, parents = str(clique.get("name")), parts.spec_of(clique).get("startsAfter") or []
        after.setdefault(name, [parent for parent in parents if parent in known and parent != name])
        yield from _parents(name, parents, known, f"{path}.spec.startsAfter")
    circle = cycle(after)
    if circle:
        yield invalid(parts.CLIQUES, circle, "clique must not have circular dependencies")


def _parents(name: str, parents: list[str], known: set[str], path: str) -> Iterator[FieldError]:
    for index, parent in enumerate(parents):
        if not parent:
            yield required(f"{path}[{index}]", "clique dependency must not be empty")
        elif parent == name:
            yield invalid(f"{path}[{index}]", parent, "clique dependency cannot refer to itself")
        elif parent in parents[:index]:
            yield duplicate(f"{path}[{index}]", parent)
        elif parent not in known:
            yield invalid(f"{path}[{index}]", parent, f"not a clique of this set; cliques are {_words(known)}")


def _words(names: set[str]) -> str:
    return ", ".join(sorted(names))


def cycle(after: dict[str, list[str]]) -> list[str]:
    """Cliques that wait for each other in a circle; empty if there is none."""
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        return list(error.args[1][1:])
    return []
