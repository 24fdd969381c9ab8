"""The user stories of spec trainjob 3.13, each on a cluster with the nodes that it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from tests.e2e import training as t
from tests.kinds.trainer.compile.build import initializer, rjob, trainer

from kohort.kinds.trainer.api import COMPOSITE_GATE
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster

NODES = "jobset.sigs.k8s.io/replicatedjob-name=node"
RACK, ZONE = "topology.example.com/rack", "topology.example.com/zone"


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Two zones of two racks of four nodes, each with room for one pod of four CPUs."""
    levels = (Level(ZONE, 2), Level(RACK, 2))
    return (Pool(name="n", count=16, capacity={"cpu": "4", "memory": "16Gi", "pods": "20"}, topology=levels),)


async def places(cluster: Cluster, key: str, labels: str = "") -> set[str]:
    """The values of a label of the nodes that pods are on."""
    nodes = {
        node["metadata"]["name"]: node["metadata"]["labels"]
        for node in (await cluster.client.kind("v1", "Node").list()).items
    }
    return {nodes[pod["spec"]["nodeName"]][key] for pod in await cluster.pods(labels) if pod["spec"].get("nodeName")}


def big(job: dict[str, object]) -> dict[str, object]:
    """A pod that fills a node."""
    pods = job["template"]["spec"]["template"]["spec"]  # type: ignore[index]
    pods["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    return job


async def test_native_gang_starts_all_or_nothing(cluster: Cluster) -> None:
    """5.1: what does not fit as a whole does not take anybody's place; what fits goes ahead."""
    await cluster.create(t.runtime(big(trainer())), t.trainjob(17, name="giant"))

    async def waiting() -> bool:
        return len(await cluster.pods()) == 17

    await cluster.until(waiting)
    await cluster.create(t.trainjob(16, name="fitting"))
    pods = await cluster.running(16)
    assert {pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] for pod in pods} == {"fitting"}


async def test_launcher_and_workers_together(cluster: Cluster) -> None:
    """5.2: a launcher that fits alone does not start before its nodes do."""
    body = t.runtime(trainer("launcher"), big(rjob("node")), ml={"mpi": {"numProcPerNode": 2}})
    await cluster.create(body, t.trainjob(17))

    async def started() -> bool:
        return any(pod["spec"].get("nodeName") for pod in await cluster.pods())

    await cluster.never(started, 10)


@pytest.mark.releases("1.36", "1.37")
async def test_trainer_in_one_rack(cluster: Cluster) -> None:
    """5.4: four pods that fill four nodes are in one rack; initializers may be anywhere."""
    after = big(trainer(after=[("dataset-initializer", "Complete")]))
    first = t.lasting(initializer("dataset-initializer"), 1)
    body = t.runtime(first, after, workload={"topologyConstraint": {"level": RACK}, "disruptionMode": {"all": {}}})
    await cluster.create(body, t.trainjob(4))
    await cluster.running(4)
    assert len(await places(cluster, RACK, NODES)) == 1
    constrained = [one for one in await cluster.pod_groups() if one["spec"].get("schedulingConstraints")]
    assert [t.minimum(one) for one in constrained] == [4]
    await cluster.create(t.trainjob(5, name="too-wide"))

    async def started() -> bool:
        late = await cluster.pods(f"jobset.sigs.k8s.io/jobset-name=too-wide,{NODES}")
        return any(pod["spec"].get("nodeName") for pod in late)

    await cluster.never(started, 15)


@pytest.mark.releases("1.37")
class TestSeveralLevels:
    @pytest.fixture
    def gates(self) -> Mapping[str, bool]:
        return {COMPOSITE_GATE: True}

    async def test_a_tree_over_stages(self, cluster: Cluster) -> None:
        """5.5: one zone for the whole job, one rack for launcher and nodes, initializers on their own."""
        scheduling = {
            "schedulingPolicy": {"basic": {}},
            "schedulingConstraints": {"topology": [{"key": ZONE}]},
            "disruptionMode": {"all": {}},
            "replicatedJobs": [
                {"targetReplicatedJobs": ["fetch"], "schedulingPolicy": {"basic": {}}},
                {
                    "targetReplicatedJobs": ["launcher", "node"],
                    "schedulingConstraints": {"topology": [{"key": RACK}]},
                },
            ],
        }
        jobs = (
            t.lasting(rjob("fetch"), 1),
            trainer("launcher", after=[("fetch", "Complete")]),
            big(rjob("node", after=[("fetch", "Complete")])),
        )
        await cluster.create(
            t.runtime(*jobs, ml={"mpi": {}}, workload={"scheduling": scheduling}), t.trainjob(4, name="staged")
        )
        await cluster.running(5)
        (root,), groups = await cluster.composites(), await cluster.pod_groups()
        (workload,) = await cluster.workloads()
        assert [one["name"] for one in workload["spec"]["compositePodGroupTemplates"]] == ["staged"]
        assert "parentCompositePodGroupName" not in root["spec"]
        assert {one["spec"]["parentCompositePodGroupName"] for one in groups} == {root["metadata"]["name"]}
        assert {one["spec"]["workloadRef"]["templateName"] for one in groups} == {"fetch", "launcher-node"}
        assert len(await places(cluster, ZONE)) == 1
        assert len(await places(cluster, RACK, "jobset.sigs.k8s.io/replicatedjob-name!=fetch")) == 1
        await t.suspend(cluster, name="staged")
        await t.idle(cluster, "staged")
        await t.no_groups(cluster)


async def test_a_group_for_the_job_of_a_replicated_job(cluster: Cluster) -> None:
    """Level 3 with one replica; with several JobSet could not tell them apart (D8)."""
    entry = {"targetReplicatedJobs": ["node"], "job": {}}
    await cluster.create(t.runtime(workload={"scheduling": {"replicatedJobs": [entry]}}), t.trainjob(4))
    await cluster.running(4)
    assert t.groups_of((await cluster.workloads())[0]) == {"node-0": 4}


async def test_whole_job_as_one_gang(cluster: Cluster) -> None:
    body = t.runtime(rjob("helper", parallelism=2), trainer(), groups=False, scheduling={})
    await cluster.create(body, t.trainjob(5))
    await cluster.running(7)
    assert t.groups_of((await cluster.workloads())[0]) == {"job": 7}


async def test_built_in_runtimes_are_there(cluster: Cluster) -> None:
    found = await cluster.client.kind(t.API_VERSION, "ClusterTrainingRuntime").list()
    names = {one["metadata"]["name"] for one in found.items}
    assert names >= {
        "torch-distributed",
        "jax-distributed",
        "xgboost-distributed",
        "deepspeed-distributed",
        "mpi",
        "plain",
    }
    for name in sorted(names & {"torch-distributed", "jax-distributed", "xgboost-distributed", "plain"}):
        await cluster.create(t.trainjob(2, name=name, of=name))
    await cluster.running(8)
    assert len(await cluster.workloads()) == 4
