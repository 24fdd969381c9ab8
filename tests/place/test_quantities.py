from __future__ import annotations

import pytest

from kohort.place.columns import MOST, amount, shown


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
        ("memory", "1e99999999", MOST),
        ("cpu", "1e-99999999", 1),
        ("cpu", "1e-9", 1),
        ("nvidia.com/gpu", 8, 8),
        ("memory", "1.5Ki", 1536),
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
