"""The value of an expression. Values are those of JSON; integers and doubles are two things, as CEL has it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kohort.apimachinery import regexp
from kohort.server.crd.cel.syntax import Node

_MOST_STEPS: Final = 200_000
_LIMIT: Final = 1 << 63
_UNESCAPED: Final = {
    "__underscores__": "__",
    "__dot__": ".",
    "__dash__": "-",
    "__slash__": "/",
}
_ESCAPED: Final = re.compile("|".join(_UNESCAPED))
_KEYWORDS: Final = (
    *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
    *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
)
_KEYWORD: Final = re.compile(f"__({'|'.join(_KEYWORDS)})__")


class CelError(ValueError):
    """The expression has no value for these inputs."""


class Optional:
    """oldSelf of a rule that says optionalOldSelf."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value


def evaluate(tree: Node, variables: Mapping[str, Any]) -> Any:
    try:
        return _Run().value(tree, variables)
    except RecursionError:
        raise CelError("the expression is too deep") from None


def unescaped(name: str) -> str:
    """A field as a schema has it, from the name that a rule must use."""
    keyword = _KEYWORD.fullmatch(name)
    if keyword is not None:
        return keyword[1]
    return _ESCAPED.sub(lambda found: _UNESCAPED[found[0]], name) if "__" in name else name


class _Run:
    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def value(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise CelError("the expression takes too many steps")
        handler: Callable[[Node, Mapping[str, Any]], Any] = getattr(self, f"_{tree.sort}")
        return handler(tree, variables)

    def _literal(self, tree: Node, _: Mapping[str, Any]) -> Any:
        return tree.value

    def _name(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        if tree.value not in variables:
            raise CelError(f"undeclared reference to '{tree.value}'")
        return variables[tree.value]

    def _member(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        target, name = self.value(tree.parts[0], variables), tree.value
        found = _look(target, name)
        if found is _MISSING:
            raise CelError(f"no such key: {name}")
        return found

    def _has(self, tree: Node, variables: Mapping[str, Any]) -> bool:
        inner = tree.parts[0]
        return _look(self.value(inner.parts[0], variables), inner.value) is not _MISSING

    def _index(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        target, index = (self.value(part, variables) for part in tree.parts)
        if isinstance(target, dict):
            if index not in target:
                raise CelError(f"no such key: {index}")
            return target[index]
        if isinstance(target, list) and isinstance(index, int) and not isinstance(index, bool):
            if 0 <= index < len(target):
                return target[index]
            raise CelError(f"index out of bounds: {index}")
        raise CelError("no such overload: index")

    def _list(self, tree: Node, variables: Mapping[str, Any]) -> list[Any]:
        return [self.value(part, variables) for part in tree.parts]

    def _map(self, tree: Node, variables: Mapping[str, Any]) -> dict[Any, Any]:
        values = [self.value(part, variables) for part in tree.parts]
        return dict(zip(values[::2], values[1::2], strict=True))

    def _not(self, tree: Node, variables: Mapping[str, Any]) -> bool:
        return not _bool(self.value(tree.parts[0], variables))

    def _neg(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        value = self.value(tree.parts[0], variables)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CelError("no such overload: -")
        return -value

    def _choice(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        condition, yes, no = tree.parts
        return self.value(yes if _bool(self.value(condition, variables)) else no, variables)

    def _binary(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        left, right = tree.parts
        if tree.value in {"&&", "||"}:
            return self._logic(left, right, variables, decides=tree.value == "||")
        one, other = self.value(left, variables), self.value(right, variables)
        return _OPERATORS[tree.value](one, other)

    def _logic(self, left: Node, right: Node, variables: Mapping[str, Any], *, decides: bool) -> bool:
        """Either side may decide alone; an error counts only if the other does not."""
        try:
            if _bool(self.value(left, variables)) is decides:
                return decides
        except CelError:
            if _bool(self.value(right, variables)) is decides:
                return decides
            raise
        return _bool(self.value(right, variables))

    def _macro(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        (name, variable), (target, *bodies) = tree.value, tree.parts
        items = self.value(target, variables)
        if not isinstance(items, list | dict):
            raise CelError(f"no such overload: {name}")

        def each(body: Node, item: Any) -> Any:
            return self.value(body, {**variables, variable: item})

        if name == "map":
            *condition, result = bodies
            return [each(result, item) for item in items if not condition or _bool(each(condition[0], item))]
        if name == "filter":
            return [item for item in items if _bool(each(bodies[0], item))]
        return _quantified(name, [partial(each, bodies[0], item) for item in items])

    def _call(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        return _FUNCTIONS[tree.value](self.value(tree.parts[0], variables))

    def _method(self, tree: Node, variables: Mapping[str, Any]) -> Any:
        target, *arguments = (self.value(part, variables) for part in tree.parts)
        if tree.value == "size" and not arguments:
            return _size(target)
        try:
            return _METHODS[tree.value](target, *arguments)
        except (TypeError, AttributeError, KeyError, IndexError):
            raise CelError(f"no such overload: {tree.value}") from None


def _quantified(name: str, checks: list[Callable[[], Any]]) -> bool:
    if name in {"exists_one", "existsOne"}:
        return sum(_bool(check()) for check in checks) == 1
    decides, failed = name == "exists", None
    for check in checks:
        try:
            if _bool(check()) is decides:
                return decides
        except CelError as error:
            failed = error
    if failed is not None:
        raise failed
    return not decides


_MISSING: Final = object()


def _look(target: Any, name: str) -> Any:
    if isinstance(target, Optional):
        raise CelError("an optional value has no members: ask hasValue(), then value()")
    if not isinstance(target, dict):
        raise CelError(f"no such overload: member {name}")
    return target.get(unescaped(name), _MISSING)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError("expected a boolean")
    return value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _ordered(sign: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(one: Any, other: Any) -> bool:
        same = (_number(one) and _number(other)) or (type(one) is type(other) and isinstance(one, str | bool))
        if not same:
            raise CelError("no such overload: comparison")
        return sign(one, other)

    return compare


def _in(one: Any, other: Any) -> bool:
    if isinstance(other, dict):
        return one in other
    if isinstance(other, list):
        return any(equal(one, item) for item in other)
    raise CelError("no such overload: in")


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        return one + other
    return _arithmetic(operator.add)(one, other)


def _arithmetic(sign: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compute(one: Any, other: Any) -> Any:
        if not (_number(one) and _number(other)) or isinstance(one, float) != isinstance(other, float):
            raise CelError("no such overload: arithmetic")
        try:
            found = sign(one, other)
        except ZeroDivisionError:
            raise CelError("division by zero") from None
        if isinstance(found, int) and not -_LIMIT <= found < _LIMIT:
            raise CelError("integer overflow")
        return found

    return compute


def _divide(one: Any, other: Any) -> Any:
    """Integers are cut towards zero."""
    if isinstance(one, float):
        return one / other
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _modulo(one: Any, other: Any) -> Any:
    if isinstance(one, float):
        raise CelError("no such overload: %")
    return one - other * _divide(one, other)


_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": equal,
    "!=": lambda one, other: not equal(one, other),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": _in,
    "+": _add,
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(_divide),
    "%": _arithmetic(_modulo),
}


# ---- functions


def _size(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise CelError("no such overload: size")
    return len(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise CelError("no such overload: string")


def _converted(sort: type) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        try:
            return sort(value)
        except (TypeError, ValueError):
            raise CelError(f"cannot convert to {sort.__name__}") from None

    return convert


def _truth(value: Any) -> bool:
    words = {"true": True, "false": False, True: True, False: False}
    if not isinstance(value, bool | str) or value not in words:
        raise CelError("cannot convert to bool")
    return words[value]


_FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "size": _size,
    "string": _text,
    "int": _converted(int),
    "double": _converted(float),
    "bool": _truth,
    "dyn": lambda value: value,
}


def _matches(text: Any, pattern: Any) -> bool:
    try:
        return regexp.search(_string(pattern), _string(text))
    except (regexp.RegexpError, regexp.TooLongError) as error:
        raise CelError(str(error)) from None


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise CelError("no such overload: expected a string")
    return value


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise CelError("no such overload: expected a list")
    return value


def _substring(text: Any, start: int, end: int | None = None) -> str:
    whole = _string(text)
    last = len(whole) if end is None else end
    if not 0 <= start <= last <= len(whole):
        raise CelError("index out of range")
    return whole[start:last]


def _extreme(pick: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def find(items: Any) -> Any:
        if not _items(items):
            raise CelError("the list is empty")
        return pick(items)

    return find


def _optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise CelError("no such overload: expected an optional value")
    return value


def _required(value: Any) -> Any:
    found = _optional(value).value
    if found is None:
        raise CelError("optional.none() dereference")
    return found


_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "startsWith": lambda text, part: _string(text).startswith(_string(part)),
    "endsWith": lambda text, part: _string(text).endswith(_string(part)),
    "contains": lambda text, part: _string(part) in _string(text),
    "matches": _matches,
    "lowerAscii": lambda text: "".join(sign.lower() if sign.isascii() else sign for sign in _string(text)),
    "upperAscii": lambda text: "".join(sign.upper() if sign.isascii() else sign for sign in _string(text)),
    "trim": lambda text: _string(text).strip(),
    "split": lambda text, by: _string(text).split(_string(by)) if by else list(_string(text)),
    "join": lambda items, by="": _string(by).join(map(_string, _items(items))),
    "replace": lambda text, old, new: _string(text).replace(_string(old), _string(new)),
    "substring": _substring,
    "indexOf": lambda whole, part: whole.find(part) if isinstance(whole, str) else _place(whole, part),
    "lastIndexOf": lambda text, part: _string(text).rfind(_string(part)),
    "min": _extreme(min),
    "max": _extreme(max),
    "sum": lambda items: sum(_items(items)),
    "isSorted": lambda items: all(one <= other for one, other in zip(_items(items), items[1:], strict=False)),
    "hasValue": lambda value: _optional(value).value is not None,
    "value": _required,
    "orValue": lambda value, other: other if _optional(value).value is None else value.value,
}


def _place(items: Any, item: Any) -> int:
    return next((place for place, one in enumerate(_items(items)) if equal(one, item)), -1)
