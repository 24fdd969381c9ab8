"""Label selectors: their format, and whether one picks a set of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, at, forbidden, invalid, required
from kohort.api.meta import check_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def check_selector(selector: Mapping[str, Any] | None, path: str) -> Iterator[FieldError]:
    """A metav1.LabelSelector."""
    chosen = selector or {}
    yield from check_labels(chosen.get("matchLabels") or {}, at(path, "matchLabels"))
    for index, expression in enumerate(chosen.get("matchExpressions") or []):
        yield from _expression(expression, f"{at(path, 'matchExpressions')}[{index}]")


def _expression(expression: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    if operator in {"In", "NotIn"} and not values:
        yield required(at(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"} and values:
        yield forbidden(at(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in _OPERATORS:
        yield invalid(at(path, "operator"), operator, "not a valid selector operator")
    problem = formats.label_key(expression.get("key") or "")
    if problem:
        yield invalid(at(path, "key"), expression.get("key") or "", problem)


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """Whether a selector picks these labels. None picks nothing, an empty one everything."""
    if selector is None:
        return False
    found = labels or {}
    wanted = selector.get("matchLabels") or {}
    if any(found.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(expression, found) for expression in selector.get("matchExpressions") or [])


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
