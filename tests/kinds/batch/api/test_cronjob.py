"""CronJobs: a timetable and a Job template."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.api.build import created, cronjob, fields, gang, job, updated

from kohort.api.kind import Context
from kohort.apimachinery import cron
from kohort.kinds.batch.api.cronjob import CRONJOB

ROOT = "spec.jobTemplate.spec"


@pytest.mark.parametrize(
    "text",
    ["* * * * *", "*/10 0-6 1,15 * mon-fri", "0 0 1 JAN ?", "5 4 * * sun", "@daily", "@every 1h30m", "0 0 29 2 *"],
)
def test_good_schedules(text: str) -> None:
    assert cron.problem(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * *", "found 4"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * * 13 *", "month"),
        ("* * * * fun", "day of week"),
        ("*/0 * * * *", "positive"),
        ("9-3 * * * *", "begins after its end"),
        ("@fortnightly", "unknown word"),
        ("@every soon", "duration"),
        ("@every 2562048h", "duration"),
        pytest.param("@every " + "9" * 5_000 + "s", "duration", id="every 9s"),
        pytest.param("9" * 5_000 + " * * * *", "neither a number", id="9s"),
        pytest.param("*/" + "9" * 5_000 + " * * * *", "positive number", id="step of 9s"),
        ("*/\u00b2 * * * *", "positive number"),
        ("TZ=UTC * * * * *", "timeZone"),
    ],
)
def test_bad_schedules(text: str, words: str) -> None:
    assert words in str(cron.problem(text))
    assert fields(created(cronjob(schedule=text))) == ["spec.schedule"]


def test_defaults_stay_out_of_the_job_template() -> None:
    answer = created(cronjob())
    assert answer.object is not None
    spec = answer.object["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    inner = spec["jobTemplate"]["spec"]
    assert set(inner) == {"parallelism", "template"}
    assert inner["template"]["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"schedule": ""}, ["spec.schedule"]),
        ({"concurrencyPolicy": "Never"}, ["spec.concurrencyPolicy"]),
        ({"startingDeadlineSeconds": -1}, ["spec.startingDeadlineSeconds"]),
        ({"failedJobsHistoryLimit": -1}, ["spec.failedJobsHistoryLimit"]),
        ({"timeZone": " "}, ["spec.timeZone"]),
        ({"timeZone": "Local"}, ["spec.timeZone"]),
        ({"timeZone": "Europe/Berlin"}, []),
        ({"of": job(manualSelector=True)}, [f"{ROOT}.manualSelector"]),
        ({"of": job(selector={"matchLabels": {"a": "b"}})}, [f"{ROOT}.selector"]),
        ({"of": job(parallelism=-1)}, [f"{ROOT}.parallelism"]),
        ({"of": job(pod={"restartPolicy": "Always"})}, [f"{ROOT}.template.spec.restartPolicy"]),
        (
            {"of": job(parallelism=2, scheduling=gang(3))},
            [f"{ROOT}.scheduling.schedulingPolicy.gang.minCount"],
        ),
    ],
)
def test_rules(spec: dict[str, Any], expected: list[str]) -> None:
    assert fields(created(cronjob(**spec))) == expected


def test_names_leave_room_for_the_run() -> None:
    assert fields(created(cronjob("c" * 52))) == []
    assert fields(created(cronjob("c" * 53))) == ["metadata.name"]


def test_every_other_part_may_change() -> None:
    old = cronjob(of=job(parallelism=3, completions=3))
    new = cronjob(schedule="@hourly", suspend=True, of=job(parallelism=5, completions=1, backoffLimit=0))
    assert fields(updated(new, old)) == []


def test_columns_and_warnings() -> None:
    obj = cronjob(of=job(parallelism=5, completions=2, scheduling=gang(4)))
    obj["status"] = {"active": [{"name": "t-1"}]}
    cells = {column.name: column.cell(obj) for column in CRONJOB.columns if column.cell}
    assert cells == {"Schedule": "*/10 * * * *", "Timezone": "<none>", "Suspend": False, "Active": 1}
    (warning,) = CRONJOB.warn(obj, Context.of("1.37"))
    assert warning.startswith(f"{ROOT}.scheduling.schedulingPolicy.gang.minCount")
