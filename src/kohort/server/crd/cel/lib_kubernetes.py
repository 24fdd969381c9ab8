"""What Kubernetes adds: quantities, versions, named formats."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from typing import Any, Final

from kohort.api import formats
from kohort.server.crd.cel.functions import define, defined
from kohort.server.crd.cel.types import FORMAT, QUANTITY, SEMVER
from kohort.server.crd.cel.urls import absolute
from kohort.server.crd.cel.values import NONE, CelError, Optional
from kohort.server.crd.formats import fits

# ---- quantities

_QUANTITY: Final = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?\d{1,10}))", re.ASCII
)
_BINARY: Final = {sign: 1024 ** (place + 1) for place, sign in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MOST_DIGITS: Final = 200


@dataclass(frozen=True, slots=True)
class Quantity:
    value: Fraction
    kind = QUANTITY.kind


def _parsed(text: str) -> Quantity | None:
    found = _QUANTITY.fullmatch(text) if len(text) <= _MOST_DIGITS else None
    if found is None:
        return None
    if found[2]:
        value = Fraction(found[1]) * _BINARY[found[2]]
    else:
        exponent = int(found[4]) if found[4] else _DECIMAL[found[3] or ""]
        value = Fraction(found[1]) * Fraction(10) ** max(-60, min(60, exponent))
    nanos = value * 10**9
    rounded = -(-nanos.numerator // nanos.denominator) if value > 0 else nanos.numerator // nanos.denominator
    return Quantity(Fraction(rounded, 10**9))


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
    return one.value.denominator == 1 and -(1 << 63) <= one.value < 1 << 63


def _sign(value: Any) -> int:
    return int((value > 0) - (value < 0))


define("isQuantity", "(string) bool", run=lambda text: _parsed(text) is not None)
define("sign", "(Quantity) int", run=lambda one: _sign(one.value))
define("asApproximateFloat", "Quantity.() double", run=lambda one: float(one.value))
define("isGreaterThan", "Quantity.(Quantity) bool", run=lambda one, other: one.value > other.value)
define("isLessThan", "Quantity.(Quantity) bool", run=lambda one, other: one.value < other.value)
define("compareTo", "Quantity.(Quantity) int", run=lambda one, other: _sign(one.value - other.value))


def _amount(other: Any) -> Fraction:
    return other.value if isinstance(other, Quantity) else Fraction(other)


define(
    "add",
    "Quantity.(Quantity) Quantity",
    "Quantity.(int) Quantity",
    run=lambda one, other: Quantity(one.value + _amount(other)),
)
define(
    "sub",
    "Quantity.(Quantity) Quantity",
    "Quantity.(int) Quantity",
    run=lambda one, other: Quantity(one.value - _amount(other)),
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
