"""Where pods and pod templates say which group they belong to, in objects of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from kohort.api.convert.identity import renew
from kohort.api.convert.work import Work
from kohort.api.kind import Object

Spec = dict[str, Any]


def specs(value: Any, path: str = "") -> Iterator[tuple[str, Spec]]:
    """Every pod spec within a value, with its path. A dictionary with a list of containers is one."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield path, value
            return
        for name, item in value.items():
            yield from specs(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from specs(item, f"{path}[{index}]")


def links(obj: Object, field: str) -> Iterator[tuple[str, Spec, Spec]]:
    """(path, pod spec, link) of every pod spec that has a link of this name."""
    for path, spec in specs(obj):
        if isinstance(spec.get(field), dict) and spec[field]:
            yield f"{path}.{field}" if path else field, spec, spec[field]


def relinked(obj: Object, field: str, work: Work, link: Callable[[str, Spec], Spec | None]) -> Object:
    """A copy of the object in which each pod spec with `field` has what `link(path, value)` gives in its place.

    None from `link`: it could not be done, and has been said. An object without the field is returned as it is.
    """
    if next(links(obj, field), None) is None:
        return obj
    copy = deepcopy(obj)
    for path, spec, value in links(copy, field):
        replace(spec, field, link(path, value) or {})
    renew(copy, work)
    return copy


def replace(members: Spec, old: str, new: Spec) -> None:
    """Put other members in the place of one, so that the order of the rest stays. In place."""
    items = list(members.items())
    members.clear()
    for name, value in items:
        if name == old:
            members.update(new)
        else:
            members[name] = value
