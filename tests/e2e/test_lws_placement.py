"""Where the pods of LeaderWorkerSets go: exclusive domains, subgroups, TPUs (spec lws 2.5 to 2.7)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.e2e.lws import PREFIX, Sets, env, label, template

from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster

RACK, SHELF = "example.com/rack", "example.com/shelf"


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Three racks of two shelves, one node on each."""
    return [Pool(name="node", count=6, topology=(Level(RACK, 3), Level(SHELF, 2)))]


@pytest.fixture
def sets(cluster: Cluster) -> Sets:
    return Sets(cluster)


async def domains(cluster: Cluster, sets: Sets, key: str) -> dict[str, str]:
    nodes = (await cluster.client.kind("v1", "Node").list()).items
    places = {node["metadata"]["name"]: node["metadata"]["labels"][key] for node in nodes}
    pods = await sets.pods()
    return {name: places[pod["spec"]["nodeName"]] for name, pod in pods.items() if pod["spec"].get("nodeName")}


async def test_l_22_a_rack_for_each_group(cluster: Cluster, sets: Sets) -> None:
    await sets.create("rig", replicas=4, size=3, annotations={f"{PREFIX}exclusive-topology": RACK})
    await sets.settled("rig", readyReplicas=3)
    await cluster.sleep(5)
    racks = await domains(cluster, sets, RACK)
    groups: dict[str, set[str]] = {}
    for name, rack in racks.items():
        groups.setdefault("-".join(name.split("-")[:2]), set()).add(rack)
    assert sorted(map(len, groups.values())) == [1, 1, 1]
    assert len(set.union(*groups.values())) == 3
    waiting = set(await sets.names()) - set(racks)
    assert len(waiting) == 1  # a leader alone: its workers are not made before it has a place
    await sets.patch("rig", {"replicas": 3})
    await sets.settled("rig", replicas=3)


async def test_l_23_shelves_for_subgroups_in_a_rack(cluster: Cluster, sets: Sets) -> None:
    notes = {f"{PREFIX}exclusive-topology": RACK, f"{PREFIX}subgroup-exclusive-topology": SHELF}
    await sets.create("sh", size=4, subGroupPolicy={"subGroupSize": 2}, annotations=notes)
    await sets.available("sh")
    racks, shelves = await domains(cluster, sets, RACK), await domains(cluster, sets, SHELF)
    assert len(set(racks.values())) == 1
    assert shelves["sh-0"] == shelves["sh-0-1"] != shelves["sh-0-2"] == shelves["sh-0-3"]


async def test_l_23_a_leader_outside_the_subgroups(cluster: Cluster, sets: Sets) -> None:
    policy = {"subGroupSize": 1, "subGroupPolicyType": "LeaderExcluded"}
    notes = {f"{PREFIX}subgroup-exclusive-topology": RACK}
    await sets.create("shx", size=3, subGroupPolicy=policy, annotations=notes)
    await sets.available("shx")
    racks = await domains(cluster, sets, RACK)
    assert racks["shx-0-1"] != racks["shx-0-2"]
    leader = (await sets.pods())["shx-0"]
    assert label(leader, "subgroup-index") is None
    assert "affinity" not in leader["spec"]


async def test_l_24_variables_for_tpus(cluster: Cluster, sets: Sets) -> None:
    worker = template()
    worker["spec"]["containers"][0]["resources"] = {"limits": {"google.com/tpu": "1"}}
    await sets.create("tpu", size=3, workerTemplate=worker, leaderTemplate=template())

    async def made() -> bool:
        return len(await sets.names()) == 3

    await cluster.until(made, what="the workers")
    pods = await sets.pods()
    assert not any(name.startswith("TPU_") for name in env(pods["tpu-0"]))
    found = env(pods["tpu-0-2"])
    assert found["TPU_WORKER_HOSTNAMES"] == "tpu-0-1.tpu,tpu-0-2.tpu"
    assert (found["TPU_WORKER_ID"], found["TPU_NAME"]) == ("1", "tpu-0")
    assert found["TPU_PROCESS_ADDRESSES"] == "tpu-0-1.tpu:8476,tpu-0-2.tpu:8476"
