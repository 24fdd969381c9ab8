from __future__ import annotations

from fractions import Fraction

import pytest

from kohort.place.quantities import MOST, amount, parse, shown


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Fraction(1, 2)),
        ("2", Fraction(2)),
        (2, Fraction(2)),
        ("1e3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1E3", Fraction(1000)),
        ("4Gi", Fraction(4 << 30)),
        ("1.5Ki", Fraction(1536)),
        ("100n", Fraction(1, 10**7)),
        ("0.1", Fraction(1, 10)),
        ("3k", Fraction(3000)),
    ],
)
def test_parse(text: str, value: Fraction) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("resource", "text", "units"),
    [
        ("cpu", "250m", 250),
        ("cpu", "0.1", 100),
        ("cpu", "100u", 1),  # rounded up
        ("memory", "1500m", 2),
        ("memory", "1Mi", 1 << 20),
        ("nvidia.com/gpu", "8", 8),
        ("memory", "9999Pi", MOST),
    ],
)
def test_amount(resource: str, text: str, units: int) -> None:
    assert amount(resource, text) == units


@pytest.mark.parametrize(
    ("resource", "units", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 2000, "2"),
        ("cpu", 1, "0.001"),
        ("memory", 4 << 30, "4Gi"),
        ("memory", 1536 << 20, "1.5Gi"),
        ("memory", 12, "12"),
        ("pods", 3, "3"),
    ],
)
def test_shown(resource: str, units: int, text: str) -> None:
    assert shown(resource, units) == text
