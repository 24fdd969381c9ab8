"""Kubernetes quantities as exact integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

_BINARY: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL: Final[dict[str, Fraction]] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
}


@lru_cache(maxsize=4096)
def parse(text: str | int | float) -> Fraction:
    """The value of a quantity such as 500m, 2, 4Gi or 1e3."""
    plain = str(text).strip()
    suffix = plain[-2:]
    if suffix in _BINARY:
        return Fraction(plain[:-2]) * _BINARY[suffix]
    if plain and plain[-1] in _DECIMAL:
        return Fraction(plain[:-1]) * _DECIMAL[plain[-1]]
    return Fraction(plain)


MOST: Final = 1 << 47  # amounts are cut off here, so that sums and scores over a cluster stay within 64 bits


@lru_cache(maxsize=4096)
def amount(resource: str, text: str | int | float) -> int:
    """In the unit of the resource's column: thousandths for cpu, ones for all else; rounded up."""
    value = parse(text) * (1000 if resource == "cpu" else 1)
    return min(-(-value.numerator // value.denominator), MOST)


_SHOWN: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def shown(resource: str, value: int) -> str:
    """An amount of a column, for people: 1500 of cpu is 1.5, bytes carry a unit."""
    if resource == "cpu":
        return f"{value // 1000}" if value % 1000 == 0 else f"{value / 1000:.3f}".rstrip("0")
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        for unit, size in _SHOWN:
            if value >= size:
                return f"{value // size}{unit}" if value % size == 0 else f"{value / size:.1f}{unit}"
    return str(value)
