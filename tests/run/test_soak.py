"""The judgement of a soak, which itself takes minutes (`make soak`): what is flat, and what is not."""

from __future__ import annotations

import pytest
from tests.soak import is_flat, slope


def line(minutes: int, start: float, per_hour: float) -> list[tuple[float, float]]:
    return [(60.0 * one, start + per_hour * one / 60) for one in range(minutes)]


@pytest.mark.parametrize("per_hour", [-30.0, 0.0, 7.0, 100.0])
def test_slope(per_hour: float) -> None:
    assert slope(line(30, 100.0, per_hour)) == pytest.approx(per_hour)


@pytest.mark.parametrize(("per_hour", "flat"), [(-30.0, True), (0.0, True), (5.0, True), (12.0, False), (100.0, False)])
def test_a_leak_of_a_tenth_in_half_an_hour_is_seen(per_hour: float, flat: bool) -> None:
    assert is_flat(line(30, 100.0, per_hour)) is flat
