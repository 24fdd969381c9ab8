"""The value of an expression, and what it cost. A tree becomes nested functions once; these are run for each value.

Costs are those of upstream: one for a name or a member, by the size of the values for calls that read them. They are
what bounds a rule: nothing that takes long is done before it is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from kohort.cel import costs, functions
from kohort.cel.folds import FOLDS
from kohort.cel.syntax import Node, names
from kohort.cel.types import kind_of
from kohort.cel.values import (
    MISSING,
    NONE,
    CelError,
    CostError,
    Frame,
    Lookup,
    NoOverloadError,
    Optional,
    Step,
    Struct,
    TypeValue,
    boolean,
)

PER_CALL: Final = 1_000_000
_UNESCAPED: Final = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
_CONVERSIONS: Final = frozenset({"int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp"})
_SYMBOLS: Final = {"in": "@in"}
REQUEST_RESOURCE: Final = ("authorizer", "requestResource")  # one variable, whose name has a dot
_TYPES: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"}) | {
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
}


def evaluate(tree: Node, variables: Mapping[str, Any], budget: int = PER_CALL) -> Any:
    return run(tree, variables, budget)[0]


def run(tree: Node, variables: Mapping[str, Any], budget: int = PER_CALL) -> tuple[Any, int]:
    """The value and its cost. An error carries the cost as `spent`."""
    frame = Frame(variables, budget)
    try:
        return program(tree)(frame), budget - frame.left
    except RecursionError:
        raise CelError("the expression is too deep") from None
    except CelError as error:
        error.spent = budget - frame.left
        raise


@lru_cache(maxsize=4096)
def program(tree: Node) -> Step:
    made: Step = _BUILDERS[tree.sort](tree)
    literal = len(tree.parts) == 1 and tree.parts[0].sort == "literal"
    converts = tree.sort == "call" and tree.value in _CONVERSIONS and literal
    return _free(made) if converts or (tree.sort in {"list", "map"} and _constant(tree)) else made


def unescaped(name: str) -> str:
    """A property as a schema has it, from the name that a rule must use."""
    for mark, sign in _UNESCAPED.items():
        name = name.replace(mark, sign)
    return name[2:-2] if name.startswith("__") and name.endswith("__") and len(name) > 4 else name


def _look(target: Any, name: str) -> Any:
    if not isinstance(target, dict):
        if isinstance(target, Lookup):
            return target.look(name)
        raise NoOverloadError("member of a list") if isinstance(target, list) else CelError(f"no such key: {name}")
    found = target.get(name)
    if found is None and "__" in name:
        found = target.get(unescaped(name))
    return MISSING if found is None else found  # null is no value of a field


# ---- one builder for each sort of node


def _literal(tree: Node) -> Step:
    value = tree.value
    return lambda _: value


def _name(tree: Node) -> Step:
    name = tree.value

    def read(frame: Frame) -> Any:
        frame.left -= 1
        found = frame.names.get(name, MISSING)
        if found is MISSING:
            if name in _TYPES:
                return TypeValue(name)
            raise CelError(f"undeclared reference to '{name}'")
        return found

    return read


def _member(tree: Node) -> Step:
    if (tree.parts[0].value, tree.value) == REQUEST_RESOURCE:
        return _name(Node("name", ".".join(REQUEST_RESOURCE), (), tree.at))
    target, name = program(tree.parts[0]), tree.value

    def read(frame: Frame) -> Any:
        one = target(frame)
        frame.left -= 1
        if isinstance(one, Optional):
            return _optional_look(one, name)
        found = _look(one, name)
        if found is MISSING:
            raise CelError(f"no such key: {name}")
        return found

    return read


def _optional_look(one: Any, name: str) -> Optional:
    if isinstance(one, Optional):
        if not one.present:
            return NONE
        one = one.value
    found = _look(one, name)
    return NONE if found is MISSING else Optional(found)


def _optional_member(tree: Node) -> Step:
    target, name = program(tree.parts[0]), tree.value

    def read(frame: Frame) -> Optional:
        one = target(frame)
        frame.pay(1)
        return _optional_look(one, name)

    return read


def _has(tree: Node) -> Step:
    inner = tree.parts[0]
    target, name = program(inner.parts[0]), inner.value

    def test(frame: Frame) -> bool:
        one = target(frame)
        if isinstance(one, Optional):
            return _optional_look(one, name).present
        return _look(one, name) is not MISSING

    return test


def _constant(tree: Node) -> bool:
    return tree.sort == "literal" or (
        tree.sort in {"list", "map"} and not tree.value and all(map(_constant, tree.parts))
    )


def _free(step: Step) -> Step:
    """What is made of literals is made once, and costs nothing."""
    try:
        value = step(Frame({}, PER_CALL))
    except CelError:
        return step
    return lambda _: value


def _list(tree: Node) -> Step:
    parts, optional = [program(part) for part in tree.parts], tree.value or ()

    def make(frame: Frame) -> list[Any]:
        frame.pay(costs.LIST)
        found = [part(frame) for part in parts]
        if not optional:
            return found
        kept = [(place in optional, one) for place, one in enumerate(found)]
        return [one.value if maybe else one for maybe, one in kept if not maybe or one.present]

    return make


def _map(tree: Node) -> Step:
    parts, optional = [program(part) for part in tree.parts], tree.value or ()

    def make(frame: Frame) -> dict[Any, Any]:
        frame.pay(costs.MAP)
        found: dict[Any, Any] = {}
        for place in range(0, len(parts), 2):
            name, value = parts[place](frame), parts[place + 1](frame)
            if isinstance(name, list | dict | float) or name is None:
                raise CelError("unsupported key type")
            if place not in optional:
                found[name] = value
            elif value.present:
                found[name] = value.value
        return found

    return make


def _struct(tree: Node) -> Step:
    """An object of the patch that a mutating admission policy makes."""
    (kind, fields, optional, _), steps = tree.value, [program(part) for part in tree.parts]

    def make(frame: Frame) -> Struct:
        frame.pay(costs.STRUCT)
        found = Struct(kind)
        for place, (name, step) in enumerate(zip(fields, steps, strict=True)):
            value = step(frame)
            if place not in optional:
                found[name] = value
            elif value.present:
                found[name] = value.value
        return found

    return make


def _not(tree: Node) -> Step:
    inner = program(tree.parts[0])

    def negate(frame: Frame) -> bool:
        found = not boolean(inner(frame))
        frame.pay(1)
        return found

    return negate


def _choice(tree: Node) -> Step:
    condition, yes, no = map(program, tree.parts)
    return lambda frame: (yes if boolean(condition(frame)) else no)(frame)


def _binary(tree: Node) -> Step:
    if tree.value in {"&&", "||"}:
        return _logic(tree)
    return _called(_SYMBOLS.get(tree.value, f"_{tree.value}_"), tree, member=False)


def _logic(tree: Node) -> Step:
    """Either side may decide alone; an error counts only if the other does not."""
    left, right = map(program, tree.parts)
    decides = tree.value == "||"

    def decide(frame: Frame) -> bool:
        try:
            if boolean(left(frame)) is decides:
                return decides
        except CostError:
            raise
        except CelError:
            if boolean(right(frame)) is decides:
                return decides
            raise
        return boolean(right(frame))

    return decide


def _called(name: str, tree: Node, *, member: bool) -> Step:
    parts = [program(part) for part in tree.parts]
    try:
        call, cost = functions.caller(name, member, len(parts)), costs.of(name)
    except CelError as error:
        text = str(error)

        def refuse(_: Frame) -> Any:
            raise CelError(text)

        return refuse

    if len(parts) == 2:  # operators, most of them
        one, other = parts

        def run_pair(frame: Frame) -> Any:
            values = [one(frame), other(frame)]
            frame.left -= cost(values)
            if frame.left < 0:
                raise CostError
            return call(*values)

        return run_pair

    def run_call(frame: Frame) -> Any:
        values = [part(frame) for part in parts]
        frame.pay(cost(values))
        return call(*values)

    return run_call


# ---- macros


def _macro(tree: Node) -> Step:
    (name, variables), (target, *bodies) = tree.value, tree.parts
    over, steps = program(target), [program(body) for body in bodies]
    if name in {"optMap", "optFlatMap"}:
        return _optional_macro(over, variables[0], steps[0], flat=name == "optFlatMap")
    fold = FOLDS[name]

    def run_macro(frame: Frame) -> Any:
        items = over(frame)
        if not isinstance(items, list | dict):
            raise NoOverloadError(f"{name}() of a {kind_of(items)}")
        kept = {one: frame.names.get(one, MISSING) for one in variables}
        frame.pay(1)
        try:
            return fold(frame, items, variables, steps)
        finally:
            for one, before in kept.items():
                if before is MISSING:
                    frame.names.pop(one, None)
                else:
                    frame.names[one] = before

    return run_macro


def _optional_macro(over: Step, variable: str, body: Step, *, flat: bool) -> Step:
    def run_macro(frame: Frame) -> Optional:
        one = over(frame)
        if not isinstance(one, Optional):
            raise NoOverloadError("an optional value is wanted")
        frame.pay(costs.ALL)
        if not one.present:
            return NONE
        before = frame.names.get(variable, MISSING)
        frame.names[variable] = one.value
        try:
            found = body(frame)
        finally:
            frame.names.pop(variable)
            if before is not MISSING:
                frame.names[variable] = before
        return found if flat else Optional(found)

    return run_macro


_BUILDERS: Final[dict[str, Callable[[Node], Step]]] = {
    "literal": _literal,
    "name": _name,
    "member": _member,
    "optional_member": _optional_member,
    "has": _has,
    "list": _list,
    "map": _map,
    "struct": _struct,
    "not": _not,
    "choice": _choice,
    "binary": _binary,
    "macro": _macro,
    "neg": lambda tree: _called("-_", tree, member=False),
    "index": lambda tree: _called("_[_]", tree, member=False),
    "optional_index": lambda tree: _called("_[?_]", tree, member=False),
    "call": lambda tree: _called(tree.value, tree, member=False),
    "method": lambda tree: _called(tree.value, tree, member=True),
}
__all__ = ["PER_CALL", "evaluate", "names", "program", "run", "unescaped"]
