"""What Kubernetes adds: quantities, versions, named formats."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import total_ordering
from typing import Any, Final

from kohort.api import formats
from kohort.apimachinery import quantity
from kohort.cel.functions import define, defined
from kohort.cel.string_formats import fits
from kohort.cel.types import FORMAT, QUANTITY, SEMVER
from kohort.cel.urls import absolute
from kohort.cel.values import NONE, CelError, Optional

# ---- quantities


@dataclass(frozen=True, slots=True)
class Quantity:
    """Equal to another in another notation: 1 and 1000m."""

    value: Decimal
    kind = QUANTITY.kind


def _parsed(text: str) -> Quantity | None:
    if text != text.strip():  # only what reads JSON allows for spaces
        return None
    try:
        return Quantity(quantity.parse(text).value)
    except quantity.QuantityError:
        return None


@defined("quantity", "(string) Quantity")
def _quantity(text: str) -> Quantity:
    found = _parsed(text)
    if found is None:
        raise CelError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    return found


@defined("asInteger", "Quantity.() int")
def _as_integer(one: Quantity) -> int:
    if not _is_integer(one):
        raise CelError("cannot convert value to integer")
    return int(one.value)


@defined("isInteger", "Quantity.() bool")
def _is_integer(one: Quantity) -> bool:
    return -(1 << 63) <= one.value < 1 << 63 and one.value == int(one.value)


define("isQuantity", "(string) bool", run=lambda text: _parsed(text) is not None)
define("sign", "(Quantity) int", run=lambda one: int(one.value.compare(0)))
define("asApproximateFloat", "Quantity.() double", run=lambda one: float(one.value))
define("isGreaterThan", "Quantity.(Quantity) bool", run=lambda one, other: one.value > other.value)
define("isLessThan", "Quantity.(Quantity) bool", run=lambda one, other: one.value < other.value)
define("compareTo", "Quantity.(Quantity) int", run=lambda one, other: int(one.value.compare(other.value)))


def _amount(given: Quantity | int) -> quantity.Quantity:
    return quantity.Quantity(given.value if isinstance(given, Quantity) else Decimal(given))


define(
    "add",
    "Quantity.(Quantity) Quantity",
    "Quantity.(int) Quantity",
    run=lambda one, other: Quantity((_amount(one) + _amount(other)).value),
)
define(
    "sub",
    "Quantity.(Quantity) Quantity",
    "Quantity.(int) Quantity",
    run=lambda one, other: Quantity((_amount(one) - _amount(other)).value),
)


# ---- semantic versions

_NUMBER: Final = r"(0|[1-9]\d{0,18})"
_PART: Final = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?", re.ASCII
)
_LOOSE: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?([-+].*)?", re.ASCII | re.DOTALL)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    numbers: tuple[int, ...]
    before: tuple[str, ...]  # parts of a version that comes before the release
    kind = SEMVER.kind

    def _order(self) -> tuple[Any, ...]:
        parts = tuple((0, int(one), "") if one.isdigit() else (1, 0, one) for one in self.before)
        return self.numbers, not self.before, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._order() == other._order()

    def __lt__(self, other: Semver) -> bool:
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash(self._order())


def _version(text: str, normalize: bool = False) -> Semver | None:
    if normalize:
        loose = _LOOSE.fullmatch(text)
        if loose is None:
            return None
        text = ".".join((one or "0").lstrip("0") or "0" for one in loose.groups()[:3]) + (loose[4] or "")
    found = _SEMVER.fullmatch(text) if len(text) <= 1000 else None
    if found is None:
        return None
    return Semver(
        tuple(int(found[place]) for place in (1, 2, 3)), tuple((found[4] or "").split(".") if found[4] else ())
    )


@defined("semver", "(string) Semver", "(string, bool) Semver")
def _semver(text: str, normalize: bool = False) -> Semver:
    found = _version(text, normalize)
    if found is None:
        raise CelError(f"not a semantic version: {text[:100]}")
    return found


define("isSemver", "(string) bool", "(string, bool) bool", run=lambda *given: _version(*given) is not None)
define("isGreaterThan", "Semver.(Semver) bool", run=lambda one, other: one > other)
define("isLessThan", "Semver.(Semver) bool", run=lambda one, other: one < other)
define("compareTo", "Semver.(Semver) int", run=lambda one, other: (one > other) - (one < other))
for _place, _name in enumerate(("major", "minor", "patch")):
    define(_name, "Semver.() int", run=lambda one, place=_place: one.numbers[place])


# ---- named formats


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    kind = FORMAT.kind


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The begin of a name may end in a dash."""
    return lambda text: check(text[:-1] + "a" if text.endswith("-") and len(text) > 1 else text)


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _known(form: str, word: str) -> Callable[[str], list[str]]:
    return lambda text: [] if fits(form, text) else [word]


_FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": formats.label.find,
    "dns1123Subdomain": formats.subdomain.find,
    "dns1035Label": formats.label_1035.find,
    "qualifiedName": formats.label_key.find,
    "dns1123LabelPrefix": _prefix(formats.label.find),
    "dns1123SubdomainPrefix": _prefix(formats.subdomain.find),
    "dns1035LabelPrefix": _prefix(formats.label_1035.find),
    "labelValue": formats.label_value.find,
    "uri": lambda text: [] if absolute(text) is not None else [f'parse "{text}": invalid URI for request'],
    "uuid": _known("uuid", "does not match the UUID format"),
    "byte": _byte,
    "date": _known("date", "invalid date"),
    "datetime": _known("date-time", "invalid datetime"),
}


@defined("validate", "Format.(string) optional(list(string))")
def _validate(form: Format, text: str) -> Optional:
    found = list(_FORMATS[form.name](text))
    return Optional(found) if found else NONE


define(
    "format.named", "(string) optional(Format)", run=lambda name: Optional(Format(name)) if name in _FORMATS else NONE
)
for _name in _FORMATS:
    define(f"format.{_name}", "() Format", run=lambda name=_name: Format(name))
