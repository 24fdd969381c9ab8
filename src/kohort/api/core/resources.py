"""What a container asks for: names, signs, requests within limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, at, duplicate, invalid, not_found, required
from kohort.apimachinery import quantity as quantities
from kohort.apimachinery.quantity import parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_STANDARD: Final = {"cpu", "memory", "ephemeral-storage"}


def well_formed(quantity: Any) -> bool:
    """Of the form that definitions ask for, which wants digits, and small enough to be read."""
    return quantities.well_formed(quantity) and formats.quantity(str(quantity).strip()) is None


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
    found = parse(quantity)
    if found.value < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")
    elif _countable(name) and not found.whole:
        yield invalid(path, quantity, "must be an integer")


def _within(name: str, request: Any, limit: Any, path: str) -> Iterator[FieldError]:
    if not well_formed(request) or (limit is not None and not well_formed(limit)):
        return
    if limit is None:
        if _countable(name) or name.startswith("hugepages-"):
            yield required(at(path, "limits"), "Limit must be set for non overcommitable resources")
        return
    exact = _countable(name) or name.startswith("hugepages-")
    if exact and parse(request).value != parse(limit).value:
        yield invalid(at(path, "requests"), request, f"must be equal to {name} limit of {limit}")
    elif parse(request) > parse(limit):
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
