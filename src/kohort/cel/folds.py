"""Macros that go over a list or a map: all, exists, filter, map, transformMap and their like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kohort.cel import costs
from kohort.cel.lib_lists import sorted_by
from kohort.cel.values import CelError, CostError, Frame, NoOverloadError, Step, boolean


def _each(frame: Frame, items: Any, variables: tuple[str, ...], cost: int) -> Iterator[Any]:
    """Binds the variables to one item after the other; yields the (first of the) bound values."""
    scope = frame.names
    if len(variables) == 2:
        first, second = variables
        for key, value in items.items() if isinstance(items, dict) else enumerate(items):
            frame.left -= cost
            if frame.left < 0:
                raise CostError
            scope[first], scope[second] = key, value
            yield key
        return
    (only,) = variables
    for item in items:
        frame.left -= cost
        if frame.left < 0:
            raise CostError
        scope[only] = item
        yield item


def _quantified(decides: bool) -> Callable[..., bool]:
    def fold(frame: Frame, items: Any, variables: tuple[str, ...], steps: list[Step]) -> bool:
        failed: CelError | None = None
        for _ in _each(frame, items, variables, costs.EXISTS if decides else costs.ALL):
            try:
                if boolean(steps[0](frame)) is decides:
                    frame.pay(costs.LEAVE)
                    return decides
            except CostError:
                raise
            except CelError as error:
                failed = error
        if failed is not None:
            raise failed
        return not decides

    return fold


def _one(frame: Frame, items: Any, variables: tuple[str, ...], steps: list[Step]) -> bool:
    return sum(boolean(steps[0](frame)) for _ in _each(frame, items, variables, 1)) == 1


def _filter(frame: Frame, items: Any, variables: tuple[str, ...], steps: list[Step]) -> list[Any]:
    found = []
    for item in _each(frame, items, variables, 1):
        if boolean(steps[0](frame)):
            frame.pay(costs.ADD + 1)
            found.append(item)
    return found


def _mapped(frame: Frame, items: Any, variables: tuple[str, ...], steps: list[Step]) -> list[Any]:
    *condition, result = steps
    found = []
    for _ in _each(frame, items, variables, 1):
        if not condition or boolean(condition[0](frame)):
            frame.pay(costs.ADD)
            found.append(result(frame))
    return found


def _map_of(frame: Frame, items: Any, variables: tuple[str, ...], steps: list[Step]) -> dict[Any, Any]:
    *condition, result = steps
    return {
        key: result(frame) for key in _each(frame, items, variables, 2) if not condition or boolean(condition[0](frame))
    }


def _entries(frame: Frame, items: Any, variables: tuple[str, ...], steps: list[Step]) -> dict[Any, Any]:
    *condition, result = steps
    found: dict[Any, Any] = {}
    for _ in _each(frame, items, variables, 2):
        if condition and not boolean(condition[0](frame)):
            continue
        entry = result(frame)
        if not isinstance(entry, dict):
            raise NoOverloadError("a map is wanted")
        twice = next((key for key in entry if key in found), None)
        if twice is not None:
            raise CelError(f"insert failed: key {twice} already exists")
        found.update(entry)
    return found


def _sort_by(frame: Frame, items: Any, variables: tuple[str, ...], steps: list[Step]) -> list[Any]:
    keys = [steps[0](frame) for _ in _each(frame, items, variables, 2)]
    return sorted_by(list(items), keys)


FOLDS: Final[dict[str, Callable[..., Any]]] = {
    "all": _quantified(False),
    "exists": _quantified(True),
    "exists_one": _one,
    "existsOne": _one,
    "filter": _filter,
    "map": _mapped,
    "transformList": _mapped,
    "transformMap": _map_of,
    "transformMapEntry": _entries,
    "sortBy": _sort_by,
}
