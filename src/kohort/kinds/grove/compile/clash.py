"""Names are computed, so two gangs of one namespace can come to the same one (spec grove 1.7, 3.7, D19).

PodCliqueSet `a` with scaling group `b` has a scaled gang `a-0-b-0`; so has the base of a set called `a-0-b`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy

from kohort.api.errors import FieldError, invalid
from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.compile import CompileContext
from kohort.gang.tree import Plan
from kohort.kinds.grove.api import backend, defaults, options
from kohort.kinds.grove.compile import groups
from kohort.kinds.grove.compile.expand import Expansion
from kohort.kinds.grove.compile.topology import resolve

Name = tuple[str, str]  # kind and name of an object


def podgangs(expansion: Expansion) -> list[Name]:
    return [("PodGang", gang.name) for gang in expansion.gangs]


def names_of(plans: Iterable[Plan]) -> list[Name]:
    found = []
    for plan in plans:
        kinds = {found.name: "PodGroup" if found.is_leaf else "CompositePodGroup" for found in plan.walk()}
        found += [(kinds[group.template], group.name) for group in plan.groups]
    return found


def within(mine: list[Name]) -> Iterator[FieldError]:
    """Objects of one set that would have the same kind and name."""
    for (kind, name), count in Counter(mine).items():
        if count > 1:
            yield invalid(
                "metadata.name",
                name,
                f"the set would have {count} of {kind} with this name; rename a clique or a scaling group",
            )


def check(new: Object, old: Object | None, ctx: CompileContext) -> list[FieldError]:
    """What an API server asks before it stores a set. Whatever is there was there first; a change answers for what it
    brings."""
    before = set(_names(old, ctx)) if old is not None else set()
    mine = [name for name in _names(new, ctx) if name not in before]
    unborn = {**new, "metadata": {key: value for key, value in new["metadata"].items() if key != "creationTimestamp"}}
    return [*within(mine), *between(unborn, mine, ctx)]


def between(obj: Object, mine: list[Name], ctx: CompileContext) -> Iterator[FieldError]:
    """Objects that another set of the namespace has already."""
    for other in _rivals(obj, ctx):
        theirs = set(_names(other, ctx))
        for kind, name in dict.fromkeys(mine):
            if (kind, name) in theirs:
                yield invalid(
                    "metadata.name",
                    obj["metadata"]["name"],
                    f'{kind} "{name}" would be that of PodCliqueSet "{other["metadata"]["name"]}" too; rename one',
                )


def _rivals(obj: Object, ctx: CompileContext) -> Iterator[Object]:
    """Sets that were there first. One name must start with the other, or nothing can meet."""
    name, created = obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")
    for other in ctx.lookup.every("PodCliqueSet", namespace_or_default(obj)):
        theirs, since = other["metadata"]["name"], other["metadata"].get("creationTimestamp")
        later = bool(created) and (not since or (since, theirs) > (created, name))
        if theirs != name and not later and (theirs.startswith(f"{name}-") or name.startswith(f"{theirs}-")):
            yield other


def _names(other: Object, ctx: CompileContext) -> list[Name]:
    """What is looked up may be neither defaulted nor valid: then it has nothing yet."""
    whole = deepcopy(other)
    try:
        defaults.podcliqueset(whole, ctx)
        expansion = Expansion(whole, ctx.lookup)
        if expansion.is_too_large:
            return []
        found = podgangs(expansion)
        if ctx.on(options.GANG) and backend.concerned(whole) and not backend.external(whole):
            found += names_of(groups.plans(expansion, resolve(whole, ctx, existing=True)[0], ctx))
    except (KeyError, TypeError, AttributeError, ValueError):
        return []
    return found
