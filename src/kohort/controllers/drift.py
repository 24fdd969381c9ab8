"""How a stored Workload or group differs from the wanted one: minimums, which may follow, and all else.

What the server fills in is no difference; a field that decides where and when pods start is one even if it was added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import meta_of

MINIMUM: Final = "minCount"
# No server fills these in: where one is stored that nobody wants, somebody has put it there.
DECISIVE: Final = frozenset(
    (
        "policy",
        "schedulingPolicy",
        "schedulingConstraints",
        "parentCompositePodGroupName",
        "podGroupTemplateRef",
        "workloadRef",
    )
)


def minimum(block: Mapping[str, Any]) -> int | None:
    """The minCount of a PodGroup's spec or of a template; None: no gang."""
    gang = (block.get("schedulingPolicy") or {}).get("gang")
    return None if gang is None else gang.get(MINIMUM)


def covers(stored: Any, wanted: Any) -> bool:
    """Whether all that is wanted is stored; a server adds defaults."""
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return all(covers(stored.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(stored, list):
        return len(wanted) == len(stored) and all(map(covers, stored, wanted))
    return bool(wanted == stored)


# ---- minimums


@dataclass(frozen=True, slots=True)
class Resize:
    """`spec`: the merge patch of the spec; `old`, `new`: the first minimum that changes, for people."""

    spec: dict[str, Any]
    old: int
    new: int


def resize(wanted: Object, stored: Object) -> Resize | None:
    """What brings the minimums of leaves and of their templates in line; None: they are."""
    changes: list[tuple[int, int]] = []
    had = stored.get("spec") or {}
    spec = _with_minimums(had, wanted["spec"], changes)
    if not changes:
        return None
    # A list is one value in a merge patch: what is in it is said again.
    return Resize({name: value for name, value in spec.items() if had.get(name) != value}, *changes[0])


def _with_minimums(stored: Any, wanted: Any, changes: list[tuple[int, int]]) -> Any:
    """What is stored, with the minimums that are wanted; templates are found by name."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        return {name: _minimum(name, value, wanted.get(name), changes) for name, value in stored.items()}
    if isinstance(stored, list) and isinstance(wanted, list):
        named = {one.get("name"): one for one in wanted if isinstance(one, dict)}
        return [
            _with_minimums(one, named.get(one.get("name")), changes) if isinstance(one, dict) else one for one in stored
        ]
    return stored


def _minimum(name: str, stored: Any, wanted: Any, changes: list[tuple[int, int]]) -> Any:
    if name != MINIMUM:
        return _with_minimums(stored, wanted, changes)
    if wanted is None or wanted == stored:
        return stored
    changes.append((stored, wanted))
    return wanted


# ---- all else


def label_changes(wanted: Object, stored: Object) -> dict[str, str]:
    """Labels that are wanted and not stored so; others are left alone."""
    found = meta_of(stored).get("labels") or {}
    return {key: value for key, value in (meta_of(wanted).get("labels") or {}).items() if found.get(key) != value}


def differences(wanted: Object, stored: Object, *, minimums: bool = True) -> list[str]:
    """Places of the spec that are not as wanted. `minimums` False: those of leaves follow, and are not looked at."""
    return list(_within(wanted["spec"], stored.get("spec") or {}, "spec", minimums, exact=False))


def _within(wanted: Any, found: Any, path: str, minimums: bool, *, exact: bool) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, value in wanted.items():
            if name != MINIMUM or minimums:
                inner = exact or name in DECISIVE
                yield from _within(value, found.get(name), f"{path}.{name}", minimums, exact=inner)
        for name, value in found.items():
            if name not in wanted and (value is not None if exact else value and name in DECISIVE):
                yield f"{path}.{name} was added"
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (one, other) in enumerate(_paired(wanted, found)):
            yield from _within(one, other, f"{path}[{index}]", minimums, exact=exact)
    elif wanted != found:
        yield f"{path} {_said(found)}"


def _paired(wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Templates by name, anything else by position."""
    named = {one["name"]: one for one in found if isinstance(one, dict) and "name" in one}
    for one, other in zip(wanted, found, strict=True):
        yield one, named.get(one["name"]) if named and isinstance(one, dict) and "name" in one else other


def _said(found: Any) -> str:
    if found is None:
        return "is missing"
    return "is another" if isinstance(found, dict | list) else f"is {found!r}"
