"""Shares of a whole, also by texts that no number holds."""

import pytest

from kohort.apimachinery.intstr import scaled


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (3, 3, 3),
        ("25%", 2, 3),
        ("007%", 0, 1),
        ("100%", 10, 10),
        (None, 0, 0),
        ("3", 0, 0),
        ("%", 0, 0),
        ("-1%", 0, 0),
        ("\u0663%", 0, 0),
        pytest.param("0" * 5_000 + "%", 0, 0, id="zeros"),
        pytest.param("9" * 5_000 + "%", 922337203685477580, 922337203685477581, id="nines"),
    ],
)
def test_scaled(value: int | str | None, down: int, up: int) -> None:
    assert scaled(value, 10) == down
    assert scaled(value, 10, up=True) == up
