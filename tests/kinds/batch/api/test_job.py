"""The rest of a Job's rules: what the recordings do not show one by one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.api.build import created, fields, gang, indexed, job, updated

from kohort.api.kind import Context
from kohort.kinds.batch.api import indexes
from kohort.kinds.batch.api.job import JOB

Object = dict[str, Any]
CTX = Context.of("1.37")


def test_defaults() -> None:
    answer = created(job())
    assert answer.object is not None
    spec = answer.object["spec"]
    assert {
        name: spec[name] for name in ("parallelism", "completions", "backoffLimit", "completionMode", "suspend")
    } == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
    }
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"parallelism": 2}, {"parallelism": 2, "completions": None}),
        ({"completions": 2}, {"parallelism": 1, "completions": 2}),
        ({"backoffLimitPerIndex": 1, "completionMode": "Indexed", "completions": 1}, {"backoffLimit": 2**31 - 1}),
    ],
)
def test_defaults_depend_on_each_other(given: Object, expected: Object) -> None:
    answer = created(job(**given))
    assert answer.object is not None
    assert {name: answer.object["spec"].get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"activeDeadlineSeconds": -1}, ["spec.activeDeadlineSeconds"]),
        ({"ttlSecondsAfterFinished": -1}, ["spec.ttlSecondsAfterFinished"]),
        ({"backoffLimit": -1}, ["spec.backoffLimit"]),
        ({"completions": -1}, ["spec.completions"]),
        ({"maxFailedIndexes": 1, "backoffLimitPerIndex": 1}, ["spec.backoffLimitPerIndex", "spec.maxFailedIndexes"]),
        ({"managedBy": "a.example/"}, ["spec.managedBy"]),
        ({"pod": {"restartPolicy": "Sometimes"}}, ["spec.template.spec.restartPolicy"]),
        ({"pod": {"containers": []}}, ["spec.template.spec.containers"]),
    ],
)
def test_bounds(spec: Object, expected: list[str]) -> None:
    assert fields(created(job(**spec))) == expected


def test_every_error_is_reported_at_once() -> None:
    answer = created(job(parallelism=-1, backoffLimit=-1, scheduling=gang(3), pod={"restartPolicy": "Always"}))
    assert fields(answer) == [
        "spec.backoffLimit",
        "spec.parallelism",
        "spec.scheduling.schedulingPolicy.gang.minCount",
        "spec.template.spec.restartPolicy",
    ]


def test_a_job_without_a_spec() -> None:
    empty = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
    assert fields(created(empty)) == ["spec.template.spec.containers", "spec.template.spec.restartPolicy"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"action": "Ignore", "onExitCodes": {"operator": "In", "values": []}}, ["onExitCodes.values"]),
        ({"action": "Ignore", "onExitCodes": {"operator": "Is", "values": [1]}}, ["onExitCodes.operator"]),
        ({"onExitCodes": {"operator": "In", "values": [1]}}, ["action"]),
        ({"action": "Count", "onPodConditions": [{"type": "T", "status": "Maybe"}]}, ["onPodConditions[0].status"]),
    ],
)
def test_failure_policy(rule: Object, expected: list[str]) -> None:
    found = fields(created(job(podFailurePolicy={"rules": [rule]})))
    assert found == [f"spec.podFailurePolicy.rules[0].{place}" for place in expected]


@pytest.mark.parametrize("text", ["2-1", "0,0", "a", "0-1-2", "0,,1", "-1", "9"])
def test_bad_index_lists(text: str) -> None:
    with pytest.raises(indexes.BadIndexesError):
        indexes.parse(text, 9)


@pytest.mark.parametrize(
    ("listed", "text"), [([], ""), ([3], "3"), ([0, 1], "0,1"), ([0, 1, 2], "0-2"), ([5, 0, 2, 3, 4, 7], "0,2-5,7")]
)
def test_index_lists_are_written_short_and_read_back(listed: list[int], text: str) -> None:
    assert str(indexes.IndexSet.of(listed)) == text
    assert indexes.count(indexes.parse(text, 10)) == len(listed)


# ---- update


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"suspend": True}, []),
        ({"backoffLimit": 1}, []),
        ({"activeDeadlineSeconds": 9}, []),
        ({"completionMode": "Indexed"}, ["spec.completionMode"]),
        ({"managedBy": "a.example/b"}, ["spec.managedBy"]),
        ({"pod": {"nodeSelector": {"disk": "fast"}}}, ["spec.template"]),
    ],
)
def test_what_may_change(change: Object, expected: list[str]) -> None:
    old = job(parallelism=1, completions=1)
    assert fields(updated(job(**{"parallelism": 1, "completions": 1, **change}), old)) == expected


REDIRECT = {"nodeSelector": {"disk": "fast"}, "tolerations": [{"key": "k", "operator": "Exists"}]}
RESOURCES = {"containers": [{"name": "main", "image": "lab.example/img:1", "resources": {"requests": {"cpu": "1"}}}]}


@pytest.mark.parametrize(
    ("minor", "status", "pod", "expected"),
    [
        ("1.37", {}, REDIRECT, []),
        ("1.37", {"startTime": "2026-11-15T00:00:00Z"}, REDIRECT, []),
        ("1.37", {"active": 1}, REDIRECT, ["spec.template"]),
        ("1.37", {}, RESOURCES, []),
        ("1.37", {}, {"serviceAccountName": "other"}, ["spec.template.spec"]),
        ("1.35", {}, REDIRECT, []),
        ("1.35", {"startTime": "2026-11-15T00:00:00Z"}, REDIRECT, ["spec.template"]),
        ("1.35", {}, RESOURCES, ["spec.template.spec"]),
    ],
)
def test_a_suspended_job_may_be_sent_elsewhere(minor: str, status: Object, pod: Object, expected: list[str]) -> None:
    old = {**job(suspend=True), "status": status}
    assert fields(updated(job(suspend=True, pod=pod), old, minor)) == expected


# ---- status


def test_succeeded_may_shrink_only_with_an_elastic_job() -> None:
    status: Object = {"startTime": "2026-11-15T00:00:00Z", "succeeded": 2}
    less = {**status, "succeeded": 1}
    for obj, expected in ((indexed(4), []), (job(parallelism=2, completions=4), ["status.succeeded"])):
        old = {**obj, "status": status}
        assert fields(updated({**obj, "status": less}, old, subresource="status")) == expected


def test_overlapping_index_lists() -> None:
    obj = indexed(5, backoffLimitPerIndex=1)
    status = {"completedIndexes": "0-2", "failedIndexes": "2,4"}
    answer = updated({**obj, "status": status}, obj, subresource="status")
    assert fields(answer) == ["status.failedIndexes"]
    assert "overlap at index: 2" in answer.causes[0].message


@pytest.mark.parametrize(("suspended", "expected"), [(True, []), (False, ["status.startTime"])])
def test_start_time_moves_only_while_suspended(suspended: bool, expected: list[str]) -> None:
    obj = job(suspend=suspended)
    old = {**obj, "status": {"startTime": "2026-11-15T00:00:00Z"}}
    later = {**obj, "status": {"startTime": "2026-11-15T01:00:00Z"}}
    assert fields(updated(later, old, subresource="status")) == expected


def test_completion_before_start() -> None:
    conditions = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
    status = {
        "startTime": "2026-11-15T01:00:00Z",
        "completionTime": "2026-11-15T00:00:00Z",
        "conditions": conditions,
    }
    obj = job()
    assert fields(updated({**obj, "status": status}, obj, subresource="status")) == ["status.completionTime"]


# ---- what people read


def test_columns() -> None:
    obj = job(parallelism=3)
    obj["status"] = {"succeeded": 1, "startTime": "2026-11-15T00:00:00Z", "completionTime": "2026-11-15T00:02:05Z"}
    cells = {column.name: column.cell(obj) for column in JOB.columns if column.cell}
    assert cells == {"Status": "Running", "Completions": "1/1 of 3", "Duration": "2m5s"}
    obj["status"]["conditions"] = [{"type": "Complete", "status": "True"}]
    obj["spec"]["completions"] = 4
    cells = {column.name: column.cell(obj) for column in JOB.columns if column.cell}
    assert (cells["Status"], cells["Completions"]) == ("Complete", "1/4")


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (job("a.b"), "Pod names and hostnames"),
        (job(parallelism=8, completions=3, scheduling=gang(5)), "the Job cannot start"),
        (job(scheduling=gang(), pod={"schedulingGroup": {"podGroupName": "ext"}}), "ignored"),
    ],
)
def test_warnings(obj: Object, words: str) -> None:
    (warning,) = JOB.warn(obj, CTX)
    assert words in warning


def test_no_warning_without_reason() -> None:
    assert JOB.warn(job(parallelism=3, completions=3, scheduling=gang(3)), CTX) == []


def test_a_count_beside_indexes_that_are_out_of_range_is_refused_too() -> None:
    """As a real server says it: indexes that cannot be read are none, and every count is more than that."""
    rules = [{"succeededIndexes": "0-3", "succeededCount": 1}]
    answer = created(job(parallelism=2, completions=2, completionMode="Indexed", successPolicy={"rules": rules}))
    place = "spec.successPolicy.rules[0]"
    assert {cause.field for cause in answer.causes} == {f"{place}.succeededIndexes", f"{place}.succeededCount"}
