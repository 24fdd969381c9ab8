"""Which Jobs get a Workload and a PodGroup (spec job 8.1)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.compile.build import DELEGATED, compiled, gang, job, minimums, objects, owner

from kohort.api.releases import Gate, default_gates

CRONJOB = owner("CronJob", "nightly", "batch/v1")
JOBSET = owner("JobSet", "set", "jobset.x-k8s.io/v1alpha2")

# number, minor, Job, settings, minimum of both objects ("none": neither is made)
ROWS: list[tuple[str, str, dict[str, Any], dict[str, Any], int | str | None]] = [
    ("T-01", "1.36", job(p=5, c=5, mode="Indexed"), {}, 5),
    ("T-02", "1.36", job(p=5, c=5, mode="NonIndexed"), {}, "none"),
    ("T-03", "1.36", job(p=1, c=1, mode="Indexed"), {}, "none"),
    ("T-04", "1.36", job(p=3, c=9, mode="Indexed"), {}, "none"),
    ("T-05", "1.36", job(p=5, c=5), {}, "none"),
    ("T-06", "1.36", job(p=5, c=5, mode="Indexed", group="ext"), {}, "none"),
    ("T-07", "1.36", job(p=5, c=5, mode="Indexed", owners=(JOBSET,)), {}, 5),
    ("T-08", "1.37", job(p=5, c=5, mode="Indexed"), {}, None),
    ("T-09", "1.37", job(p=1, c=1, mode="NonIndexed"), {}, None),
    ("T-10", "1.37", job(p=3, scheduling=gang()), {}, 3),
    ("T-11", "1.37", job(p=2, c=0), {}, None),
    ("T-12", "1.37", job(p=0, scheduling=gang()), {}, 1),
    ("T-13", "1.37", job(p=2, scheduling={}), {}, None),
    ("T-15", "1.37", job(p=2, scheduling=gang(2), group="ext"), {}, "none"),
    ("T-16", "1.37", job(p=2, owners=(owner("Foo", "f", controller=False),)), {}, None),
    ("T-17", "1.37", job(p=2, scheduling=gang(), owners=(JOBSET,)), {}, "none"),
    ("T-18", "1.37", job(p=2, scheduling=gang(), owners=(CRONJOB,)), {"parity": True}, "none"),
    ("T-18 ours", "1.37", job(p=2, scheduling=gang(), owners=(CRONJOB,)), {}, 2),
    ("T-18 opaque", "1.37", job(p=2, owners=(CRONJOB,)), {"cronjob_transparent": False}, "none"),
    ("T-18 1.36", "1.36", job(p=2, c=2, mode="Indexed", owners=(CRONJOB,)), {}, 2),
    ("T-19", "1.37", job(p=2, annotations={DELEGATED: "workers"}), {}, None),
    ("T-20", "1.37", job(p=2, scheduling=gang(), managedBy="corp.example/runner"), {}, "none"),
    ("T-20 1.36", "1.36", job(p=2, c=2, mode="Indexed", managedBy="corp.example/runner"), {}, "none"),
    ("T-20 built-in", "1.37", job(p=2, managedBy="kubernetes.io/job-controller"), {}, None),
    # Another source of the policy than the generation's own.
    ("inferred", "1.37", job(p=4, c=4, mode="Indexed"), {"policy_source": "Inferred"}, 4),
    ("inferred, basic shape", "1.37", job(p=4, c=8, mode="Indexed"), {"policy_source": "Inferred"}, "none"),
    ("declared", "1.36", job(p=4, c=8, mode="Indexed"), {"policy_source": "Declared"}, None),
]


@pytest.mark.parametrize(("number", "minor", "obj", "settings", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_who_gets_a_group(
    number: str, minor: str, obj: dict[str, Any], settings: dict[str, Any], expected: int | str | None
) -> None:
    made = objects(obj, minor, **settings)
    if expected == "none":
        assert made == []
        assert compiled(obj, minor, **settings).reason
    else:
        assert [one["kind"] for one in made] == ["Workload", "PodGroup"]
        assert minimums(made) == [expected, expected]


def test_t_14_gate_off() -> None:
    off = default_gates("1.37") - {Gate.JOB}
    done = compiled(job(p=2, scheduling=gang()), "1.37", gates=off)
    assert not done.plans
    assert done.reason == "feature gate WorkloadWithJob is off"


def test_1_35_has_no_integration() -> None:
    done = compiled(job(p=5, c=5, mode="Indexed"), "1.35")
    assert not done.plans
    assert "1.35 makes no groups for Jobs" in done.reason


def test_1_35_on_request() -> None:
    """Whoever names a source gets the Workload of 1.35; there are no PodGroups."""
    (made,) = objects(job(p=5, c=5, mode="Indexed"), "1.35", policy_source="Inferred")
    assert made["apiVersion"] == "scheduling.k8s.io/v1alpha1"
    assert made["spec"]["podGroups"] == [{"name": "trainer-pgt-0", "policy": {"gang": {"minCount": 5}}}]


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (job(p=2, group="ext"), "the pod template names a group of its own (ext)"),
        (job(p=2, owners=(JOBSET,)), "its owner, JobSet set, decides, and has not asked for a group"),
        (job(p=2, managedBy="a.example/b"), "the Job is managed by a.example/b"),
    ],
)
def test_reasons_say_who_decided(obj: dict[str, Any], reason: str) -> None:
    assert compiled(obj).reason == reason


def test_finished_jobs_are_left_alone() -> None:
    status = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
    assert compiled(job(status=status)).reason == "the Job has finished"


@pytest.mark.parametrize(
    "status",
    [
        {"startTime": "2026-11-15T00:00:00Z"},
        {"succeeded": 1},
        {"failed": 1},
        {"conditions": [{"type": "Suspended", "status": "False"}]},
    ],
)
def test_t_43_t_44_only_new_jobs_get_a_group(status: dict[str, Any]) -> None:
    done = compiled(job(p=2, scheduling=gang(), status=status))
    assert not done.plans
    assert "only new Jobs get one" in done.reason


def test_a_job_that_is_being_deleted_gets_nothing() -> None:
    obj = job(p=2)
    obj["metadata"]["deletionTimestamp"] = "2026-11-15T00:00:00Z"
    assert not compiled(obj).plans
    assert compiled(obj, parity=True).plans


def test_t_50_created_suspended() -> None:
    assert minimums(objects(job(p=3, scheduling=gang(), suspend=True))) == [3, 3]
