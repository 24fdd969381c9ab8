"""Functions of lists (Kubernetes' and the extension's), sets, and optional values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from kohort.cel.functions import define, defined
from kohort.cel.lib_core import contained, whole
from kohort.cel.types import kind_of
from kohort.cel.values import NONE, CelError, Duration, NoOverloadError, Optional, Uint, equal, key

_SUMMED: Final = ("int", "uint", "double", "duration")
_COMPARED: Final = (*_SUMMED, "bool", "string", "bytes", "timestamp")
_MOST_ITEMS: Final = 1_000_000


def _alike(items: list[Any], kinds: tuple[str, ...]) -> list[Any]:
    found = {kind_of(one) for one in items}
    if len(found) > 1 or not found <= set(kinds):
        raise NoOverloadError(f"a list of {', '.join(sorted(found))}")
    return items


@defined("isSorted", *(f"list({one}).() bool" for one in _COMPARED))
def _is_sorted(items: list[Any]) -> bool:
    _alike(items, _COMPARED)
    return all(one <= other for one, other in itertools.pairwise(items))


@defined("sum", *(f"list({one}).() {one}" for one in _SUMMED))
def _sum(items: list[Any]) -> Any:
    _alike(items, _SUMMED)
    if items and isinstance(items[0], Duration):
        return Duration(whole(sum(one.nanos for one in items)))
    found = sum(items)
    return whole(Uint(found) if items and isinstance(items[0], Uint) else found) if isinstance(found, int) else found


def _extreme(pick: Callable[[list[Any]], Any], name: str) -> None:
    def find(items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        return pick(_alike(items, _COMPARED))

    define(name, *(f"list({one}).() {one}" for one in _COMPARED), run=find)


_extreme(min, "min")
_extreme(max, "max")


@defined("indexOf", "list(A).(A) int")
def _index(items: list[Any], item: Any) -> int:
    return next((place for place, one in enumerate(items) if equal(one, item)), -1)


@defined("lastIndexOf", "list(A).(A) int")
def _last_index(items: list[Any], item: Any) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if equal(items[place], item)), -1)


# ---- the extension, version 3


@defined("slice", "list(A).(int, int) list(A)")
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@defined("flatten", "list(list(A)).() list(A)", "list(dyn).(int) list(dyn)")
def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    found: list[Any] = []
    for one in items:
        found += _flatten(one, depth - 1) if isinstance(one, list) and depth else [one]
    return found


@defined("sort", *(f"list({one}).() list({one})" for one in _COMPARED))
def _sort(items: list[Any]) -> list[Any]:
    return sorted(_alike(items, _COMPARED))


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """What sortBy() makes: items in the order of their keys."""
    _alike(keys, _COMPARED)
    return [items[place] for place in sorted(range(len(items)), key=lambda place: keys[place])]


@defined("lists.range", "(int) list(int)")
def _range(count: int) -> list[int]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    if count > _MOST_ITEMS:
        raise CelError(f"lists.range: size {count} exceeds maximum allowed ({_MOST_ITEMS})")
    return list(range(count))


@defined("distinct", "list(A).() list(A)")
def _distinct(items: list[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for one in items:
        found.setdefault(key(one), one)
    return list(found.values())


define("reverse", "list(A).() list(A)", run=lambda items: items[::-1])
define("first", "list(A).() optional(A)", run=lambda items: Optional(items[0]) if items else NONE)
define("last", "list(A).() optional(A)", run=lambda items: Optional(items[-1]) if items else NONE)


# ---- sets


def _within(items: list[Any]) -> Callable[[Any], bool]:
    known = {key(one) for one in items}
    return lambda one: key(one) in known


@defined("sets.contains", "(list(A), list(A)) bool")
def _contains(items: list[Any], part: list[Any]) -> bool:
    return all(map(_within(items), part))


define(
    "sets.equivalent",
    "(list(A), list(A)) bool",
    run=lambda one, other: _contains(one, other) and _contains(other, one),
)
define("sets.intersects", "(list(A), list(A)) bool", run=lambda one, other: any(map(_within(one), other)))


# ---- optional values


def _zero(value: Any) -> bool:
    return value is None or value == 0 or value in ("", b"", [], {}) or value == Duration(0)


@defined("value", "optional(A).() A")
def _value(one: Optional) -> Any:
    if not one.present:
        raise CelError("optional.none() dereference")
    return one.value


@defined("unwrapOpt", "list(optional(A)).() list(A)")
def _unwrap(items: list[Any]) -> list[Any]:
    return [one.value for one in items if one.present]


define("optional.unwrap", "(list(optional(A))) list(A)", run=_unwrap)
define("optional.of", "(A) optional(A)", run=Optional)
define("optional.none", "() optional(A)", run=lambda: NONE)
define("optional.ofNonZeroValue", "(A) optional(A)", run=lambda value: NONE if _zero(value) else Optional(value))
define("hasValue", "optional(A).() bool", run=lambda one: one.present)
define("or", "optional(A).(optional(A)) optional(A)", run=lambda one, other: one if one.present else other)
define("orValue", "optional(A).(A) A", run=lambda one, other: one.value if one.present else other)


@defined("_[?_]", "(list(A), int) optional(A)", "(map(A, B), A) optional(B)")
@defined("_[?_]", "(optional(list(A)), int) optional(A)", "(optional(map(A, B)), A) optional(B)")
def optional_item(target: Any, index: Any) -> Optional:
    if isinstance(target, Optional):
        if not target.present:
            return NONE
        target = target.value
    if isinstance(target, dict):
        return Optional(target[index]) if contained(index, target) else NONE
    return Optional(target[index]) if isinstance(target, list) and 0 <= index < len(target) else NONE


define("_[_]", "(optional(list(A)), int) optional(A)", "(optional(map(A, B)), A) optional(B)", run=optional_item)
