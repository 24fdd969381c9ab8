"""Moments as the API writes them, and numbers that may be shares."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kohort.apimachinery import times
from kohort.apimachinery.intstr import scaled

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def test_written_in_utc() -> None:
    elsewhere = MOMENT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert times.seconds(elsewhere) == "2026-01-02T03:04:05Z"
    assert times.micros(elsewhere) == "2026-01-02T03:04:05.678901Z"


def test_read_again() -> None:
    assert times.parse(times.micros(MOMENT)) == MOMENT
    assert times.parse(times.seconds(MOMENT)) == times.whole(MOMENT)
    assert times.moment("2026-01-02T03:04:05") == times.whole(MOMENT)


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-13-01T00:00:00Z"])
def test_what_is_no_moment(text: str | None) -> None:
    assert times.parse(text) is None


@pytest.mark.parametrize(
    ("value", "down", "up"), [(3, 3, 3), ("25%", 2, 3), ("0%", 0, 0), ("100%", 10, 10), ("x", 0, 0), (None, 0, 0)]
)
def test_a_share_of_ten(value: int | str | None, down: int, up: int) -> None:
    assert (scaled(value, 10), scaled(value, 10, up=True)) == (down, up)
