"""Gangs of JobSets, from the manifest to pods that start together (spec jobset 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.e2e.jobsets import (
    GANG,
    JOB,
    JOBSET,
    PREFIX,
    REPLICAS,
    ended,
    group_of,
    groups,
    jobs,
    jobset,
    live,
    no_groups,
    pod,
    pods,
    rj,
    told,
)

from kohort.api.kind import Object
from kohort.sim.cluster import Pool
from kohort.testing.cluster import Cluster

LATEST = pytest.mark.releases("1.37")
LONG = pod(None)
OFF: dict[str, Any] = {"gangConfig": {"gangMode": "Off"}}
WORKLOAD = ("scheduling.k8s.io/v1beta1", "Workload")
POD_GROUP = ("scheduling.k8s.io/v1beta1", "PodGroup")


def long(name: str, *shape: int | None, **more: Any) -> Object:
    return rj(name, *shape, runs=LONG, **more)  # type: ignore[arg-type]


async def templates(cluster: Cluster) -> list[str]:
    """Names of the templates of the one Workload."""
    (workload,) = await cluster.workloads()
    spec = workload["spec"]
    return [one["name"] for one in spec.get("podGroupTemplates") or spec.get("podGroups") or ()]


# ---- which groups there are


@pytest.mark.releases("1.35", "1.37")
@pytest.mark.parametrize(("scenario", "modes"), [(1, {}), (2, OFF)])
async def test_jobset_1_2_no_front_end(cluster: Cluster, scenario: int, modes: Object) -> None:
    await cluster.create(jobset("plain", long("a", 2, 3, **modes), **modes))
    found = await cluster.running(6)
    assert await no_groups(cluster)
    assert {group_of(one) for one in found} == {""}


@LATEST
async def test_jobset_8_off_below_a_gang_is_no_way_out(cluster: Cluster) -> None:
    await cluster.create(jobset("all", long("p", 1, 2), long("q", 1, 2, **OFF), **GANG))
    assert {group_of(one) for one in await cluster.running(4)} == {"pg-all"}


@LATEST
async def test_jobset_9_one_of_two_is_a_gang(cluster: Cluster) -> None:
    await cluster.create(jobset("some", long("p", 1, 2, **GANG), long("q", 1, 1), **OFF))
    assert sorted(map(group_of, await cluster.running(3))) == ["", "pg-some.p", "pg-some.p"]
    assert await templates(cluster) == ["pg-p"]


async def test_jobset_12_one_gang_over_everything(cluster: Cluster) -> None:
    await cluster.create(jobset("js", long("p", 2, 4), long("q", 2, 4), **GANG))
    found = await cluster.running(16)
    assert await groups(cluster) == {"pg-js": 16}
    assert len({group_of(one) for one in found}) == 1
    assert await templates(cluster) == ["pg-js"]


@pytest.mark.releases("1.36", "1.37")
async def test_jobset_13_a_gang_for_each_replicatedjob(cluster: Cluster) -> None:
    then = rj("q", 1, 3, runs=LONG, dependsOn=[{"name": "p", "status": "Complete"}], **GANG)
    await cluster.create(jobset("js", rj("p", 2, 4, runs=pod(3), **GANG), then))
    await cluster.running(8)
    assert await groups(cluster) == {"pg-js.p": 8, "pg-js.q": 3}  # both are there before a Job of q is
    assert "js-q-0" not in await jobs(cluster)
    found = await cluster.running(3, f"{PREFIX}replicatedjob-name=q")
    assert {group_of(one) for one in found} == {"pg-js.q"}


async def test_jobset_14_a_gang_for_each_job(cluster: Cluster, minor: str) -> None:
    await cluster.create(jobset("js", long("p", 2, 4, **REPLICAS), long("q", 3, 3, **REPLICAS)))
    found = await cluster.running(17)
    assert await templates(cluster) == ["pg-p", "pg-q"]
    of_q2 = {group_of(one) for one in found if one["metadata"]["name"].startswith("js-q-2-")}
    if await cluster.pod_groups():
        names = [f"pg-js.p.{n}" for n in range(2)] + [f"pg-js.q.{n}" for n in range(3)]
        assert sorted(await groups(cluster)) == names
        assert of_q2 == {"pg-js.q.2"}
    else:
        assert of_q2 == {"w-js/pg-q/2"}


@LATEST
async def test_jobset_15_more_replica_gangs_than_templates(cluster: Cluster) -> None:
    await cluster.create(jobset("js", long("s", 12, 2, **REPLICAS)))
    await cluster.running(24)
    assert await templates(cluster) == ["pg-s"]
    assert len(await groups(cluster)) == 12
    (event,) = await told(cluster, "PodGroupCreated")  # one for all of a template
    assert "12 PodGroups" in event["message"]


# scenario -> (JobSet, minimums)
COUNTS: dict[int, tuple[Object, dict[str, int]]] = {
    17: (jobset("js", long("m", 3, 8, 5, **GANG)), {"pg-js.m": 15}),
    18: (jobset("js", long("m", 2, 7, None, job={"completionMode": "NonIndexed"}, **GANG)), {"pg-js.m": 14}),
    19: (jobset("js", long("m", 4, None, None, **GANG)), {"pg-js.m": 4}),
    20: (jobset("js", long("m", 0, 2, **GANG), long("k", 1, 2, **GANG)), {"pg-js.k": 2}),
    27: (
        jobset("js", long("a", 1, 2), long("b", 1, 3, dependsOn=[{"name": "a", "status": "Ready"}]), scheduling={}),
        {"pg-js.a": 2, "pg-js.b": 3},
    ),
    56: (
        jobset(
            "js",
            *(long(name, 1, 2) for name in "abc"),
            podGroupPolicies=[{"name": "two", "targetReplicatedJobs": ["a", "b"]}],
        ),
        {"pg-js.two": 4},
    ),
}


@LATEST
@pytest.mark.parametrize("scenario", COUNTS)
async def test_jobset_minimums(cluster: Cluster, scenario: int) -> None:
    body, wanted = COUNTS[scenario]
    await cluster.create(body)

    async def made() -> bool:
        return await groups(cluster) == wanted

    await cluster.until(made, what=str(wanted))

    async def all_grouped() -> bool:
        in_groups = [one for one in await live(cluster) if group_of(one) and one["status"].get("phase") == "Running"]
        return len(in_groups) == sum(wanted.values())

    await cluster.until(all_grouped, what=f"{sum(wanted.values())} pods in groups")


@LATEST
async def test_jobset_21_gangs_without_pods(cluster: Cluster) -> None:
    await cluster.create(jobset("js", long("none", 0, 2, **GANG), long("k", 1, 1)))
    await cluster.running(1)
    assert await no_groups(cluster)


# ---- whose groups they are


@LATEST
async def test_jobset_30_a_users_own_group(cluster: Cluster) -> None:
    await cluster.create(workload("quill", 4), group("mine", "quill", 4))
    await cluster.create(jobset("quill", rj("n", 2, 2, runs=pod(None, **MINE))))
    assert {group_of(one) for one in await cluster.running(4)} == {"mine"}
    assert [one["metadata"]["name"] for one in await cluster.pod_groups()] == ["mine"]
    assert len(await cluster.workloads()) == 1


MINE: dict[str, Any] = {"schedulingGroup": {"podGroupName": "mine"}}


def workload(jobset: str, least: int) -> Object:
    reference = {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": jobset}
    listed = [{"name": "all", "schedulingPolicy": {"gang": {"minCount": least}}}]
    spec = {"controllerRef": reference, "podGroupTemplates": listed}
    return {"apiVersion": WORKLOAD[0], "kind": "Workload", "metadata": {"name": f"{jobset}-plan"}, "spec": spec}


def group(name: str, jobset: str, least: int) -> Object:
    reference = {"workloadName": f"{jobset}-plan", "templateName": "all"}
    spec = {"workloadRef": reference, "schedulingPolicy": {"gang": {"minCount": least}}}
    return {"apiVersion": POD_GROUP[0], "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


@LATEST
async def test_jobset_31_every_template_names_a_group(cluster: Cluster) -> None:
    await cluster.create(workload("own", 3), group("mine", "own", 3))
    runs = pod(None, **MINE)
    await cluster.create(jobset("own", rj("a", 1, 2, runs=runs), rj("b", 1, 1, runs=runs), **GANG))
    assert {group_of(one) for one in await cluster.running(3)} == {"mine"}
    assert [one["metadata"]["name"] for one in await cluster.pod_groups()] == ["mine"]
    await told(cluster, "UserProvidedWorkload")


@LATEST
async def test_jobset_36_37_names_do_not_clash(cluster: Cluster) -> None:
    await cluster.create(
        jobset("u", long("node", 1, 1, **GANG)),
        jobset("v", long("node", 1, 1, **GANG)),
        jobset("a", long("b", 1, 1, **GANG)),
        jobset("a-b", long("c", 1, 1), **GANG),
    )
    await cluster.running(4)
    assert sorted(await groups(cluster)) == ["pg-a-b", "pg-a.b", "pg-u.node", "pg-v.node"]


@LATEST
async def test_jobset_38_a_name_that_is_taken(cluster: Cluster) -> None:
    await cluster.create({**workload("t", 1), "metadata": {"name": "w-t"}})
    await cluster.create(jobset("t", long("p", 1, 2), **GANG))
    await told(cluster, "GangNameConflict")
    assert not await jobs(cluster)
    await cluster.delete(*WORKLOAD, "w-t")
    await cluster.running(2)
    assert await groups(cluster) == {"pg-t": 2}


@pytest.mark.releases("1.36")
async def test_jobset_57_jobs_of_136_make_groups_of_their_own(cluster: Cluster) -> None:
    """Why the JobSet names the group itself wherever it makes one."""
    await cluster.create(jobset("own", long("a", 1, 4)))
    await cluster.running(4)
    (made,) = await cluster.workloads()
    assert made["spec"]["controllerRef"]["kind"] == "Job"
    await cluster.create(jobset("ours", long("a", 1, 4), **GANG))
    await cluster.running(8)
    kinds = sorted(one["spec"]["controllerRef"]["kind"] for one in await cluster.workloads())
    assert kinds == ["Job", "JobSet"]


@LATEST
@pytest.mark.jobs
async def test_jobset_58_jobs_of_one_template_by_delegation(cluster: Cluster) -> None:
    """Upstream's second Job finds the name of its group taken and has no pods; ours has a group of its own."""
    await cluster.create(workload("pair", 2))
    notes = {"scheduling.k8s.io/group-template-name": "all"}
    await cluster.create(jobset("pair", rj("p", 2, 2, runs=LONG, notes=notes)))
    found = await cluster.running(4)
    assert len({group_of(one) for one in found}) == 2
    assert len(await cluster.workloads()) == 1


@LATEST
async def test_jobset_59_the_parent_has_named_the_group(cluster: Cluster) -> None:
    parent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "train"}}
    made = await cluster.create(parent)
    await cluster.create(workload("train", 2), group("mine", "train", 2))
    body = jobset("train", rj("node", 1, 2, runs=pod(None, **MINE)))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "train", "uid": made["metadata"]["uid"]}
    body["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    await cluster.create(body)
    assert {group_of(one) for one in await cluster.running(2)} == {"mine"}
    assert len(await cluster.workloads()) == 1
    assert len(await cluster.pod_groups()) == 1


@LATEST
async def test_jobset_63_managed_by_somebody_else(cluster: Cluster) -> None:
    await cluster.create(jobset("far", long("p", 1, 2), managedBy="example.com/other", **GANG))

    async def anything() -> Any:
        return await jobs(cluster) or not await no_groups(cluster) or await cluster.every("v1", "Service")

    await cluster.never(anything, 10)


@pytest.mark.releases("1.36", "1.37")
async def test_jobset_65_owners_labels_and_references(cluster: Cluster) -> None:
    made = await cluster.create(jobset("js", long("p", 2, 2, **REPLICAS)))
    await cluster.running(4)
    labels = {f"{PREFIX}jobset-name": "js", f"{PREFIX}jobset-uid": made["metadata"]["uid"]}
    owner = {"apiVersion": JOBSET[0], "kind": "JobSet", "name": "js", "uid": made["metadata"]["uid"]}
    (plan,) = await cluster.workloads()
    assert plan["spec"]["controllerRef"] == {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "js"}
    for obj in (plan, *await cluster.pod_groups()):
        assert obj["metadata"]["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
        own = {k: v for k, v in obj["metadata"]["labels"].items() if k in labels}
        assert own == labels
    second = (await cluster.pod_groups())[1]["metadata"]["labels"]
    assert (second[f"{PREFIX}replicatedjob-name"], second[f"{PREFIX}job-index"]) == ("p", "1")
    for job in (await jobs(cluster)).values():
        assert job["metadata"]["annotations"]["scheduling.k8s.io/group-template-name"] == "pg-p"


# ---- versions and trees


@pytest.mark.releases("1.35")
async def test_jobset_50_135_a_gang_inside_the_workload(cluster: Cluster) -> None:
    await cluster.create(jobset("aurora", long("ctl", 1, 2), long("wrk", 3, 5), **GANG))
    found = await cluster.running(17)
    (plan,) = await cluster.workloads()
    assert plan["spec"]["podGroups"] == [{"name": "pg-aurora", "policy": {"gang": {"minCount": 17}}}]
    assert {str(one["spec"]["workloadRef"]) for one in found} == {str({"name": "w-aurora", "podGroup": "pg-aurora"})}


@pytest.mark.releases("1.35")
async def test_jobset_51_135_keys_of_replicas(cluster: Cluster) -> None:
    await cluster.create(jobset("cobalt", long("slice", 3, 4, **REPLICAS)))
    found = await cluster.running(12)
    assert {one["spec"]["workloadRef"]["podGroupReplicaKey"] for one in found} == {"0", "1", "2"}
    (plan,) = await cluster.workloads()
    assert plan["spec"]["podGroups"] == [{"name": "pg-slice", "policy": {"gang": {"minCount": 4}}}]


@LATEST
async def test_jobset_52_a_tree_of_two_leaves(cluster: Cluster) -> None:
    listed = [{"targetReplicatedJobs": ["ctl"]}, {"targetReplicatedJobs": ["wrk"]}]
    tree = {"schedulingPolicy": {"gang": {}}, "replicatedJobs": listed}
    await cluster.create(jobset("aurora", long("ctl", 1, 2), long("wrk", 3, 5), scheduling=tree))
    await cluster.running(17)
    (root,) = await cluster.composites()
    assert root["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    leaves = await cluster.pod_groups()
    assert await groups(cluster) == {"pg-aurora.ctl": 2, "pg-aurora.wrk": 15}
    assert {one["spec"]["parentCompositePodGroupName"] for one in leaves} == {"cpg-aurora"}
    (plan,) = await cluster.workloads()
    made = [one["metadata"]["resourceVersion"] for one in (plan, root)]
    first = min(int(job["metadata"]["resourceVersion"]) for job in (await jobs(cluster)).values())
    assert int(made[0]) < first
    await told(cluster, "CompositePodGroupCreated")


@LATEST
async def test_jobset_53_a_tree_of_three_levels(cluster: Cluster) -> None:
    tree = {"schedulingPolicy": {"gang": {}}, "replicatedJobs": [{"targetReplicatedJobs": ["slice"], "job": {}}]}
    await cluster.create(jobset("flint", long("driver", 1, 1), long("slice", 2, 4), scheduling=tree))
    await cluster.running(9)
    parents = {one["metadata"]["name"]: one["spec"].get("parentCompositePodGroupName") for one in await all_of(cluster)}
    assert parents == {
        "cpg-flint": None,
        "cpg-flint.slice": "cpg-flint",
        "pg-flint.driver": "cpg-flint",
        "pg-flint.slice.0": "cpg-flint.slice",
        "pg-flint.slice.1": "cpg-flint.slice",
    }


async def all_of(cluster: Cluster) -> list[Object]:
    return [*await cluster.composites(), *await cluster.pod_groups()]


# ---- together or not at all


class TestRoom:
    @pytest.fixture
    def pools(self) -> Sequence[Pool]:
        return (Pool(name="small", count=5, capacity={"cpu": "3", "memory": "8Gi", "pods": "100"}),)

    @pytest.mark.releases("1.35", "1.36", "1.37")
    async def test_jobset_61_fifteen_of_seventeen_fit(self, cluster: Cluster) -> None:
        await cluster.create(jobset("aurora", long("ctl", 1, 2), long("wrk", 3, 5), **GANG))
        await pods(cluster, 17)

        async def bound() -> list[Object]:
            return [one for one in await cluster.pods() if one["spec"].get("nodeName")]

        await cluster.never(bound, 5)
        node = (await cluster.client.kind("v1", "Node").get("small-0"))["status"]
        node["capacity"]["cpu"] = node["allocatable"]["cpu"] = "5"
        await cluster.client.kind("v1", "Node").patch("small-0", {"status": node}, subresource="status")
        await cluster.running(17)

    @pytest.mark.releases("1.35", "1.36", "1.37")
    async def test_jobset_62_room_for_two_slices_of_three(self, cluster: Cluster) -> None:
        busy = jobset("busy", long("x", 1, 5))
        await cluster.create(busy)
        await cluster.running(5)
        await cluster.create(jobset("cobalt", long("slice", 3, 4, **REPLICAS)))
        found = [one for one in await cluster.running(13) if one["metadata"]["name"].startswith("cobalt-")]
        by_job: dict[str, int] = {}
        for one in found:
            job = one["metadata"]["labels"][f"{PREFIX}job-index"]
            by_job[job] = by_job.get(job, 0) + 1
        assert sorted(by_job.values()) == [4, 4]


@LATEST
async def test_jobset_45_the_end_takes_the_groups(cluster: Cluster) -> None:
    """By the first success of any; Jobs that still run go, then the groups, with events."""
    body = jobset("race", rj("a", 1, 2), long("b", 1, 2), successPolicy={"operator": "Any"}, **GANG)
    await cluster.create(body)
    await ended(cluster, "race")

    async def gone() -> bool:
        return await no_groups(cluster) and sorted(await jobs(cluster)) == ["race-a-0"]

    await cluster.until(gone, what="groups and the other Job going")
    await told(cluster, "PodGroupDeleted")
    await told(cluster, "WorkloadDeleted")


@LATEST
async def test_jobset_46_deleted_with_everything(cluster: Cluster) -> None:
    await cluster.create(jobset("js", long("p", 2, 2), **GANG))
    await cluster.running(4)
    await cluster.delete(*JOBSET, "js")

    async def empty() -> bool:
        left = [*await cluster.every(*JOB), *await cluster.pods(), *await cluster.every("v1", "Service")]
        return not left and await no_groups(cluster)

    await cluster.until(empty, what="everything going")
    assert not await cluster.events("PodGroupDeleted")  # nobody deleted it: it went with its owner
