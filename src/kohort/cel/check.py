"""Types of an expression: what a real server refuses when a CRD is made, before any value is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.apimachinery import regexp
from kohort.cel import functions, times
from kohort.cel.lib_strings import UNKNOWN as _UNKNOWN
from kohort.cel.lib_strings import formatted as clauses
from kohort.cel.syntax import RESERVED, CelSyntaxError, Node
from kohort.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    NULLABLE,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    written,
)
from kohort.cel.values import CelError, Duration, Timestamp, TypeValue, Uint

_LITERALS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_TYPE_NAMES: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"}
) | {
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
}
_SYMBOLS: Final = {"in": "@in"}
_CONVERSIONS: Final = frozenset({"int", "uint", "double", "bool", "string", "bytes"})
_STAND_INS: Final[dict[str, Any]] = {
    "bool": True,
    "int": 1,
    "uint": Uint(1),
    "double": 1.0,
    "string": "",
    "bytes": b"",
    "null": None,
    "list": [],
    "map": {},
    "duration": Duration(0),
    "timestamp": Timestamp(0),
    "type": TypeValue("type"),
}
_LITERAL_CHECKS: Final[dict[str, Any]] = {
    "matches": regexp.compiled,
    "duration": times.parse_duration,
    "timestamp": times.parse_timestamp,
}


OBJECT: Final = "Object"
JSON_PATCH: Final = Type(
    "object", name="JSONPatch", fields={"op": STRING, "path": STRING, "from": STRING, "value": DYN}
)


class _AnyField(dict[str, Type]):
    """Fields of Object{}: their names and types are not known when an expression is checked."""

    def get(self, _: Any, __: Any = None) -> Any:
        return DYN


@dataclass(slots=True)
class Checker:
    """Types by the identity of nodes. `bound`: what type parameters stand for."""

    types: dict[int, Type] = field(default_factory=dict)
    bound: dict[str, Type] = field(default_factory=dict)
    fresh: int = 0
    unfit: str = ""  # why no program can be made of an expression whose types are right
    patches: bool = False  # Object{} and JSONPatch{} may be made
    mixed: bool = False  # within the values of format(): items of a list may have several types

    def check(self, node: Node, scope: Mapping[str, Type]) -> Type:
        found: Type = getattr(self, f"_{node.sort}")(node, scope)
        self.types[id(node)] = found
        return found

    def type_of(self, node: Node) -> Type:
        return self.resolved(self.types[id(node)])

    # ---- parameters

    def resolved(self, one: Type) -> Type:
        if one.kind == "param":
            known = self.bound.get(one.name)
            return one if known is None else self.resolved(known)
        if not one.parts:
            return one
        parts = tuple(map(self.resolved, one.parts))
        return one if parts == one.parts else Type(one.kind, parts, one.name, one.fields, one.most, one.least)

    def _renamed(self, one: Type, mark: int) -> Type:
        if one.kind == "param":
            return Type("param", name=f"_{one.name}{mark}")
        return Type(one.kind, tuple(self._renamed(part, mark) for part in one.parts), one.name, one.fields)

    def _fresh(self) -> Type:
        self.fresh += 1
        return Type("param", name=f"_var{self.fresh}")

    def assignable(self, wanted: Type, given: Type) -> bool:
        wanted, given = self.resolved(wanted), self.resolved(given)
        if wanted.kind == "param" or given.kind == "param":
            if wanted != given:
                one, other = (wanted, given) if wanted.kind == "param" else (given, wanted)
                if not self._within(one, other):
                    self.bound[one.name] = other
            return True
        if "dyn" in (wanted.kind, given.kind):
            return True
        if wanted.kind != given.kind:
            return (given.kind == "null" and wanted.kind in NULLABLE) or (
                wanted.kind == "null" and given.kind in NULLABLE
            )
        if wanted.kind == "object":
            return wanted.name == given.name
        return len(wanted.parts) == len(given.parts) and all(map(self.assignable, wanted.parts, given.parts))

    def _within(self, one: Type, other: Type) -> bool:
        return other == one or any(self._within(one, self.resolved(part)) for part in other.parts)

    # ---- nodes

    def _literal(self, node: Node, _: Mapping[str, Type]) -> Type:
        if type(node.value) is int and not -(1 << 63) <= node.value < 1 << 63:
            raise CelSyntaxError("invalid int literal", node.at)
        return _LITERALS[type(node.value)]

    def _name(self, node: Node, scope: Mapping[str, Type]) -> Type:
        if node.value in scope:
            return scope[node.value]
        if node.value in _TYPE_NAMES:
            return Type("type", (DYN,))
        raise CelSyntaxError(f"undeclared reference to '{node.value}' (in container '')", node.at)

    def _member(self, node: Node, scope: Mapping[str, Type]) -> Type:
        if node.parts[0].sort == "name" and f"{node.parts[0].value}.{node.value}" in scope:
            return scope[f"{node.parts[0].value}.{node.value}"]
        target = self.resolved(self.check(node.parts[0], scope))
        if target.kind == "optional_type":
            return optional_of(self._selected(target.parts[0], node))
        return self._selected(target, node)

    def _selected(self, target: Type, node: Node) -> Type:
        if target.kind == "object":
            fields = {} if target.fields is None else target.fields
            found = fields.get(node.value) or fields.get(f"__{node.value}__" if node.value in RESERVED else "")
            if found is None:
                raise CelSyntaxError(f"undefined field '{node.value}'", node.at)
            return found
        if target.kind == "map":
            return target.parts[1]
        if target.kind in {"dyn", "param"}:
            return DYN
        raise CelSyntaxError(f"type '{target}' does not support field selection", node.at)

    def _optional_member(self, node: Node, scope: Mapping[str, Type]) -> Type:
        found = self.resolved(self._member(node, scope))
        return found if found.kind == "optional_type" else optional_of(found)

    def _has(self, node: Node, scope: Mapping[str, Type]) -> Type:
        self.check(node.parts[0], scope)
        return BOOL

    def _index(self, node: Node, scope: Mapping[str, Type]) -> Type:
        return self._applied("_[_]", node, scope)

    def _optional_index(self, node: Node, scope: Mapping[str, Type]) -> Type:
        return self._applied("_[?_]", node, scope)

    def _not(self, node: Node, scope: Mapping[str, Type]) -> Type:
        return self._applied("!_", node, scope)

    def _neg(self, node: Node, scope: Mapping[str, Type]) -> Type:
        return self._applied("-_", node, scope)

    def _binary(self, node: Node, scope: Mapping[str, Type]) -> Type:
        return self._applied(_SYMBOLS.get(node.value, f"_{node.value}_"), node, scope)

    def _choice(self, node: Node, scope: Mapping[str, Type]) -> Type:
        return self._applied("_?_:_", node, scope)

    def _list(self, node: Node, scope: Mapping[str, Type]) -> Type:
        item: Type = DYN if self.mixed else self._fresh()
        given = [self._given(part, scope, place in node.value) for place, part in enumerate(node.parts)]
        self._join_all(item, given, node.parts)
        return list_of(item)

    def _map(self, node: Node, scope: Mapping[str, Type]) -> Type:
        names, items = self._fresh(), self._fresh()
        keys, values = [], []
        for place in range(0, len(node.parts), 2):
            keys.append(self.check(node.parts[place], scope))
            values.append(self._given(node.parts[place + 1], scope, place in node.value))
        self._join_all(names, keys, node.parts[::2])
        self._join_all(items, values, node.parts[1::2])
        return map_of(names, items)

    def _struct(self, node: Node, scope: Mapping[str, Type]) -> Type:
        name, fields, optional, places = node.value
        patch = name == JSON_PATCH.name
        if not self.patches or not (patch or name == OBJECT or name.startswith(f"{OBJECT}.")):
            raise CelSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
        for place, (field_name, part) in enumerate(zip(fields, node.parts, strict=True)):
            given = self._given(part, scope, place in optional)
            wanted = (JSON_PATCH.fields or {}).get(field_name) if patch else DYN
            if wanted is None:
                raise CelSyntaxError(f"undefined field '{field_name}'", places[place])
            if not self.assignable(wanted, given):
                shown = f"'{wanted}' but provided type is '{self.resolved(given)}'"
                raise CelSyntaxError(f"expected type of field '{field_name}' is {shown}", places[place])
        return JSON_PATCH if patch else Type("object", name=name, fields=_AnyField())

    def _given(self, part: Node, scope: Mapping[str, Type], optional: bool) -> Type:
        found = self.check(part, scope)
        if not optional:
            return found
        inner = self._fresh()
        if not self.assignable(optional_of(inner), found):
            raise CelSyntaxError(f"expected type 'optional_type' but found '{self.resolved(found)}'", part.at)
        return inner

    def _join_all(self, wanted: Type, given: Sequence[Type], parts: Sequence[Node]) -> None:
        """Items of a literal are all of one type; one that is not known is another than one that is."""
        for one, part in zip(given, parts, strict=True):
            self._join(wanted, one, part)
        kinds = [self.resolved(one) for one in given]
        for kind, part in zip(kinds, parts, strict=True):
            if (kind.kind == "dyn") != (kinds[0].kind == "dyn") and not self.mixed:
                raise CelSyntaxError(f"expected type '{kinds[0]}' but found '{kind}'", part.at)

    def _join(self, wanted: Type, given: Type, part: Node) -> None:
        if not self.assignable(wanted, given) and not self.mixed:
            text = f"expected type '{self.resolved(wanted)}' but found '{self.resolved(given)}'"
            raise CelSyntaxError(text, part.at)

    # ---- calls

    def _call(self, node: Node, scope: Mapping[str, Type]) -> Type:
        self._check_literal(node, node.parts)
        found = self._applied(node.value, node, scope)
        self._folded(node)
        return found

    def _method(self, node: Node, scope: Mapping[str, Type]) -> Type:
        self._check_literal(node, node.parts[1:])
        before, self.mixed = self.mixed, self.mixed or node.value == "format"
        try:
            found = self._applied(node.value, node, scope, member=True)
        finally:
            self.mixed = before
        if node.value == "format" and found.kind == "string":
            self._formatted(node)
        return found

    def _folded(self, node: Node) -> None:
        """A conversion of a literal is made when the program is: its error is one of the definition."""
        inner = node.parts[0] if len(node.parts) == 1 else None
        if node.value not in _CONVERSIONS or inner is None or inner.sort != "literal":
            return
        try:
            functions.caller(node.value, False, 1)(inner.value)
        except CelError as error:
            self.unfit = self.unfit or f"program instantiation failed: {error}"

    def _formatted(self, node: Node) -> None:
        """Clauses of a literal template against the types of literal values."""
        if len(node.parts) != 2 or [one.sort for one in node.parts] != ["literal", "list"]:
            return
        template, values = node.parts
        stand_ins = [_STAND_INS.get(self.resolved(self.types[id(one)]).kind, _UNKNOWN) for one in values.parts]
        try:
            clauses(template.value, stand_ins)
        except CelError as error:
            raise CelSyntaxError(str(error), values.at) from None

    def _check_literal(self, node: Node, given: tuple[Node, ...]) -> None:
        """A literal that is no pattern, duration or timestamp is found at once."""
        check = _LITERAL_CHECKS.get(node.value)
        if check is None or not given or given[-1].sort != "literal" or not isinstance(given[-1].value, str):
            return
        try:
            check(given[-1].value)
        except (CelError, regexp.RegexpError):
            raise CelSyntaxError(f"invalid {node.value} argument", given[-1].at) from None

    def _applied(self, name: str, node: Node, scope: Mapping[str, Type], *, member: bool = False) -> Type:
        given = [self.check(part, scope) for part in node.parts]
        if name not in functions.TABLE or (name.startswith("jsonpatch.") and not self.patches):
            raise CelSyntaxError(f"undeclared reference to '{name}' (in container '')", node.at)
        results: list[Type] = []
        for one in functions.overloads(name, member, len(given)):
            self.fresh += 1
            wanted = [self._renamed(part, self.fresh) for part in one.arguments]
            before = dict(self.bound)
            if all(map(self.assignable, wanted, given)):
                results.append(self._renamed(one.result, self.fresh))
                if not any(self._loose(part) for part in given):
                    break  # nothing is left open: no other overload can fit
            else:
                self.bound = before
        if not results:
            shown = [str(self.resolved(one)) for one in given]
            call = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            raise CelSyntaxError(f"found no matching overload for '{name}' applied to '{call}'", node.at)
        kinds = {str(self.resolved(one)) for one in results}
        return self.resolved(results[0]) if len(kinds) == 1 else DYN

    def _loose(self, one: Type) -> bool:
        one = self.resolved(one)
        return one.kind in {"dyn", "param"} or any(map(self._loose, one.parts))

    def _macro(self, node: Node, scope: Mapping[str, Type]) -> Type:
        (name, names), (target, *bodies) = node.value, node.parts
        over = self.resolved(self.check(target, scope))
        if name in {"optMap", "optFlatMap"}:
            return self._optional_macro(node, over, scope)
        first, second = self._range(over, node)
        kinds = (first, second) if len(names) == 2 else (first if over.kind == "map" else second,)
        inner = {**scope, **dict(zip(names, kinds, strict=True))}
        found = [self.resolved(self.check(body, inner)) for body in bodies]
        quantified = name in {"all", "exists", "exists_one", "existsOne", "filter"}
        for body, kind in zip(bodies, found, strict=True):
            last = body is bodies[-1]
            if (quantified or not last) and not self.assignable(BOOL, kind):
                raise CelSyntaxError(f"expected type 'bool' but found '{kind}'", body.at)
        return self._made(name, kinds, (first, over), found[-1], bodies[-1])

    def _made(self, name: str, kinds: tuple[Type, ...], over: tuple[Type, Type], last: Type, body: Node) -> Type:
        if name in {"map", "transformList"}:
            return list_of(last)
        if name in {"filter", "sortBy"}:
            return list_of(kinds[0]) if name == "filter" or over[1].kind != "list" else over[1]
        if name == "transformMap":
            return map_of(over[0], last)
        if name == "transformMapEntry":
            wanted = map_of(self._fresh(), self._fresh())
            self._join(wanted, last, body)
            return self.resolved(wanted)
        return BOOL

    def _range(self, over: Type, node: Node) -> tuple[Type, Type]:
        if over.kind == "list":
            return INT, over.parts[0]
        if over.kind == "map":
            return over.parts[0], over.parts[1]
        if over.kind in {"dyn", "param"}:
            return DYN, DYN
        text = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        raise CelSyntaxError(text, node.parts[0].at)

    def _optional_macro(self, node: Node, over: Type, scope: Mapping[str, Type]) -> Type:
        (name, (variable,)), body = node.value, node.parts[1]
        inner = self._fresh()
        self._join(optional_of(inner), over, node.parts[0])
        found = self.check(body, {**scope, variable: self.resolved(inner)})
        if name == "optMap":
            return optional_of(found)
        self._join(optional_of(self._fresh()), found, body)
        return self.resolved(found)


for _name, _signature in (
    ("_&&_", "(bool, bool) bool"),
    ("_||_", "(bool, bool) bool"),
    ("!_", "(bool) bool"),
    ("_?_:_", "(bool, A, A) A"),
):
    functions.define(_name, _signature, run=lambda *_: written("dyn"))  # run.py has its own ways for these
