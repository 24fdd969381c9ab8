"""What an expression may cost at most, from the sizes that a schema allows: a server refuses rules that could be dear.

The numbers are upstream's, with its quirks: scalars of a schema count as empty, and what a function made has no size
unless the function says so. Only the upper end is followed; the lower end of a size matters to replace() alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.cel.check import Checker
from kohort.cel.costs import LIST, MAP, PER_CHARACTER, UNKNOWN, Size, added, capped, share, union
from kohort.cel.estimate_calls import CALLS
from kohort.cel.syntax import Node
from kohort.cel.types import Type

_SCALARS: Final = frozenset({"bool", "int", "uint", "double", "duration", "timestamp"})
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a macro."""

    path: Path
    size: Size | None = None
    items: Size | None = None


@dataclass(slots=True)
class Estimator:
    root: Type | None
    types: Checker
    paths: dict[int, Path] = field(default_factory=dict)
    sizes: dict[int, Size] = field(default_factory=dict)
    items: dict[int, Size] = field(default_factory=dict)  # of what is in a list or map
    locals: dict[str, list[_Local]] = field(default_factory=dict)

    def cost(self, node: Node) -> int:
        found: int = getattr(self, f"_{node.sort}")(node)
        return capped(found)

    # ---- sizes

    def _path(self, node: Node) -> Path:
        if node.sort == "name" and self.locals.get(node.value):
            return self.locals[node.value][-1].path
        return self.paths.get(id(node), ())

    def _declared(self, path: Path) -> Size | None:
        """By the schema, from the root on, whatever the variable at the begin was."""
        if not path or self.root is None:
            return None
        here: Type | None = self.root
        for name in path[1:]:
            if here is None:
                return None
            if name in {"@items", "@values"}:
                here = here.parts[-1] if here.kind in {"list", "map"} else None
            elif name == "@keys":
                here = here.parts[0] if here.kind == "map" else None
            else:
                here = (here.fields or {}).get(name)
        return None if here is None else (0, here.most or 0)

    def size(self, node: Node) -> Size | None:
        known = self.sizes.get(id(node))
        if known is not None:
            return known
        literal = _literal_size(node)
        if literal is not None:
            return (literal, literal)
        path = self._path(node)
        found = self._declared(() if path[:1] == ("@result",) else path)
        if found is not None:
            return found
        kind = self.types.type_of(node) if id(node) in self.types.types else None
        while kind is not None and kind.kind == "optional_type":
            kind = kind.parts[0]
        if kind is not None and kind.kind in _SCALARS:
            return (1, 1)
        if node.sort == "name" and self.locals.get(node.value):
            return self.locals[node.value][-1].size
        return None

    def sure(self, node: Node) -> Size:
        return self.size(node) or UNKNOWN

    def _item(self, node: Node) -> Size | None:
        if node.sort == "name" and self.locals.get(node.value):
            return self.locals[node.value][-1].items
        return self.items.get(id(node))

    def _kind(self, node: Node) -> str:
        return self.types.type_of(node).kind

    # ---- nodes

    def _literal(self, _: Node) -> int:
        return 0

    def _name(self, node: Node) -> int:
        if not self.locals.get(node.value):
            self.paths[id(node)] = (node.value,)
        return 1

    def _member(self, node: Node) -> int:
        target = node.parts[0]
        cost = self.cost(target)
        self.paths[id(node)] = (*self._path(target), node.value)
        return cost + (self._kind(target) in {"map", "object", "param"})

    def _optional_member(self, node: Node) -> int:
        return 1 + self.cost(node.parts[0])

    def _has(self, node: Node) -> int:
        return self.cost(node.parts[0].parts[0])

    def _list(self, node: Node) -> int:
        cost = sum(map(self.cost, node.parts)) + LIST
        self.items[id(node)] = union([self.sure(part) for part in node.parts])
        return cost

    def _map(self, node: Node) -> int:
        cost = sum(map(self.cost, node.parts)) + MAP
        self.items[id(node)] = union([self.sure(part) for part in node.parts[1::2]])
        return cost

    def _not(self, node: Node) -> int:
        return 1 + self.cost(node.parts[0])

    _neg = _not

    def _choice(self, node: Node) -> int:
        condition, yes, no = map(self.cost, node.parts)
        self.sizes[id(node)] = union([self.sure(part) for part in node.parts[1:]])
        inner = [self._item(part) for part in node.parts[1:]]
        if inner[0] is not None and inner[1] is not None:
            self.items[id(node)] = union([one for one in inner if one is not None])
        return condition + max(yes, no)

    def _index(self, node: Node) -> int:
        target, index = node.parts
        cost = 1 + self.cost(target) + self.cost(index)
        kind = self._kind(target)
        if kind in {"list", "map"}:
            self.paths[id(node)] = (*self._path(target), "@items" if kind == "list" else "@values")
            inner = self._item(target)
            if inner is not None:
                self.sizes[id(node)] = inner
        return cost

    def _optional_index(self, node: Node) -> int:
        return 1 + sum(map(self.cost, node.parts))

    def _binary(self, node: Node) -> int:
        cost = sum(map(self.cost, node.parts))
        if node.value in {"&&", "||"}:
            return cost
        one, other = node.parts
        kinds = {self._kind(one), self._kind(other)}
        texts, open_ = bool(kinds & {"string", "bytes"}), kinds <= {"dyn", "param"}
        smaller = share(min(self.sure(one)[1], self.sure(other)[1]), PER_CHARACTER)
        if node.value in {"==", "!="}:
            plain = node.value == "==" and self._plain(one) and self._plain(other)
            return cost + (1 if plain else smaller)
        if node.value == "in":
            return cost + (1 if self._kind(other) == "map" else self.sure(other)[1])
        if node.value == "+" and (texts or open_ or "list" in kinds):
            whole = added(self.sure(one), self.sure(other))
            self.sizes[id(node)] = whole
            inner = [found for found in (self._item(one), self._item(other)) if found is not None]
            if len(inner) == 2:
                self.items[id(node)] = union(inner)
            return cost + (1 if "list" in kinds else share(whole[1], PER_CHARACTER))
        if node.value in {"<", "<=", ">", ">="} and (texts or open_):
            return cost + (smaller if texts and not open_ else max(1, smaller))
        return cost + 1

    def _plain(self, node: Node) -> bool:
        """Types of Kubernetes that are compared at once."""
        return "." in self._kind(node)

    def _call(self, node: Node) -> int:
        if node.value == "dyn":
            cost = 1 + self.cost(node.parts[0])
            found = self.size(node.parts[0])
            if found is not None:
                self.sizes[id(node)] = found
            return cost
        return self._function(node, node.parts)

    def _method(self, node: Node) -> int:
        return self._function(node, node.parts)

    def _function(self, node: Node, given: Sequence[Node]) -> int:
        cost = sum(map(self.cost, given))
        estimate = CALLS.get(node.value)
        if estimate is None:
            return cost + 1
        return cost + estimate(self, node, given)

    def element(self, node: Node) -> tuple[str, Size]:
        """Kind and size of the items of a list."""
        kind = self.types.type_of(node)
        path = self._path(node)
        found = self._declared((*path, "@items")) if path else None
        return (kind.parts[0].kind if kind.parts else ""), found or UNKNOWN

    # ---- macros

    def _macro(self, node: Node) -> int:
        (name, names), (target, *bodies) = node.value, node.parts
        cost = self.cost(target)
        if name in {"optMap", "optFlatMap"}:
            return self._optional_macro(node, cost)
        count = self.sure(target)
        self._bind(names, target)
        try:
            steps = [self.cost(body) for body in bodies]
            inner = self.sure(bodies[-1])
        finally:
            for one in names:
                self.locals[one].pop()
        fixed, step = _FOLDS[name]
        if name in {"filter", "map", "sortBy", "transformList", "transformMap", "transformMapEntry"}:
            self.sizes[id(node)] = count
            self.items[id(node)] = inner if name != "filter" else self._bound_size(target)
        else:
            self.sizes[id(node)] = (1, 1)
        if name == "sortBy":
            texts = self._kind(bodies[0]) in {"string", "bytes"}
            fixed += share(capped(count[1] ** 2), 2 + (PER_CHARACTER if texts else 0))
            self.sizes[id(node)] = (count[0] ** 2, capped(count[1] ** 2))
        return cost + fixed + capped(count[1] * (sum(steps) + step))

    def _bound_size(self, target: Node) -> Size:
        kind = self._kind(target)
        path = self._path(target)
        found = self._declared((*path, "@keys" if kind == "map" else "@items"))
        return found or self._item(target) or UNKNOWN

    def _bind(self, names: tuple[str, ...], target: Node) -> None:
        path, inner = self._path(target), self._item(target)
        is_list = self._kind(target) == "list"
        ways = ("@indices" if is_list else "@keys", "@items" if is_list else "@values")
        if len(names) == 1:
            ways = ("@items",) if is_list else ("@keys",)  # type: ignore[assignment]
        for name, way in zip(names, ways, strict=True):
            size = inner if way in {"@items", "@values"} else None
            self.locals.setdefault(name, []).append(_Local((*path, way), size))

    def _optional_macro(self, node: Node, cost: int) -> int:
        (name, (variable,)), body = node.value, node.parts[1]
        self.locals.setdefault(variable, []).append(_Local(("@result",), self.size(node.parts[0])))
        try:
            inner = self.cost(body)
        finally:
            self.locals[variable].pop()
        return 2 * cost + inner + 1 + 1 + LIST + int(name == "optMap")


def _literal_size(node: Node) -> int | None:
    if node.sort == "literal":
        return len(node.value) if isinstance(node.value, str | bytes) else 1
    if node.sort == "list":
        return len(node.parts)
    return len(node.parts) // 2 if node.sort == "map" else None


# Of each macro: what it costs once, and what each step costs beside its body.
_FOLDS: Final[dict[str, tuple[int, int]]] = {
    "all": (1, 3),
    "exists": (1, 4),
    **dict.fromkeys(("exists_one", "existsOne"), (2, 2)),
    "filter": (LIST + 1, 13),
    **dict.fromkeys(("map", "transformList"), (LIST + 1, 12)),
    "sortBy": (LIST + 1 + 1 + LIST + 1 + 1 + LIST, 12),
    "transformMap": (MAP + 1, 3),
    "transformMapEntry": (MAP + 1, 2),
}
