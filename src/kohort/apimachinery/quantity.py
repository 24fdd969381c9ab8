"""Quantities such as 500m, 2, 4Gi or 1e3, read and written as k8s.io/apimachinery does.

Whoever may create a pod chooses the text, so no text may cost more than its length: numbers are kept as digits and a
power of ten, and nobody writes out 10**99999999. Numbers in binary notation end at 2**63-1; others have no end, but
what is taken from them does (`Quantity.ceil`, sums).

One thing is not copied: above 999E real servers lose the suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_UP, Context, Decimal, DivisionByZero, InvalidOperation
from functools import lru_cache
from typing import Any, Final, Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]
Written = str | int | float  # a quantity as JSON has it

NANO: Final = -9  # nothing is finer
MILLI: Final = -3  # amounts of resources are rounded up to this
INT64_MAX: Final = (1 << 63) - 1

_PARTS: Final = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?(?:([KMGTPE])i|([numkMGTPE]?)|[eE]([+-]?[0-9]++))")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_LEVELS: Final = {suffix[:1]: level for level, suffix in enumerate(_BINARY)}
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LETTERS: Final = {power: letter for letter, power in _POWERS.items()}
_FEW: Final = 18  # digits that surely fit into 64 bits
_FINE: Final = 80  # more places after the point cannot change what 2**60 times a number is, in billionths
_SHORT: Final = 64  # signs of a text that is worth remembering
_LONGEST: Final = 400  # zeros that a sum is written with; above that, it takes an exponent
# Of sums: exact for anything that fits into 64 bits with nine places, and a billion times that.
_SUMS: Final = Context(60, ROUND_UP, MIN_EMIN, MAX_EMAX, traps=[InvalidOperation, DivisionByZero])


class QuantityError(ValueError):
    """The text is no quantity."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and the notation that it is written in."""

    value: Decimal
    format: Format = "DecimalSI"

    def __str__(self) -> str:
        sign, digits, power = self.value.as_tuple()
        return _written(_Number(bool(sign), "".join(map(str, digits)), int(power)), self.format)

    def __add__(self, other: Quantity) -> Quantity:
        """In the notation of the first that is not zero."""
        return Quantity(_SUMS.add(self.value, other.value), self.format if self.value else other.format)

    def __mul__(self, count: int) -> Quantity:
        return Quantity(_SUMS.multiply(self.value, Decimal(count)), self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(_SUMS.subtract(self.value, other.value), self.format if self.value else other.format)

    def __truediv__(self, other: Quantity) -> Decimal:
        return _SUMS.divide(self.value, other.value)

    def __lt__(self, other: Quantity) -> bool:
        return self.value < other.value

    def __gt__(self, other: Quantity) -> bool:
        return self.value > other.value

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def whole(self) -> bool:
        return self.value == self.value.to_integral_value()

    def ceil(self, power: int = 0) -> int:
        """In units of ten to this power, rounded up; what 64 bits cannot hold is the largest that they can."""
        if self.value.adjusted() - power > _FEW:
            return INT64_MAX if self.value > 0 else -INT64_MAX if self.value else 0
        found = int(self.value.scaleb(-power, _SUMS).to_integral_value(ROUND_CEILING, _SUMS))
        return max(-INT64_MAX, min(found, INT64_MAX))


ZERO: Final = Quantity(Decimal(0))
ONE: Final = Quantity(Decimal(1))
Quantities = dict[str, Quantity]  # by name of resource


def parse(given: Written) -> Quantity:
    """Raises QuantityError."""
    text = _text(given)
    return _parsed(text) if len(text) <= _SHORT else _parse(text)


def _text(given: Any) -> str:
    try:
        return given if given.__class__ is str else str(given)
    except ValueError as error:  # Python writes no integer of more than 4,300 digits
        raise QuantityError("a quantity of so many digits must be written as a string") from error


def parse_all(given: Mapping[str, Written] | None) -> Quantities:
    return {name: parse(quantity) for name, quantity in given.items()} if given else {}


def well_formed(value: Any) -> bool:
    """Whether a server could decode it."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    try:
        parse(value)
    except ValueError:
        return False
    return True


def total(many: Iterable[Mapping[str, Quantity]]) -> Quantities:
    found: Quantities = {}
    for one in many:
        for name, value in one.items():
            found[name] = found[name] + value if name in found else value
    return found


def listed(amounts: Mapping[str, Quantity]) -> str:
    """As quota messages do: a=1,b=2"""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def canonical(value: Any, finest: int = NANO) -> Any:
    """The one text that a server keeps: 1000m is 1, 1024Mi is 1Gi, 0.5 is 500m; rounded up to ten to the `finest`.

    Servers leave a text alone that is in its shortest form by their count of digits, be it +1 or 1e+3. What is no
    quantity is given back as it is.
    """
    if value.__class__ is str:
        return _remembered(value, finest) if len(value) <= _SHORT else _canonical(value, finest)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _canonical(_text(value), finest)
    return "0" if value is None else value


@dataclass(frozen=True, slots=True)
class _Number:
    """Digits times ten to a power."""

    negative: bool
    digits: str
    power: int

    def rounded(self, finest: int) -> _Number:
        """Away from zero: who asks for something gets something."""
        if self.power >= finest:
            return self
        end = max(0, len(self.digits) - (finest - self.power))
        kept, cut = self.digits[:end], self.digits[end:]
        return _Number(self.negative, _next(kept) if cut.strip("0") else kept or "0", finest)

    @property
    def value(self) -> Decimal:
        found = Decimal(f"{'-' if self.negative else ''}{self.digits or 0}E{self.power}")
        return found if found else Decimal(0)


def _next(digits: str) -> str:
    """One more, for any number of digits."""
    kept = digits.rstrip("9")
    head = kept[:-1] + chr(ord(kept[-1]) + 1) if kept else "1"
    return head + "0" * (len(digits) - len(kept))


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that was understood. `short`: how fine it is if it is in its shortest form, by a server's count."""

    text: str
    number: _Number
    format: Format
    short: int | None


def _parse(text: str) -> Quantity:
    found = _read(text)
    return Quantity(found.number.value, found.format)


_parsed = lru_cache(maxsize=8192)(_parse)


def _canonical(given: str, finest: int) -> str:
    try:
        found = _read(given)
    except QuantityError:
        return given
    if found.short is not None and found.short >= finest:
        return found.text
    return _written(found.number.rounded(finest), found.format)


_remembered = lru_cache(maxsize=4096)(_canonical)


def _read(given: str) -> _Text:
    text = given.strip()
    found = _PARTS.fullmatch(text)
    if found is None or not text:
        raise QuantityError(f"{given[:_SHORT]!r} is not a quantity such as 500m, 2, 4Gi or 1e3")
    sign, number, fraction, binary, letter, exponent = found.groups()
    bare = not number and not fraction
    number, fraction = number.lstrip("0") or "0", fraction or ""
    if binary is not None:
        if bare and _LEVELS[binary] > 4:
            raise QuantityError(f"{given!r} is not a quantity: it has no digits")
        return _read_binary(text, sign == "-", number, fraction, _LEVELS[binary])
    power = _POWERS[letter or ""] if exponent is None else _int32(exponent, text)
    digits, power = number + fraction, _wrapped(power - len(fraction))
    read = _Number(sign == "-", digits, power)
    few = len(digits) <= _FEW and power >= NANO
    short = few and power % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if bare and not few:  # a suffix alone is zero, unless it is finer than anything
        raise QuantityError(f"{given[:_SHORT]!r} is not a quantity: it has no digits")
    notation: Format = "DecimalSI" if exponent is None else "DecimalExponent"
    return _Text(text, read.rounded(NANO), notation, power if short else None)


def _read_binary(text: str, negative: bool, number: str, fraction: str, level: int) -> _Text:
    if len(number) > _FEW + 1:
        return _Text(text, _Number(negative, str(INT64_MAX), 0), "BinarySI", None)
    rest = "1" if fraction[_FINE:].strip("0") else ""
    places = fraction[:_FINE] + rest
    digits = int(number + places) << 10 * level
    read = _Number(negative, str(digits), -len(places)).rounded(NANO)
    if read.value.copy_abs() > INT64_MAX:
        read = _Number(negative, str(INT64_MAX), 0)
    short = not fraction and digits >> 10 * level & 7 and len(number) <= 14 - 3 * level
    small = 0 < read.value.copy_abs() < 1
    return _Text(text, read, "DecimalSI" if small else "BinarySI", 0 if short else None)


def _int32(exponent: str, text: str) -> int:
    """Upstream reads 64 bits and keeps 32 of them."""
    if len(exponent.lstrip("+-0")) > _FEW + 1 or not -INT64_MAX - 1 <= (found := int(exponent)) <= INT64_MAX:
        raise QuantityError(f"{text[:_SHORT]!r} is not a quantity: its exponent is out of range")
    return _wrapped(found)


def _wrapped(number: int) -> int:
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _written(number: _Number, notation: Format) -> str:
    """With the largest power of a thousand, or of 1024, that leaves a whole number."""
    digits = number.digits.lstrip("0").rstrip("0")
    if not digits:
        return "0"
    power = number.power + len(number.digits) - len(number.digits.rstrip("0"))
    sign = "-" if number.negative else ""
    if notation == "BinarySI" and power >= 0 and len(digits) + power <= _LONGEST:
        value, level = int(digits) * 10**power, 0
        if value >= 1024:
            while value % 1024 == 0 and level < len(_BINARY) - 1:
                value, level = value // 1024, level + 1
            return f"{sign}{value}{_BINARY[level]}"
    top = power - power % 3
    if notation == "DecimalExponent" or top > _LONGEST:
        suffix = f"e{top}" if top else ""
    else:
        top = min(top, max(_LETTERS))
        suffix = _LETTERS[top]
    return f"{sign}{digits}{'0' * (power - top)}{suffix}"
