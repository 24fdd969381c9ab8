"""Cron schedules: when they are due, in time zones whose clocks change, and what is wrong with bad ones."""

from datetime import UTC, datetime

import pytest

from kohort.apimachinery.cron import BadScheduleError, UnknownTimeZoneError, parse, problem


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(schedule: str, after: str, zone: str | None = None, count: int = 1) -> list[str]:
    found, moment = list[str](), at(after)
    for _ in range(count):
        following = parse(schedule, zone).next(moment)
        if following is None:
            return found
        moment = following
        found.append(moment.strftime("%Y-%m-%dT%H:%M"))
    return found


@pytest.mark.parametrize(
    ("schedule", "after", "then"),
    [
        ("*/15 * * * *", "2026-01-01T00:00:30", "2026-01-01T00:15"),
        ("5/20 3 * * *", "2026-01-01T03:05:00", "2026-01-01T03:25"),
        ("0 22 * * mon-fri", "2026-01-03T00:00:00", "2026-01-05T22:00"),
        ("0 0 13 * 5", "2026-01-03T00:00:00", "2026-01-09T00:00"),  # one of the two kinds of day is enough
        ("0 0 13 * *", "2026-01-14T00:00:00", "2026-02-13T00:00"),
        ("0 0 29 2 ?", "2026-01-01T00:00:00", "2028-02-29T00:00"),
        ("0 0 1,15 jan,JUL *", "2026-01-02T00:00:00", "2026-01-15T00:00"),
        ("@monthly", "2026-12-02T00:00:00", "2027-01-01T00:00"),
        ("@weekly", "2026-01-03T00:00:00", "2026-01-04T00:00"),
        ("@every 1h30m", "2026-01-01T00:00:10.5", "2026-01-01T01:30"),
        ("@every 5ms", "2026-01-01T00:00:59", "2026-01-01T00:01"),
    ],
)
def test_when_it_is_due(schedule: str, after: str, then: str) -> None:
    assert due(schedule, after) == [then]


def test_a_day_that_never_comes() -> None:
    assert due("0 0 30 2 *", "2026-01-01T00:00:00") == []


def test_hours_that_clocks_leave_out_or_repeat() -> None:
    # New York: 2 to 3 o'clock is missing on 8 March, 1 to 2 o'clock comes twice on 1 November.
    assert due("30 2 * * *", "2026-03-07T12:00:00", "America/New_York") == ["2026-03-09T06:30"]
    twice = due("30 1 * * *", "2026-10-31T12:00:00", "America/New_York", count=2)
    assert twice == ["2026-11-01T05:30", "2026-11-01T06:30"]


def test_a_day_that_begins_at_one() -> None:
    """Beirut: midnight of 29 March 2026 does not exist."""
    assert due("0 1 29 3 *", "2026-03-20T00:00:00", "Asia/Beirut") == ["2026-03-28T22:00"]


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("CRON_TZ=UTC 0 0 * * *", "use timeZone field instead"),
        ("0 0 * *", "found 4"),
        ("61 * * * *", 'minute: "61" is outside 0 to 59'),
        ("* * 0 * *", 'day of month: "0" is outside 1 to 31'),
        ("* * * foo *", 'month: "foo" is neither a number, nor a range, nor *'),
        ("1-2-3 * * * *", "neither a number"),
        ("5-2 * * * *", "begins after its end"),
        ("*/0 * * * *", 'step "0" must be a positive number'),
        ("*/x * * * *", 'step "x" must be a positive number'),
        ("@noon", "unknown word; accepted are @annually"),
        ("@every soon", "needs a duration"),
    ],
)
def test_what_is_wrong(schedule: str, words: str) -> None:
    assert words in (problem(schedule) or "")
    with pytest.raises(BadScheduleError):
        parse(schedule)


@pytest.mark.parametrize("zone", ["Mars/Base", "../etc/passwd"])
def test_an_unknown_time_zone(zone: str) -> None:
    with pytest.raises(UnknownTimeZoneError, match="unknown time zone"):
        parse("@daily", zone)
