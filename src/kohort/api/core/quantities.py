"""Amounts of resources: sums that keep their notation, and the canonical text that messages and status show."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.api.core.resources import amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


class Amount(NamedTuple):
    """`binary`: shown in powers of 1024 where that is exact, as whoever wrote it did."""

    value: Decimal
    binary: bool = False

    def __str__(self) -> str:
        return _in_binary(self.value) if self.binary else _in_decimal(self.value)

    def plus(self, other: Amount) -> Amount:
        """In the notation of the first that is not zero."""
        return Amount(self.value + other.value, self.binary if self.value else other.binary)

    def minus(self, other: Amount) -> Amount:
        return Amount(self.value - other.value, self.binary if self.value else other.binary)


ZERO: Final = Amount(Decimal(0))
ONE: Final = Amount(Decimal(1))
Amounts = dict[str, Amount]


def read(quantity: str | float) -> Amount:
    text = str(quantity).strip()
    return Amount(amount(text), text.endswith("i"))


def read_all(quantities: Mapping[str, str | float] | None) -> Amounts:
    return {name: read(quantity) for name, quantity in (quantities or {}).items()}


def total(many: Iterable[Mapping[str, Amount]]) -> Amounts:
    found: Amounts = {}
    for one in many:
        for name, value in one.items():
            found[name] = found[name].plus(value) if name in found else value
    return found


def largest(many: Iterable[Mapping[str, Amount]]) -> Amounts:
    found: Amounts = {}
    for one in many:
        for name, value in one.items():
            if name not in found or value.value > found[name].value:
                found[name] = value
    return found


def listed(amounts: Mapping[str, Amount]) -> str:
    """As quota messages do: a=1,b=2"""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def _in_binary(value: Decimal) -> str:
    if value != value.to_integral_value() or abs(value) < 1024:
        return _in_decimal(value)
    number, power = int(value), 0
    while number % 1024 == 0 and power < len(_BINARY) - 1:
        number, power = number // 1024, power + 1
    return f"{number}{_BINARY[power]}"


def _in_decimal(value: Decimal) -> str:
    """The largest power of a thousand that leaves a whole number; what is finer than nano is rounded up."""
    nanos = int((value * 10**9).to_integral_value(rounding="ROUND_UP"))
    if nanos == 0:
        return "0"
    power = -9
    while nanos % 1000 == 0 and power < 18:
        nanos, power = nanos // 1000, power + 3
    return f"{nanos}{_DECIMAL[power]}"
