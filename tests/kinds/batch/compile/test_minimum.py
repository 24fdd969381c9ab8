"""The minimum that follows a Job through its life (spec job 3.4, 3.5, 8.5)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.compile.build import (
    compiled,
    gang,
    job,
    job_reference,
    minimums,
    objects,
    pod_group,
    template,
    workload,
)

from kohort.kinds.batch.compile.groups import default_minimum, shrink_min_count

STARTED = {"startTime": "2026-11-15T00:00:00Z", "active": 4}


def running(obj: dict[str, Any], least: int | None, **settings: Any) -> list[int | None]:
    """The minimums that a started Job's own objects should have."""
    mine = job_reference()
    own = workload("wl-own", "Job", "trainer", template("grp", least), group="batch", owners=(mine,))
    group = pod_group("pg-own", "wl-own", "grp", mine, least=least)
    made = objects({**obj, "status": {**STARTED, **obj["status"]}}, "1.37", own, group, **settings)
    assert [one["metadata"]["name"] for one in made] == ["wl-own", "pg-own"]
    return minimums(made)


def test_t_54_an_explicit_minimum_is_edited() -> None:
    assert running(job(p=8, scheduling=gang(6)), 4) == [6, 6]


def test_t_55_a_defaulted_minimum_follows_parallelism() -> None:
    assert running(job(p=7, c=7, mode="Indexed", scheduling=gang()), 4) == [7, 7]


def test_t_56_an_explicit_minimum_stays() -> None:
    assert running(job(p=5, scheduling=gang(3)), 3) == [3, 3]


def test_t_57_basic_stays_basic() -> None:
    assert running(job(p=9), None) == [None, None]


def test_t_58_edits_by_hand_are_reverted() -> None:
    assert running(job(p=4, scheduling=gang()), 2) == [4, 4]


def test_j_59_a_basic_template_is_respected() -> None:
    """The Job asks for a gang, but its Workload says basic: only minimums are ever changed."""
    assert running(job(p=4, scheduling=gang()), None) == [None, None]


def test_t_59_the_retry_of_the_last_index_is_not_starved() -> None:
    obj = job(p=4, c=4, mode="Indexed", scheduling=gang(), status={"succeeded": 3})
    assert running(obj, 4) == [1, 1]
    assert running(obj, 4, parity=True) == [4, 4]
    assert running(obj, 4, shrink_min_count=False) == [4, 4]


def test_t_60_fewer_completions_than_parallelism() -> None:
    obj = job(p=8, c=3, scheduling=gang())
    assert minimums(objects(obj)) == [3, 3]
    assert not compiled(obj).warnings
    assert minimums(objects(obj, parity=True)) == [8, 8]
    (warning,) = compiled(obj, parity=True).warnings
    assert "the Job cannot start" in str(warning)


def test_explicit_minimums_never_shrink() -> None:
    assert minimums(objects(job(p=8, c=3, scheduling=gang(5)))) == [5, 5]


@pytest.mark.parametrize(
    ("parallelism", "completions", "succeeded", "expected"),
    [
        (4, 4, 0, 4),
        (4, 4, 3, 1),
        (4, 4, 4, 1),
        (8, 3, 0, 3),
        (3, None, 7, 3),
        (0, None, 0, 1),
        (0, 5, 1, 1),
        (2, 9, 1, 2),
    ],
)
def test_shrink_min_count(parallelism: int, completions: int | None, succeeded: int, expected: int) -> None:
    assert shrink_min_count(parallelism, completions, succeeded) == expected


@pytest.mark.parametrize(("p", "expected"), [(None, 1), (0, 1), (1, 1), (6, 6)])
def test_default_minimum_without_shrinking(p: int | None, expected: int) -> None:
    assert default_minimum(job(p=p, c=2), shrink=False) == expected
