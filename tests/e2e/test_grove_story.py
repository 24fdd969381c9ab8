"""Disaggregated inference on racks: one tree, scaled up, one rack lost, healed, rolled to a new image, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.grove_short import (
    GROVE,
    available,
    binding,
    clique,
    cliqueset,
    gangs,
    gone,
    group,
    image,
    is_true,
    names,
    new_image,
    of,
    rack,
    scale,
    shared,
    uids,
)

from kohort.api.kind import Object
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
RACK = "topology.kubernetes.io/rack"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Four racks of six nodes with eight GPUs each."""
    levels = (Level("topology.kubernetes.io/zone", 1), Level(RACK, 4))
    capacity = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
    return (Pool(name="gpu", count=24, capacity=capacity, topology=levels),)


def engine(name: str, replicas: int = 1) -> Object:
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    return clique(name, replicas, pod={"containers": [{"name": "main", "image": "llm:1", "resources": limits}]})


def chat() -> Object:
    """An instance of prefill or decode is two nodes with all their GPUs, in one rack."""
    return cliqueset(
        "chat",
        clique("router", 2, 1),
        *(engine(name) for name in ("pf-lead", "pf-work", "dc-lead", "dc-work")),
        groups=[
            group("prefill", ["pf-lead", "pf-work"], 2, **rack()),
            group("decode", ["dc-lead", "dc-work"], 2, **rack()),
        ],
        template={"terminationDelay": "30s"},
    )


async def racks(c: Cluster) -> dict[str, str]:
    nodes = (await c.client.kind("v1", "Node").list()).items
    return {node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in nodes}


def instance(pod: Object) -> str:
    marks = pod["metadata"]["labels"]
    return f"{marks.get('grove.io/podcliquescalinggroup')}/{marks.get('grove.io/podcliquescalinggroup-replica-index')}"


async def by_instance(c: Cluster) -> dict[str, set[str]]:
    """The racks of each instance of prefill and decode."""
    where, found = await racks(c), dict[str, set[str]]()
    for pod in await c.pods():
        if "grove.io/podcliquescalinggroup" in pod["metadata"]["labels"] and pod["spec"].get("nodeName"):
            found.setdefault(instance(pod), set()).add(where[pod["spec"]["nodeName"]])
    return found


async def test_the_life_of_a_disaggregated_service(cluster: Cluster) -> None:
    c = cluster
    await _started(c)
    await _scaled_up(c)
    await c.sleep(10)
    # A rack is lost: those of its instances come up elsewhere, whole again, each in one rack.
    lost = next(iter((await by_instance(c))["chat-0-decode/0"]))
    await _rack(c, lost, "failed")
    await c.until(lambda: _healed(c, lost), 900, what="the service without that rack")
    assert all(len(where) == 1 for where in (await by_instance(c)).values())
    await _rack(c, lost, None)
    await _rolled(c)
    await c.delete(GROVE, "PodCliqueSet", "chat")
    await gone(c)


@pytest.mark.timeout(600)
async def test_its_life_when_a_rack_is_taken_away(cluster: Cluster) -> None:
    """The same where its machines do not come back: their nodes are deleted, and the pods there with them."""
    c = cluster
    await _started(c)
    await _scaled_up(c)
    lost = next(iter((await by_instance(c))["chat-0-decode/0"]))
    for node, where in (await racks(c)).items():
        if where == lost:
            await c.client.kind("v1", "Node").delete(node)
    await c.until(lambda: _healed(c, lost), 150, what="the service without that rack")
    assert all(len(where) == 1 for where in (await by_instance(c)).values())
    await _rolled(c)
    await c.delete(GROVE, "PodCliqueSet", "chat")
    await gone(c)


async def _started(c: Cluster) -> None:
    """One tree for the base, one for each instance beyond it; every instance in one rack."""
    await shared(c, binding())
    await c.create(chat())
    await c.running(2 + 4 * 2)
    await available(c, "chat")
    assert names(await gangs(c)) == ["chat-0", "chat-0-decode-0", "chat-0-prefill-0"]
    roots = [one for one in await c.composites() if "parentCompositePodGroupName" not in one["spec"]]
    assert names(roots) == ["chat-0", "chat-0-decode-0", "chat-0-prefill-0"]
    assert {name: len(where) for name, where in (await by_instance(c)).items()} == {
        "chat-0-prefill/0": 1,
        "chat-0-prefill/1": 1,
        "chat-0-decode/0": 1,
        "chat-0-decode/1": 1,
    }


async def _scaled_up(c: Cluster) -> None:
    """One more instance, one more gang, the others untouched."""
    before = await uids(c, pods=True)
    await scale(c, "PodCliqueScalingGroup", "chat-0-prefill", 3)
    await c.running(12)
    after = await uids(c, pods=True)
    assert before.items() <= after.items()
    assert "PodGang/chat-0-prefill-1" in after


async def _rolled(c: Cluster) -> None:
    """No more than one instance of a sort at a time; groups stay."""
    groups = await uids(c)
    for name in ("pf-lead", "pf-work", "dc-lead", "dc-work"):
        await new_image(c, "chat", name, "llm:2")
    await available(c, "chat")
    pods = await c.running(12)
    assert {image(pod) for pod in pods if instance(pod) != "None/None"} == {"llm:2"}
    assert {image(pod) for pod in of(pods, "chat-0-router")} == {"tool:1"}
    assert {kind: uid for kind, uid in (await uids(c)).items() if kind in groups} == groups
    assert all(len(where) == 1 for where in (await by_instance(c)).values())


async def _rack(c: Cluster, name: str, state: str | None) -> None:
    nodes = c.client.kind("v1", "Node")
    for node, where in (await racks(c)).items():
        if where == name:
            await nodes.patch(node, {"metadata": {"annotations": {"sim.kohort.dev/state": state}}})


async def _healed(c: Cluster, lost: str) -> bool:
    where = await racks(c)
    pods = [pod for pod in await c.pods() if "deletionTimestamp" not in pod["metadata"]]
    on = {where.get(pod["spec"].get("nodeName"), "") for pod in pods}
    found = await c.get(GROVE, "PodCliqueSet", "chat")
    whole = all(is_true(pod, "Ready") for pod in pods) and len(pods) == 12
    return whole and not on & {lost, ""} and (found or {})["status"]["availableReplicas"] == 1


# ---- topology, scenario by scenario


async def test_g32_one_clique_in_one_rack(cluster: Cluster) -> None:
    await shared(cluster, binding())
    await cluster.create(cliqueset("a", engine("x", 4), template=rack()))
    pods = await cluster.running(4)
    where = await racks(cluster)
    assert len({where[pod["spec"]["nodeName"]] for pod in pods}) == 1
    assert await cluster.composites() == []
    (found,) = await cluster.pod_groups()
    assert found["spec"]["schedulingConstraints"]["topology"] == [{"key": RACK}]


async def test_g33_rack_for_all_host_for_one(cluster: Cluster) -> None:
    host: dict[str, Any] = {"topologyConstraint": {"pack": {"required": "host"}}}
    await shared(cluster, binding())
    await cluster.create(cliqueset("a", clique("enc", 4, **host), template=rack()))
    pods = await cluster.running(4)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 1
    (root,) = await cluster.composites()
    assert root["spec"]["schedulingConstraints"]["topology"] == [{"key": RACK}]


async def test_g34_g35_g36_replicas_of_a_group_and_what_a_scaled_gang_inherits(cluster: Cluster) -> None:
    host: dict[str, Any] = {"topologyConstraint": {"topologyName": "fabric", "pack": {"required": "host"}}}
    await shared(cluster, binding())
    await cluster.create(
        cliqueset("a", clique("r"), clique("w", 2), groups=[group("g", ["w"], 3, 2, **host)], template=rack()),
        cliqueset("b", clique("r"), clique("w", 2), groups=[group("g", ["w"], 2)], template=rack()),
    )
    await cluster.running(7 + 5)
    keys = {
        one["metadata"]["name"]: [
            each["key"] for each in one["spec"].get("schedulingConstraints", {}).get("topology", ())
        ]
        for one in [*await cluster.composites(), *await cluster.pod_groups()]
    }
    assert keys["a-0-a-0-g-0"] == keys["a-0-a-0-g-1"] == ["kubernetes.io/hostname"]
    assert keys["a-0-a-0-g"] == []
    assert keys["a-0-g-0-a-0-g-2-w"] == ["kubernetes.io/hostname"]  # g35: in place of the set's
    assert keys["b-0-g-0-b-0-g-1-w"] == [RACK]  # g36


# ---- the examples that people copy


@pytest.mark.parametrize(
    ("file", "pods"),
    [("podcliqueset-simple.yaml", 0), ("podcliqueset-disaggregated.yaml", 20), ("podcliqueset-topology.yaml", 12)],
)
async def test_example(cluster: Cluster, file: str, pods: int) -> None:
    for obj in yaml.safe_load_all((EXAMPLES / file).read_text()):
        await (cluster.create(obj) if obj["kind"] == "PodCliqueSet" else shared(cluster, obj))
    name = next(iter(names(await cluster.every(GROVE, "PodCliqueSet"))))
    found = await cluster.get(GROVE, "PodCliqueSet", name)
    assert found is not None
    if pods:
        await cluster.running(pods)
    await available(cluster, name, found["spec"]["replicas"])
    await cluster.delete(GROVE, "PodCliqueSet", name)
    await gone(cluster)
