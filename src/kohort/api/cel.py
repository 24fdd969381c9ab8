"""Rules of a schema that OpenAPI cannot say, as CEL for `x-kubernetes-validations`.

A server estimates the cost of a rule from the largest value that the schema allows, and refuses a CRD with a rule
that could be dear. So a rule stands only where its cost is bounded, and one that compares with the stored value
only where a server can find its counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.schema import Anything, Arr, Cel, Node, Obj, Update

Rule = dict[str, Any]

MOST_TIMES: Final = 1024  # instances of one rule in an object
MOST_KEYS: Final = 32  # items of a list whose keys are compared pair by pair
_OPTIONAL: Final = {"optionalOldSelf": True}
_RESERVED: Final = {
    *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
    *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """Where in an object a node stands: how often it may occur, and whether its stored counterpart can be found."""

    times: int = 1  # as far as lists around it have a bound
    unbounded: int = 0  # how many lists or maps around it have none
    correlated: bool = True

    def within(self, most: int | None, *, correlated: bool) -> Spot:
        """The items of a list of so many."""
        return Spot(self.times * (most or 1), self.unbounded + (most is None), self.correlated and correlated)

    @property
    def few(self) -> bool:
        """Cheap enough for comparing values."""
        return self.unbounded == 0 and self.times <= MOST_TIMES

    @property
    def some(self) -> bool:
        """Cheap enough for looking which members are there."""
        return self.unbounded <= 1 and self.times <= MOST_TIMES


def rules(node: Node, spot: Spot) -> list[Rule]:
    """All rules that stand at this node."""
    if isinstance(node, Anything):
        return []
    own = _own(node) if spot.some else ()
    changes = _frozen(node) if spot.few and spot.correlated else ()
    return [_written(found) for found in (*own, *changes)]


def _written(found: Cel) -> Rule:
    where = {"fieldPath": found.field} if found.field else {}
    if found.once:
        return {"rule": f"oldSelf.hasValue() || {found.rule}", "message": found.message, **where, **_OPTIONAL}
    return {"rule": found.rule, "message": found.message, **where}


def _own(node: Node) -> Iterator[Cel]:
    if isinstance(node, Obj):
        yield from node.rules
        if node.union:
            yield _union(node)


def _union(node: Obj) -> Cel:
    terms = " + ".join(f"({_is_set(node, name)} ? 1 : 0)" for name in node.union)
    words = ", ".join(node.union)
    if node.union_optional:
        return Cel(f"{terms} <= 1", f"must specify at most one of: {words}")
    return Cel(f"{terms} == 1", f"must specify exactly one of: {words}")


def _is_set(node: Obj, name: str) -> str:
    """An empty list counts as unset."""
    path = f"self.{escaped(name)}"
    return f"has({path}) && size({path}) > 0" if isinstance(node.fields.get(name), Arr) else f"has({path})"


def _frozen(node: Node) -> Iterator[Cel]:
    """What compares with the stored object: the node itself, and which of its members come and go."""
    if node.update is Update.FROZEN:
        yield Cel("self == oldSelf", "field is immutable")
    if node.update is Update.KEYSET and isinstance(node, Arr) and node.key and 0 < (node.max_items or 0) <= MOST_KEYS:
        same = " && ".join(f"x.{escaped(key)} == y.{escaped(key)}" for key in node.key)
        rule = f"self.size() == oldSelf.size() && self.all(x, oldSelf.exists(y, {same}))"
        yield Cel(rule, "items may not be added or removed")
    if isinstance(node, Obj):
        for name, member in node.fields.items():
            if member.update in {Update.FROZEN, Update.VARIANT} and not member.required:
                path = escaped(name)
                yield Cel(f"has(self.{path}) == has(oldSelf.{path})", f"{name} cannot be set or cleared later")


def escaped(name: str) -> str:
    """A field's name as CEL sees it in a CRD."""
    if name in _RESERVED:
        return f"__{name}__"
    marks = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
    return re.sub(r"__|[./-]", lambda found: marks[found[0]], name)
