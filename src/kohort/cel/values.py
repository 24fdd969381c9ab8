"""Values beyond those of JSON, and when two values are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

SECOND: Final = 1_000_000_000
NO_OVERLOAD: Final = "no such overload"  # as upstream says it


class CelError(ValueError):
    """The expression has no value for these inputs. `spent`: what it cost until then."""

    spent = 0


class NoOverloadError(CelError):
    """A function or operator is not there for values of these types; `what` is said beside upstream's words."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{NO_OVERLOAD}: {what}")


class CostError(CelError):
    """The expression costs more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Uint(int):
    """Unsigned: another type than int, with other limits."""

    __slots__ = ()


class SetList(list[Any]):
    """x-kubernetes-list-type: set. The order says nothing, and + is the union."""


class MapList(list[Any]):
    """x-kubernetes-list-type: map. The order says nothing, and + replaces items of the same keys."""

    keys: tuple[str, ...] = ()


class Struct(dict[str, Any]):
    """What Type{...} makes."""

    kind = "object"

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


@runtime_checkable
class Lookup(Protocol):
    """A value whose members are made when they are asked for: variables of an admission policy."""

    def look(self, name: str) -> Any: ...


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    nanos: int  # since 1970


@dataclass(frozen=True, slots=True)
class TypeValue:
    """What type(x) answers, and what the names of types stand for."""

    name: str


class Optional:
    """A value that may be absent: oldSelf of a rule that says optionalOldSelf, a.?b, optional.of()."""

    __slots__ = ("present", "value")

    def __init__(self, *value: Any) -> None:
        self.present = bool(value)
        self.value = value[0] if value else None


NONE: Final = Optional()


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, other: Any) -> bool:
    """Numbers of all types compare by their value; values of two types differ."""
    if isinstance(one, SetList | MapList) and isinstance(other, list):
        return _same_items(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, Optional) and isinstance(other, Optional):
        return one.present == other.present and (not one.present or equal(one.value, other.value))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _same_items(one: list[Any], other: list[Any]) -> bool:
    if len(one) != len(other):
        return False
    known = {key(item): item for item in other}
    return all(key(item) in known and equal(item, known[key(item)]) for item in one)


def key(value: Any) -> Any:
    """Something hashable that is the same for equal values."""
    if isinstance(value, dict):
        return ("map", frozenset((name, key(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(map(key, value)))
    return ("bool", value) if isinstance(value, bool) else value


def joined(one: list[Any], other: list[Any]) -> list[Any]:
    if isinstance(one, MapList):
        found: dict[Any, Any] = {_keys(one, item): item for item in one}
        found.update((_keys(one, item), item) for item in other)
        result = MapList(found.values())
        result.keys = one.keys
        return result
    if isinstance(one, SetList):
        return SetList({key(item): item for item in [*one, *other]}.values())
    return one + other


def _keys(of: MapList, item: Any) -> Any:
    return tuple(key(item.get(name)) for name in of.keys) if isinstance(item, dict) else key(item)


def size(value: Any) -> int:
    """How large the cost of a call takes a value to be."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, Optional) and value.present:
        return size(value.value)
    return 1


MISSING: Final = object()


class Frame:
    """Variables of one evaluation, and what it may still cost."""

    __slots__ = ("left", "names")

    def __init__(self, variables: Mapping[str, Any], budget: int) -> None:
        self.names = dict(variables)
        self.left = budget

    def pay(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise CostError


Step = Callable[[Frame], Any]


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NoOverloadError("a boolean is wanted")
    return value
