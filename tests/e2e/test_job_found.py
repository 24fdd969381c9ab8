"""Workloads and PodGroups that are there already, and who may use them: spec job 8.3 and 8.7."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.e2e.jobs import (
    JOB,
    TEMPLATE,
    WORKLOADS,
    active,
    controlled_by,
    gang,
    group_of,
    in_group,
    job,
    least,
    live,
    owner,
    template,
    told,
    workload,
)

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

only_36 = pytest.mark.releases("1.36")
only_37 = pytest.mark.releases("1.37")
ours = pytest.mark.jobs
OLD = "scheduling.k8s.io/v1alpha2"


def pod_group(name: str, of: str, owners: list[Object]) -> Object:
    spec = {"workloadRef": {"workloadName": of, "templateName": "t"}, "schedulingPolicy": {"basic": {}}}
    meta = {"name": name, "ownerReferences": owners}
    return {"apiVersion": WORKLOADS, "kind": "PodGroup", "metadata": meta, "spec": spec}


# ---- 8.3


@only_36
async def test_t_31_a_foreign_workload_means_stand_aside(cluster: Cluster) -> None:
    body = workload("theirs", ("batch", "Job", "five"), template("t", 5))
    foreign = await cluster.create({**body, "apiVersion": OLD})
    await cluster.create(job("five", 5))
    await active(cluster, "five", 5)
    assert {group_of(pod) for pod in await live(cluster, "five")} == {None}
    assert await cluster.workloads() == [foreign]
    assert await cluster.pod_groups() == []


@only_37
@ours
async def test_t_32_a_foreign_workload_is_used(cluster: Cluster) -> None:
    foreign = await cluster.create(workload("theirs", ("batch", "Job", "five"), template("t", 2)))
    await cluster.create(gang("five", 5))
    found, group = await in_group(cluster, "five", 5)
    assert found == foreign, "it is never changed"
    assert group["spec"]["workloadRef"] == {"workloadName": "theirs", "templateName": "t"}
    assert least(group) == 2


async def ambiguous(cluster: Cluster, kind: str) -> None:
    """A Job with two Workloads or two groups, from before its pods: it is suspended, then let go."""
    made = await cluster.create(gang("split", 2, suspend=True))
    await told(cluster, "PodGroupCreated")
    (own,) = await cluster.workloads()
    owners = [controlled_by(made)]
    if kind == "Workload":
        await cluster.create(workload("second", ("batch", "Job", "split"), template("t", 2), owners=owners))
    else:
        await cluster.create(pod_group("second", own["metadata"]["name"], owners))
    await cluster.patch(*JOB, "split", {"spec": {"suspend": False}})


@only_37
@pytest.mark.parametrize("kind", ["Workload", "PodGroup"])
async def test_t_33_t_35_two_of_its_own(cluster: Cluster, kind: str) -> None:
    await ambiguous(cluster, kind)
    await active(cluster, "split", 2)
    assert {group_of(pod) for pod in await live(cluster, "split")} == {None}
    assert len(await cluster.workloads()) + len(await cluster.pod_groups()) == 3, "nothing more is made"


@only_37
@ours
@pytest.mark.parametrize("kind", ["Workload", "PodGroup"])
async def test_t_33_t_35_what_is_ambiguous_is_told(cluster: Cluster, kind: str) -> None:
    await ambiguous(cluster, kind)
    await told(cluster, f"Ambiguous{kind}")


@only_37
async def test_t_36_the_workload_of_another_uid_is_never_used(cluster: Cluster) -> None:
    """It names a Job of that name, but is controlled by another."""
    elder = await cluster.create(gang("elder", 2, managedBy="corp.example/later"))
    old = workload("old", ("batch", "Job", "again"), template("t", 7), owners=[controlled_by(elder)])
    old = await cluster.create(old)
    made = await cluster.create(gang("again", 2))
    await active(cluster, "again", 2)
    (new,) = [one for one in await cluster.workloads() if one != old]
    assert new["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert least(new) == 2


@only_37
async def test_t_37_a_foreign_group_of_the_own_workload(cluster: Cluster) -> None:
    await cluster.create(gang("solver", 2, suspend=True))
    await told(cluster, "PodGroupCreated")
    (own,) = await cluster.workloads()
    (group,) = await cluster.pod_groups()
    await cluster.create(pod_group("foreign", own["metadata"]["name"], []))
    await cluster.patch(*JOB, "solver", {"spec": {"suspend": False}})
    await active(cluster, "solver", 2)
    assert {group_of(pod) for pod in await live(cluster, "solver")} == {group["metadata"]["name"]}


@only_37
async def test_t_38_what_was_brought_outlives_the_job(cluster: Cluster) -> None:
    foreign = await cluster.create(workload("theirs", ("batch", "Job", "five"), template("t", 2)))
    await cluster.create(gang("five", 5))
    await active(cluster, "five", 5)
    await cluster.delete(*JOB, "five", propagation="Background")
    await cluster.gone(*JOB)
    await cluster.gone("v1", "Pod")

    async def collected() -> bool:
        return not await cluster.pod_groups() and await cluster.workloads() == [foreign]

    await cluster.until(collected)


@only_37
@pytest.mark.parametrize(
    "of", [("apps", "Deployment", "five"), ("batch", "Job", "other"), ("batch", "CronJob", "five")]
)
async def test_t_39_references_match_in_full(cluster: Cluster, of: tuple[str, str, str]) -> None:
    foreign = await cluster.create(workload("theirs", of, template("t", 2)))
    await cluster.create(gang("five", 5))
    await active(cluster, "five", 5)
    own = [one for one in await cluster.workloads() if one != foreign]
    assert [least(one) for one in own] == [5]


# ---- 8.7: under another controller


async def delegated(cluster: Cluster, name: str, above: Object, group: str, **more: Any) -> Object:
    meta = {"ownerReferences": [above], "annotations": {TEMPLATE: group}}
    return await cluster.create(gang(name, 3, meta=meta, **more))


def fleet(*templates: Object) -> Object:
    return workload("fleet-wl", ("apps", "Deployment", "f1"), *templates)


@only_37
async def test_t_80_t_81_the_parents_template_decides(cluster: Cluster) -> None:
    above = await owner(cluster)
    await cluster.create(fleet(template("other"), template("workers", 3)))
    made = await delegated(cluster, "child", above, "workers", suspend=True)
    looks = itertools.count()

    async def grouped() -> bool:
        """kube-controller-manager may see the Job before the Workload, and then looks again only when it changes."""
        if not await cluster.pod_groups():
            await cluster.patch(*JOB, "child", {"metadata": {"labels": {"look": str(next(looks))}}})
        return bool(await cluster.pod_groups())

    await cluster.until(grouped)
    await cluster.patch(*JOB, "child", {"spec": {"suspend": False}})
    _, group = await in_group(cluster, "child", 3)
    assert [one["uid"] for one in group["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]
    assert group["spec"]["workloadRef"] == {"workloadName": "fleet-wl", "templateName": "workers"}
    assert least(group) == 3
    templates = [template("other"), template("workers", 2)]
    await cluster.patch(WORKLOADS, "Workload", "fleet-wl", {"spec": {"podGroupTemplates": templates}})
    await cluster.patch(*JOB, "child", {"spec": {"activeDeadlineSeconds": 9999}})  # something to look again for

    async def follows() -> bool:
        return least((await cluster.pod_groups())[0]) == 2

    await cluster.until(follows)


@only_37
@ours
async def test_t_82_the_parents_workload_is_waited_for(cluster: Cluster) -> None:
    above = await owner(cluster)
    await delegated(cluster, "child", above, "workers")
    await told(cluster, "ParentWorkloadNotFound")
    await cluster.sleep(4)
    assert await cluster.pods() == []
    await cluster.create(fleet(template("workers", 3)))
    _, group = await in_group(cluster, "child", 3)
    assert least(group) == 3


@only_37
@ours
async def test_t_83_the_template_is_waited_for(cluster: Cluster) -> None:
    above = await owner(cluster)
    await cluster.create(fleet(template("other", 3)))
    await delegated(cluster, "child", above, "workers")
    await told(cluster, "GroupTemplateNotFound")
    await cluster.sleep(4)
    assert await cluster.pods() == []


@only_37
@ours
async def test_t_84_siblings_share_a_template(cluster: Cluster) -> None:
    above = await owner(cluster)
    await cluster.create(fleet(template("workers", 3)))
    for name in ("first", "second"):
        await delegated(cluster, name, above, "workers")
    names = set()
    for name in ("first", "second"):
        await active(cluster, name, 3)
        names |= {group_of(pod) for pod in await live(cluster, name)}
    assert names == {one["metadata"]["name"] for one in await cluster.pod_groups()}
    assert len(names) == 2


@only_37
@ours
async def test_t_85_the_workload_of_a_grandparent(cluster: Cluster) -> None:
    """A JobSet stands between, and has no Workload itself."""
    top = await owner(cluster)
    replicated = {"name": "w", "template": {"spec": job("x", 1)["spec"]}}
    middle = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "middle", "ownerReferences": [top]},
        "spec": {
            "managedBy": "corp.example/later",
            "replicatedJobs": [replicated],
        },
    }
    made = await cluster.create(middle)
    await cluster.create(fleet(template("workers", 3)))
    names = {"apiVersion": made["apiVersion"], "kind": "JobSet", "name": "middle", "uid": made["metadata"]["uid"]}
    await delegated(cluster, "child", {**names, "controller": True}, "workers")
    _, group = await in_group(cluster, "child", 3)
    assert group["spec"]["workloadRef"]["workloadName"] == "fleet-wl"


@only_37
@ours
async def test_t_86_the_group_joins_its_parent(cluster: Cluster) -> None:
    above = await owner(cluster)
    await cluster.create(fleet(template("workers", 3)))
    notes = {TEMPLATE: "workers", "scheduling.k8s.io/parent-compositepodgroup": "cpg-7"}
    await cluster.create(gang("child", 3, meta={"ownerReferences": [above], "annotations": notes}))
    _, group = await in_group(cluster, "child", 3)
    assert group["spec"]["parentCompositePodGroupName"] == "cpg-7"


@only_37
async def test_t_87_an_empty_name_is_the_first_template(cluster: Cluster) -> None:
    above = await owner(cluster)
    await cluster.create(fleet(template("first", 2), template("second", 3)))
    await delegated(cluster, "child", above, "")
    _, group = await in_group(cluster, "child", 3)
    assert group["spec"]["workloadRef"]["templateName"] == "first"
    assert least(group) == 2


@only_37
@ours
async def test_t_34_a_workload_of_another_structure_starts_nothing(cluster: Cluster) -> None:
    """A foreign one here: no API lets a Job's own Workload lose its structure."""
    await cluster.create(workload("theirs", ("batch", "Job", "five"), template("a", 2), template("b", 2)))
    await cluster.create(gang("five", 2))
    await told(cluster, "UnsupportedWorkloadStructure")
    await active(cluster, "five", 2)
    assert {group_of(pod) for pod in await live(cluster, "five")} == {None}
