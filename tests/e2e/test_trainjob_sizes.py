"""How many pods a gang of a TrainJob has, what its groups ask for and how they are called (spec trainjob 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.e2e import training as t
from tests.kinds.trainer.compile.build import initializer, rjob, trainer

from kohort.api.kind import Object
from kohort.api.releases import release
from kohort.kinds.trainer.api.constants import COMPOSITE_GATE, GATE
from kohort.kinds.trainer.compile.names import Namer
from kohort.testing.cluster import Cluster

LAUNCHER, NODE = trainer("launcher"), rjob("node")
AS_NODE = {"mpi": {"runLauncherAsNode": True}}
DATASET = initializer("dataset-initializer")
GROUPS = pytest.mark.releases("1.36", "1.37")  # that have groups as objects
NEWEST = pytest.mark.releases("1.37")


def of(*names: str, **more: Any) -> Object:
    return {"targetReplicatedJobs": list(names), **more}


def explicit(*entries: Object, **whole: Any) -> Object:
    return {"scheduling": {**whole, "replicatedJobs": list(entries)}}


def pair(name: str, nodes: int | None, body: Object, **spec: Any) -> tuple[Object, Object]:
    """A runtime and a job of it, both of this name."""
    body["metadata"]["name"] = name
    ref = {"name": name, "kind": "TrainingRuntime"}
    return body, t.trainjob(nodes, name=name, runtimeRef=ref, **spec)


async def workload_of(cluster: Cluster, name: str) -> Object:
    async def look() -> Object | None:
        return next((one for one in await cluster.workloads() if one["metadata"]["name"] == name), None)

    found = await cluster.until(look, what=f"Workload {name}")
    assert found is not None
    return found


async def sizes(cluster: Cluster, name: str) -> dict[str, int]:
    """ReplicatedJob -> its pods."""

    async def look() -> Object | None:
        return await cluster.get(*t.JOBSET, name)

    found = await cluster.until(look, what=f"JobSet {name}")
    assert found is not None
    jobs = found["spec"]["replicatedJobs"]
    return {one["name"]: one["replicas"] * one["template"]["spec"]["parallelism"] for one in jobs}


async def test_2_3_4_16_nodes_of_job_and_runtime(cluster: Cluster) -> None:
    """The job's number wins over the runtime's; without any it is one."""
    cases = {
        "s2": (None, t.runtime(ml={"numNodes": 6}), {"trainer": 6}, {"node": 6}),
        "s3": (None, t.runtime(ml={}), {"trainer": 1}, {"node": 1}),
        "s4": (3, t.runtime(ml={"numNodes": 9, "torch": {}}), {"trainer": 3}, {"node": 3}),
        "s16": (
            None,
            t.runtime(LAUNCHER, NODE, ml={"numNodes": 5, "mpi": {}}),
            {"trainer": 6},
            {"launcher": 1, "node": 5},
        ),
    }
    for name, (nodes, body, _, _) in cases.items():
        await cluster.create(*pair(name, nodes, body))
    await cluster.running(6 + 1 + 3 + 6)
    for name, (_, _, groups, pods) in cases.items():
        assert t.groups_of(await workload_of(cluster, name)) == groups, name
        assert await sizes(cluster, name) == pods, name


async def test_14_15_a_launcher_that_is_a_node(cluster: Cluster) -> None:
    await cluster.create(*pair("s14", 12, t.runtime(LAUNCHER, NODE, ml=AS_NODE)))
    await cluster.create(*pair("s15", 1, t.runtime(LAUNCHER, NODE, ml=AS_NODE)))
    await cluster.running(12 + 2)
    assert await sizes(cluster, "s14") == {"launcher": 1, "node": 11}
    assert await sizes(cluster, "s15") == {"launcher": 1, "node": 1}
    assert t.groups_of(await workload_of(cluster, "s14")) == {"trainer": 12}
    assert t.groups_of(await workload_of(cluster, "s15")) == {"trainer": 2}


async def test_19_27_33_70_groups_of_a_runtime(cluster: Cluster) -> None:
    """An initializer that no job fills, the whole job, a group for a Job, and resources that nobody can apply."""
    bare = t.runtime(trainer(parallelism=4))
    del bare["spec"]["mlPolicy"]
    cases = {
        "s19": ({}, None, t.runtime(DATASET, trainer()), {"initializer": None, "trainer": 1}),
        "s27": ({}, 5, t.runtime(rjob("helper", parallelism=2), trainer(), workload={"scheduling": {}}), {"s27": 7}),
        "s33": ({}, 4, t.runtime(workload=explicit(of("node", job={}))), {"node-0": 4}),
        "s70": ({"trainer": {"resourcesPerNode": {"requests": {"cpu": "2"}}}}, None, bare, {"trainer": 4}),
    }
    for name, (spec, nodes, body, _) in cases.items():
        await cluster.create(*pair(name, nodes, body, **spec))
    await cluster.running(2 + 7 + 4 + 4)
    for name, (_, _, _, groups) in cases.items():
        assert t.groups_of(await workload_of(cluster, name)) == groups, name
    ignored = await cluster.get(*t.JOBSET, "s70")
    assert ignored is not None
    assert not t.pod_template(ignored)["containers"][0].get("resources")


@GROUPS
async def test_48_49_names_of_groups(cluster: Cluster) -> None:
    """A hash over namespace, job, uid and template; too long a name is cut in front of it."""
    both = of("dataset-initializer", "model-initializer", schedulingPolicy={"basic": {}})
    jobs = DATASET, initializer("model-initializer"), trainer()
    await cluster.create(*pair("long", 2, t.runtime(*jobs, workload=explicit(both, of("node")))))
    await cluster.create(*pair("j" * 40, 2, t.runtime()))
    await cluster.running(4 + 2)
    stored = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await cluster.every(*t.TRAINJOB)}
    templates = {"long": ["dataset-initializer-model-initializer", "node"], "j" * 40: ["trainer"]}
    wanted = {
        Namer(cluster.namespace, job, stored[job]).group(template)
        for job, names in templates.items()
        for template in names
    }
    found = {one["metadata"]["name"] for one in await cluster.pod_groups()}
    assert found == wanted
    assert all(len(name) <= 63 for name in found)
    assert any(name.startswith("long-dataset-initializer-mode-") for name in found)


# ---- wishes


@GROUPS
async def test_35_41_topology_and_disruption_of_the_trainer_only(cluster: Cluster) -> None:
    wishes = {"topologyConstraint": {"level": "kubernetes.io/hostname"}, "disruptionMode": {"all": {}}}
    await cluster.create(t.runtime(DATASET, trainer(), workload=wishes), t.trainjob(2))
    pods = await cluster.running(3)
    (workload,) = await cluster.workloads()
    first, then = workload["spec"]["podGroupTemplates"]
    groups = {t.minimum(one): one["spec"] for one in await cluster.pod_groups()}
    for basic, gang in ((first, then), (groups[None], groups[2])):
        assert basic.get("schedulingConstraints") is None
        assert gang["schedulingConstraints"] == {"topology": [{"key": "kubernetes.io/hostname"}]}
        assert basic.get("disruptionMode") != gang["disruptionMode"]
        assert gang["disruptionMode"] in ({"all": {}}, "PodGroup")
    label = "jobset.sigs.k8s.io/replicatedjob-name"
    assert len({pod["spec"]["nodeName"] for pod in pods if pod["metadata"]["labels"][label] == "node"}) == 1


@GROUPS
async def test_39_classes_of_two_groups(cluster: Cluster) -> None:
    for name, value in (("class-a", 100), ("class-b", 200)):
        one = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await t.put(cluster, {**one, "value": value})
    body = t.runtime(
        initializer("dataset-initializer", priorityClassName="class-a"), trainer(priorityClassName="class-b")
    )
    await cluster.create(body, t.trainjob(2))
    pods = await cluster.running(3)
    assert sorted(pod["spec"]["priority"] for pod in pods) == [100, 200, 200]
    groups = {t.minimum(one): one["spec"].get("priorityClassName") for one in await cluster.pod_groups()}
    assert groups == {None: "class-a", 2: "class-b"}


@NEWEST
async def test_42_a_claim_that_pods_share(cluster: Cluster) -> None:
    """Template, group and pods name it; nobody here makes devices, so the pods wait for it."""
    claim = {"name": "slice", "resourceClaimTemplateName": "ring"}
    jobs = trainer(resourceClaims=[claim])
    await cluster.create(t.runtime(jobs, workload=explicit(of("node", resourceClaims=[claim]))), t.trainjob(2))
    workload = await workload_of(cluster, "job")

    async def groups() -> list[Object]:
        return await cluster.pod_groups()

    (group,) = await cluster.until(groups, what="the group")
    assert workload["spec"]["podGroupTemplates"][0]["resourceClaims"] == [claim]
    assert group["spec"]["resourceClaims"] == [claim]

    async def pods() -> bool:
        return [pod["spec"]["resourceClaims"] for pod in await cluster.pods()] == [[claim]] * 2

    await cluster.until(pods, what="pods with the claim")


# ---- writers


async def test_78_each_generation_in_its_own_words(cluster: Cluster, minor: str) -> None:
    await cluster.create(t.runtime(), t.trainjob(2))
    pods = await cluster.running(2)
    (workload,) = await cluster.workloads()
    assert workload["apiVersion"].endswith({"1.35": "v1alpha1", "1.36": "v1alpha2", "1.37": "v1beta1"}[minor])
    groups = await cluster.pod_groups()
    if minor == "1.35":
        assert groups == []
        assert all(pod["spec"]["workloadRef"] == {"name": "job", "podGroup": "trainer"} for pod in pods)
        return
    (group,) = groups
    nested = {"workload": {"workloadName": "job", "podGroupTemplateName": "trainer"}}
    flat = {"workloadName": "job", "templateName": "trainer"}
    assert group["spec"].get("podGroupTemplateRef" if minor == "1.36" else "workloadRef") == (
        nested if minor == "1.36" else flat
    )
    assert {t.group_of(pod) for pod in pods} == {group["metadata"]["name"]}


# ---- gates


class TestWithoutGroups:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {GATE: False}

    async def test_9_10_the_gate_is_off(self, cluster: Cluster) -> None:
        """A runtime that asks for groups is refused where rules stand in front; one that is there serves without."""
        await t.refused(cluster, t.runtime(), made=True)
        await cluster.create(t.trainjob(3, name="stored", of="torch-distributed"))
        await cluster.running(3, "jobset.sigs.k8s.io/jobset-name=stored")
        mine = [one for one in await cluster.workloads() if one["spec"]["controllerRef"]["kind"] == "TrainJob"]
        assert mine == []
        jobset = await cluster.get(*t.JOBSET, "stored")
        assert jobset is not None
        assert not {"schedulingGroup", "workloadRef"} & t.pod_template(jobset).keys()


class TestPreserved:
    @pytest.fixture
    def settings(self) -> Mapping[str, Any]:
        return {"trainjob": {"onSuspend": "Preserve"}}

    async def test_57_groups_preserved_over_a_suspension(self, cluster: Cluster) -> None:
        await cluster.create(t.runtime(), t.trainjob(2, suspend=True))
        await t.idle(cluster)
        before = await t.uids(cluster)
        assert before
        await t.suspend(cluster, False)
        await cluster.running(2)
        await t.suspend(cluster)
        await t.idle(cluster)
        await cluster.sleep(2)
        assert await t.uids(cluster) == before
        await t.suspend(cluster, False)
        await cluster.running(2)
        assert await t.uids(cluster) == before


class TestWithoutTheApi:
    @pytest.fixture
    def gates(self, minor: str) -> Mapping[str, bool]:
        return {str(gate): False for gate in release(minor).gates}

    async def test_79_the_group_is_not_served(self, cluster: Cluster) -> None:
        """A runtime that asks for groups is refused where rules stand in front; elsewhere it serves without."""
        assert await cluster.workloads() == []
        await t.refused(cluster, t.runtime(), made=True)
        await cluster.create(*pair("plain", 3, t.runtime(groups=False)))
        await cluster.create(t.trainjob(2, name="stored", of="torch-distributed"))
        await cluster.running(5)


# ---- trees


@NEWEST
class TestTrees:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {COMPOSITE_GATE: True}

    async def test_31_32_75_76_77_trees_of_groups(self, cluster: Cluster) -> None:
        gang: Object = {"schedulingPolicy": {"gang": {}}}
        two = t.runtime(rjob("helper"), trainer(), workload=explicit(of("helper"), of("node"), **gang))
        await cluster.create(*pair("two", 3, two))
        joined = t.runtime(rjob("a"), trainer(), workload=explicit(of("a", "node", job={})))
        await cluster.create(*pair("joined", 2, joined))
        whole = explicit(of("a"), of("node"), disruptionMode={"all": {}}, **gang)
        await cluster.create(*pair("whole", 2, t.runtime(rjob("a"), trainer(), workload=whole)))
        same = t.runtime(LAUNCHER, NODE, ml={"mpi": {}}, workload=explicit(of("launcher", "node"), **gang))
        await cluster.create(*pair("launcher-node", 2, same))
        await cluster.running(4 + 3 + 3 + 3)
        tops = {one["metadata"]["name"]: _top(one) for one in await cluster.workloads()}
        assert tops == {"two": "two", "joined": "a-node", "whole": "whole", "launcher-node": "launcher-node-root"}
        await self._shape(cluster)

    async def _shape(self, cluster: Cluster) -> None:
        """Every leaf below a branch of its own Workload; the branch was there first."""
        branches = {one["metadata"]["name"]: one for one in await cluster.composites()}
        assert all("parentCompositePodGroupName" not in one["spec"] for one in branches.values())
        for leaf in await cluster.pod_groups():
            root = branches[leaf["spec"]["parentCompositePodGroupName"]]
            assert leaf["spec"]["workloadRef"]["workloadName"] == root["spec"]["workloadRef"]["workloadName"]
            assert root["metadata"]["creationTimestamp"] <= leaf["metadata"]["creationTimestamp"]
            if leaf["spec"]["workloadRef"]["workloadName"] == "whole":
                assert leaf["spec"]["disruptionMode"] == {"all": {}}

    async def test_74_75_trees_that_cannot_start(self, cluster: Cluster) -> None:
        gang: Object = {"schedulingPolicy": {"gang": {}}}
        waiting = rjob("fetch"), trainer(after=[("fetch", "Complete")])
        await t.refused(cluster, t.runtime(*waiting, workload=explicit(of("fetch"), of("node"), **gang)))
        single = of("node", disruptionMode={"single": {}})
        mixed = explicit(of("a"), single, disruptionMode={"all": {}}, **gang)
        await t.refused(cluster, t.runtime(rjob("a"), trainer(), workload=mixed))


def _top(workload: Object) -> str:
    (root,) = workload["spec"]["compositePodGroupTemplates"]
    return str(root["name"])
