"""Quantities, and what a container asks for: names, signs, requests within limits."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, at, duplicate, invalid, not_found, required

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_PARTS: Final = re.compile(r"([+-]?[0-9.]+)(.*)")
_SUFFIXES: Final = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_STANDARD: Final = {"cpu", "memory", "ephemeral-storage"}


def amount(quantity: str | float) -> Decimal:
    """The number that a well-formed quantity stands for."""
    found = _PARTS.fullmatch(str(quantity).strip())
    if found is None:
        raise ValueError(f"{quantity!r} is not a quantity")
    number, suffix = found.groups()
    if suffix[:1] in {"e", "E"} and suffix not in _SUFFIXES:
        return Decimal(number + suffix)
    return Decimal(number) * _SUFFIXES[suffix]


def well_formed(quantity: Any) -> bool:
    return isinstance(quantity, (str, int, float)) and formats.quantity(str(quantity).strip()) is None


def check_resources(
    resources: Mapping[str, Any] | None, path: str, claims: Collection[str] | None = None
) -> Iterator[FieldError]:
    """Requests and limits of a container; `claims` are the names of the pod's resource claims."""
    if not resources:
        return
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for member, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            yield from _entry(name, quantity, f"{at(path, member)}[{name}]")
    for name, quantity in requests.items():
        yield from _within(name, quantity, limits.get(name), path)
    yield from _claims(resources.get("claims") or [], at(path, "claims"), claims)


def _entry(name: str, quantity: Any, path: str) -> Iterator[FieldError]:
    problem = formats.label_key(name)
    if problem:
        yield invalid(path, name, problem)
    elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid(path, name, "must be a standard resource for containers")
    if not well_formed(quantity):
        yield invalid(path, quantity, formats.quantity(str(quantity)) or "must be a quantity")
        return
    value = amount(quantity)
    if value < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")
    elif _countable(name) and value != value.to_integral_value():
        yield invalid(path, quantity, "must be an integer")


def _within(name: str, request: Any, limit: Any, path: str) -> Iterator[FieldError]:
    if not well_formed(request) or (limit is not None and not well_formed(limit)):
        return
    if limit is None:
        if _countable(name) or name.startswith("hugepages-"):
            yield required(at(path, "limits"), "Limit must be set for non overcommitable resources")
        return
    exact = _countable(name) or name.startswith("hugepages-")
    if exact and amount(request) != amount(limit):
        yield invalid(at(path, "requests"), request, f"must be equal to {name} limit of {limit}")
    elif amount(request) > amount(limit):
        yield invalid(at(path, "requests"), request, f"must be less than or equal to {name} limit of {limit}")


def _countable(name: str) -> bool:
    """Extended resources such as GPUs: whole numbers, never shared beyond the limit."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def _claims(wanted: list[Mapping[str, Any]], path: str, known: Collection[str] | None) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(wanted):
        place, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            yield required(place)
        elif name in seen:
            yield duplicate(place, name)
        elif known is not None and name not in known:
            yield not_found(place, name)
        seen.add(name)
