"""The format of label selectors."""

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
