"""CronJobs: when they are due, what the policies say, what is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.cluster import job_of
from tests.controllers.world import World

from kohort.api.kind import Object
from kohort.apimachinery.cron import BadScheduleError, parse
from kohort.kinds.batch.control.cronjob.reconcile import latest


def moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("* * * * *", "2026-11-15T12:00:00", "2026-11-15T12:01:00"),
        ("* * * * *", "2026-11-15T12:00:59", "2026-11-15T12:01:00"),
        ("*/10 * * * *", "2026-11-15T12:51:00", "2026-11-15T13:00:00"),
        ("5/20 * * * *", "2026-11-15T12:26:00", "2026-11-15T12:45:00"),
        ("0 0 29 2 *", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("30 9 * * mon-fri", "2026-11-13T10:00:00", "2026-11-16T09:30:00"),  # a Friday
        ("0 0 13 * 5", "2026-11-01T00:00:00", "2026-11-06T00:00:00"),  # the 13th or a Friday
        ("0 0 */2 * 5", "2026-11-01T00:00:00", "2026-11-13T00:00:00"),  # odd days that are Fridays
        ("@hourly", "2026-11-15T12:00:00", "2026-11-15T13:00:00"),
        ("@weekly", "2026-11-15T12:00:00", "2026-11-22T00:00:00"),
        ("@yearly", "2026-11-15T12:00:00", "2027-01-01T00:00:00"),
        ("@every 90m", "2026-11-15T12:00:00", "2026-11-15T13:30:00"),
        ("@every 1m30s", "2026-11-15T12:00:00", "2026-11-15T12:01:30"),
    ],
)
def test_next(schedule: str, after: str, due: str) -> None:
    assert parse(schedule).next(moment(after)) == moment(due)


def test_never() -> None:
    assert parse("0 0 30 2 *").next(moment("2026-01-01")) is None


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "due"),
    [
        ("0 9 * * *", "Europe/Berlin", "2026-07-01T00:00:00", "2026-07-01T07:00:00"),
        ("0 9 * * *", "Europe/Berlin", "2026-12-01T00:00:00", "2026-12-01T08:00:00"),
        ("0 9 * * *", "Asia/Kolkata", "2026-12-01T00:00:00", "2026-12-01T03:30:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00", "2026-03-30T00:30:00"),  # 02:30 is left out
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00", "2026-10-25T00:30:00"),  # and comes twice
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00", "2026-10-25T01:30:00"),
        ("0 0 * * *", "America/Havana", "2026-03-07T06:00:00", "2026-03-09T04:00:00"),  # no midnight on the 8th
    ],
)
def test_time_zones(schedule: str, zone: str, after: str, due: str) -> None:
    assert parse(schedule, zone).next(moment(after)) == moment(due)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["* * * * *", "*/7 3-9 * * *", "15 4 1,15 * *", "0 12 * 2-11 1-5", "0 0 1 * 0", "@daily"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"]),
    st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1)),
)
def test_next_is_after_and_nothing_between(schedule: str, zone: str, start: datetime) -> None:
    """Against the slow way: minute by minute."""
    plan, begin = parse(schedule, zone), start.replace(tzinfo=UTC)
    found = plan.next(begin)
    assert found is not None
    assert found > begin
    local = found.astimezone(ZoneInfo(zone))
    assert (local.second, local.microsecond) == (0, 0)
    assert plan.next(found - timedelta(seconds=1)) == found


@pytest.mark.parametrize("text", ["", "* * * *", "61 * * * *", "@sometimes", "TZ=UTC * * * * *"])
def test_bad_schedules(text: str) -> None:
    with pytest.raises(BadScheduleError):
        parse(text)
    with pytest.raises(BadScheduleError, match="unknown time zone"):
        parse("* * * * *", "Mars/Olympus")


def test_the_latest_of_many_missed() -> None:
    every = parse("*/5 * * * *")
    start = moment("2026-01-01T00:00:00")
    assert latest(every, start, start + timedelta(minutes=4)).latest is None
    assert latest(every, start, start + timedelta(minutes=17)).latest == start + timedelta(minutes=15)
    far = latest(every, start, start + timedelta(days=300, minutes=3))
    assert far.many
    assert far.latest == start + timedelta(days=300)
    weekdays = parse("0 9 * * 1-5")
    monday = latest(weekdays, moment("2026-11-05T00:00:00"), moment("2026-11-15T12:00:00"))  # a Sunday
    assert monday.latest == moment("2026-11-13T09:00:00")


# ---- the controller


def cron(world: World, schedule: str = "* * * * *", **spec: Any) -> Object:
    template = {"spec": job_of("x", parallelism=1, completions=1)["spec"]}
    whole = {"schedule": schedule, "jobTemplate": template, **spec}
    return world.make({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": whole})


def runs(world: World) -> list[str]:
    return sorted(job["metadata"]["name"] for job in world.every("Job"))


def test_a_run_each_minute_named_by_it() -> None:
    world = World()
    cron(world)
    world.run(61)
    minute = int(world.api.clock.now.timestamp()) // 60
    assert runs(world) == [f"tick-{minute}"]
    status = world.find("CronJob", "tick")["status"]
    assert [one["name"] for one in status["active"]] == runs(world)
    assert status["lastScheduleTime"] == "2026-11-15T12:01:00Z"
    (job,) = world.every("Job")
    stamp = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert stamp == "2026-11-15T12:01:00Z"


def test_what_has_ended_leaves_the_list() -> None:
    world = World()
    cron(world)
    world.run(61)
    world.pods_do("succeed")
    world.run(10)
    status = world.find("CronJob", "tick")["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"].startswith("2026-11-15T12:01")
    assert "SawCompletedJob" in world.reasons()


@pytest.mark.parametrize(("policy", "count"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_concurrency(policy: str, count: int) -> None:
    world = World()
    cron(world, concurrencyPolicy=policy)
    world.run(61)
    first = runs(world)
    world.run(120)
    assert len(runs(world)) == count
    assert (first[0] in runs(world)) == (policy != "Replace")
    if policy == "Forbid":
        assert "JobAlreadyActive" in world.reasons()
        world.pods_do("succeed")
        world.run(60)
        assert len(runs(world)) == 2


def test_suspended() -> None:
    world = World()
    cron(world, suspend=True)
    world.run(300)
    assert not runs(world)


@pytest.mark.parametrize(("deadline", "count"), [(None, 1), (1000, 1), (100, 0)])
def test_runs_that_were_missed_are_made_up_for_if_it_is_not_too_late(deadline: int | None, count: int) -> None:
    world = World(start=False)
    given = {} if deadline is None else {"startingDeadlineSeconds": deadline}
    cron(world, "*/10 * * * *", **given)
    world.run(25 * 60)  # due at 10 and 20
    world.start()
    world.run(5)
    assert len(runs(world)) == count
    assert ("MissSchedule" in world.reasons("Warning")) == (not count)
    if count:
        assert world.find("CronJob", "tick")["status"]["lastScheduleTime"] == "2026-11-15T12:20:00Z"


def test_history() -> None:
    world = World()
    cron(world, successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for number in range(6):
        world.run(60)
        world.pods_do("succeed" if number % 2 else "fail", exit=0 if number % 2 else 1)
        world.run(0.5)
    world.patch("CronJob", "tick", {"spec": {"suspend": True}})
    for job in world.every("Job"):
        if not job["status"].get("succeeded"):
            world.patch("Job", job["metadata"]["name"], {"spec": {"activeDeadlineSeconds": 1}})
    world.run(20)
    ended = [world.conditions(name)[-1].split("=")[0] for name in runs(world)]
    assert sorted(ended) == ["Complete", "Complete", "Failed"]


def test_a_bad_time_zone_is_told() -> None:
    world = World()
    cron(world, timeZone="Mars/Olympus")
    world.run(120)
    assert not runs(world)
    assert "UnknownTimeZone" in world.reasons("Warning")


def test_refused_creates_are_told_and_tried_again() -> None:
    world = World()
    world.api.refusals.append(("create", "Job", 1))
    cron(world)
    world.run(63)
    assert "FailedCreate" in world.reasons("Warning")
    assert len(runs(world)) == 1


# ---- time to live


@pytest.mark.parametrize(("ttl", "left"), [(None, True), (0, False), (30, True)])
def test_ttl(ttl: int | None, left: bool) -> None:
    world = World()
    world.job("brief", **({} if ttl is None else {"ttlSecondsAfterFinished": ttl}))
    world.run()
    world.pods_do("succeed")
    world.run(10)
    assert bool(world.every("Job")) == left


def test_a_job_that_runs_does_not_expire() -> None:
    world = World()
    world.job("busy", ttlSecondsAfterFinished=0)
    world.run(100)
    assert world.every("Job")
