"""A decision searches for so long and no longer: what was not found by then is said to be not found, not impossible."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.scheduler.short import create, group_body
from tests.scheduler.sim import SETTINGS, Sim

from kohort.place.profile import Profile, ProfileError, read_profile
from kohort.scheduler.settings import SchedulerSettings


def _gang(seconds: float) -> Sim:
    sim = Sim(settings=replace(SETTINGS, profile=replace(SETTINGS.profile, search_seconds=seconds)))
    create(sim, {"node": "n0", "cpu": "2"})
    sim.put("group", "g", group_body({"gang": 2, "priority": "p0"}, composite=False) | {"metadata": {}})
    for number in range(2):
        create(sim, {"pod": f"g-{number}", "in": "g", "cpu": "1"})
    sim.settle(1)
    return sim


def test_without_any_time_nothing_is_found_and_nothing_is_proven() -> None:
    sim = _gang(0.0)
    assert not sim.bound
    decisions = [step.decision for step in sim.steps if step.decision is not None]
    assert decisions
    assert {str(one.reason) for one in decisions} == {"NotFoundInTime"}


def test_with_time_it_is_placed() -> None:
    assert sorted(_gang(60.0).bound) == ["g-0", "g-1"]


def test_the_profile_says_how_long_and_how_many() -> None:
    profile = read_profile({"search": {"seconds": 30, "processes": 2}})
    assert (profile.search_seconds, profile.search_processes) == (30.0, 2)
    assert read_profile({"search": {}}) == Profile()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (5, "search"),
        ({"seconds": 0}, "search.seconds"),
        ({"seconds": 601}, "search.seconds"),
        ({"seconds": "5s"}, "search.seconds"),
        ({"processes": -1}, "search.processes"),
        ({"processes": True}, "search.processes"),
        ({"depth": 3}, "search.depth"),
    ],
)
def test_what_is_not_accepted_is_named(wrong: object, field: str) -> None:
    with pytest.raises(ProfileError) as told:
        read_profile({"search": wrong})
    assert [mistake.split(":")[0] for mistake in told.value.mistakes] == [field]


def test_the_profile_says_for_how_long_room_is_held() -> None:
    profile = read_profile({"backfill": {"patience": 0, "seconds": 3600}})
    settings = SchedulerSettings(profile=profile)
    assert (settings.patience, settings.hold_limit) == (0.0, 3600.0)
    assert read_profile({"backfill": {}}) == Profile()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (5, "backfill"),
        ({"seconds": 0}, "backfill.seconds"),
        ({"seconds": 604801}, "backfill.seconds"),
        ({"patience": -1}, "backfill.patience"),
        ({"patience": False}, "backfill.patience"),
        ({"hold": 3}, "backfill.hold"),
    ],
)
def test_what_is_not_accepted_of_backfill(wrong: object, field: str) -> None:
    with pytest.raises(ProfileError) as told:
        read_profile({"backfill": wrong})
    assert [mistake.split(":")[0] for mistake in told.value.mistakes] == [field]
