"""What the objects are called and what they hold (spec job 8.2)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.compile.build import UID, compiled, gang, job, objects

from kohort.api.releases import Gate, default_gates
from kohort.gang.render import pod_link, render
from kohort.kinds.batch.compile.names import legal_template_name, pod_group_name, template_name, workload_name

ETL_UID = "11111111-2222-3333-4444-555555555555"


def test_t_21_golden_names() -> None:
    assert workload_name("trainer", UID) == "trainer-8564d45897"
    assert pod_group_name("trainer-8564d45897", "trainer-pgt-0") == "trainer-8564d45897-trainer-pgt-0-8c86bdd69"
    assert workload_name("etl", ETL_UID) == "etl-68d7549f75"
    assert pod_group_name("etl-68d7549f75", "etl-pgt-0") == "etl-68d7549f75-etl-pgt-0-745949b94b"
    assert pod_group_name("fleet-wl", "workers") == "fleet-wl-workers-85bf49d576"
    assert template_name("trainer") == "trainer-pgt-0"


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_t_21_the_same_in_both_releases(minor: str) -> None:
    made = objects(job("trainer", 2, 2, "Indexed"), minor)
    assert [one["metadata"]["name"] for one in made] == [
        "trainer-8564d45897",
        "trainer-8564d45897-trainer-pgt-0-8c86bdd69",
    ]


def test_t_22_another_uid_another_name() -> None:
    first, second = (objects(job("trainer", 2, uid=uid)) for uid in (UID, ETL_UID))
    names = [{one["metadata"]["name"] for one in made} for made in (first, second)]
    assert not names[0] & names[1]


@pytest.mark.parametrize(
    ("workload", "template", "digest", "kept"),
    [
        ("w" * 200, "t" * 200, "6f9f45db49", (121, 120)),
        ("wl", "t" * 250, "5c9dbd8778", (2, 239)),
        ("w" * 250, "tpl", "5598d65b5", (239, 3)),
    ],
)
def test_t_23_long_names(workload: str, template: str, digest: str, kept: tuple[int, int]) -> None:
    name = pod_group_name(workload, template)
    assert len(name) == 253
    assert name == f"{workload[: kept[0]]}-{template[: kept[1]]}-{digest}"


def test_t_23_long_job_names() -> None:
    assert len(workload_name("j" * 300, UID)) == 253
    assert workload_name("j" * 300, UID).endswith("-8564d45897")


def everything(**more: Any) -> dict[str, Any]:
    return job(
        "solver",
        6,
        6,
        "Indexed",
        scheduling=gang(
            schedulingConstraints={"topology": [{"key": "example.com/rack"}]},
            disruptionMode={"all": {}},
            resourceClaims=[{"name": "nic", "resourceClaimTemplateName": "nic-tpl"}],
        ),
        pod={"priorityClassName": "batch-high"},
        **more,
    )


def test_t_24_everything_at_once() -> None:
    workload, group = objects(everything())
    body = {
        "schedulingPolicy": {"gang": {"minCount": 6}},
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "disruptionMode": {"all": {}},
        "resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "nic-tpl"}],
        "priorityClassName": "batch-high",
    }
    assert workload["spec"]["podGroupTemplates"] == [{"name": "solver-pgt-0", **body}]
    reference = {"workloadName": workload["metadata"]["name"], "templateName": "solver-pgt-0"}
    assert group["spec"] == {"workloadRef": reference, **body}


def test_1_36_copies_the_policy_only() -> None:
    workload, group = objects(job("solver", 6, 6, "Indexed", pod={"priorityClassName": "batch-high"}), "1.36")
    assert workload["spec"]["podGroupTemplates"] == [
        {"name": "solver-pgt-0", "schedulingPolicy": {"gang": {"minCount": 6}}}
    ]
    assert set(group["spec"]) == {"podGroupTemplateRef", "schedulingPolicy"}


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_t_25_owners(minor: str) -> None:
    workload, group = objects(job("trainer", 2, 2, "Indexed"), minor)
    controller = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "trainer",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert workload["metadata"]["ownerReferences"] == [controller]
    first, second = group["metadata"]["ownerReferences"]
    assert first == controller
    assert set(second) == {"apiVersion", "kind", "name", "uid"}
    assert (second["kind"], second["name"]) == ("Workload", workload["metadata"]["name"])
    assert second["apiVersion"] == workload["apiVersion"]


def test_t_27_gates_that_erase() -> None:
    """The Job keeps what it asks for; its objects do not have it, and somebody says so."""
    some = default_gates("1.37") - {Gate.TOPOLOGY, Gate.CLAIMS, Gate.COMPOSITE}
    done = compiled(everything(), gates=some)
    (plan,) = done.plans
    workload, group = render(plan, "1.37").objects
    for block in (workload["spec"]["podGroupTemplates"][0], group["spec"]):
        assert "schedulingConstraints" not in block
        assert "resourceClaims" not in block
        assert block["disruptionMode"] == {"all": {}}
    assert [str(text).partition(":")[0] for text in done.warnings] == [
        "spec.scheduling.schedulingConstraints",
        "spec.scheduling.resourceClaims",
    ]


@pytest.mark.parametrize("name", ["nightly.report", "b" * 58, "c" * 63])
def test_t_29_names_that_make_a_bad_template(name: str) -> None:
    (error,) = compiled(job(name), parity=True).errors
    assert error.field == "metadata.name"
    assert "FailedWorkloadCreate" in error.message
    workload, _ = objects(job(name))
    made = workload["spec"]["podGroupTemplates"][0]["name"]
    assert made == legal_template_name(name)
    assert len(made) <= 63
    assert "." not in made
    assert made.endswith("-pgt-0")


def test_t_29_57_characters_still_work() -> None:
    workload, _ = objects(job("a" * 57), parity=True)
    assert workload["spec"]["podGroupTemplates"][0]["name"] == "a" * 57 + "-pgt-0"
    assert legal_template_name("a" * 57) == "a" * 57 + "-pgt-0"


def test_sanitised_names_differ_where_the_names_do() -> None:
    assert legal_template_name("a.b") != legal_template_name("a-b")
    assert legal_template_name("x" * 58) != legal_template_name("x" * 59)


def test_pods_are_told_their_group() -> None:
    (plan,) = compiled(job("trainer", 3, 3, "Indexed", scheduling=gang())).plans
    (member,) = plan.members
    assert (member.source, member.count, member.path) == ("Job trainer", 3, ("spec", "template"))
    assert member.group is not None
    assert pod_link(plan, member.group, "1.37") == {"schedulingGroup": {"podGroupName": member.group}}


@pytest.mark.parametrize(("p", "c", "count"), [(4, None, 4), (4, 2, 2), (0, None, 0), (2, 9, 2)])
def test_no_more_members_than_pods_at_once(p: int, c: int | None, count: int) -> None:
    (plan,) = compiled(job(p=p, c=c)).plans
    assert [member.count for member in plan.members] == [count]


def test_j_61_eviction_responders_and_groups_exclude_each_other() -> None:
    responders = {"evictionResponders": [{"name": "lab.example/responder", "priority": 5000}]}
    done = compiled(job(pod=responders), gates=default_gates("1.37") | {Gate.EVICTION_REQUEST})
    assert done.plans
    assert "no pod can be created" in str(done.warnings[0])
