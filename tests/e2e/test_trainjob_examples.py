"""The manifests in examples/ that are TrainJobs: each is run to its end, as its first line says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.e2e import training as t

from kohort import manifest
from kohort.api.kind import Object
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
RACK = "topology.kubernetes.io/rack"
# file -> (job, templates of its Workload, pods in all)
STORIES: dict[str, tuple[str, dict[str, int | None], int]] = {
    "trainjob-torch.yaml": ("resnet", {"trainer": 8}, 8),
    "trainjob-mpi.yaml": ("weather", {"trainer": 13}, 13),
    "trainjob-finetune.yaml": ("phi", {"initializer": None, "trainer": 4}, 6),
    "trainjob-rack.yaml": ("vit", {"trainer": 4}, 4),
}


@pytest.fixture
def pools() -> Sequence[Pool]:
    """A laptop's: eight nodes in two racks, with eight processors each. Pods run two seconds."""
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    notes = {"sim.kohort.dev/run-seconds": "2"}
    return (Pool(name="node", count=8, capacity=capacity, topology=(Level(RACK, 2),), annotations=notes),)


def objects(file: str) -> list[Object]:
    return [document.obj for document in manifest.read([str(EXAMPLES / file)])]


@pytest.mark.parametrize("file", STORIES)
async def test_example_runs_to_its_end(cluster: Cluster, file: str) -> None:
    name, templates, count = STORIES[file]
    await t.put(cluster, *objects(file))
    await t.complete(cluster, name)
    (workload,) = await cluster.workloads()
    assert t.groups_of(workload) == templates
    pods = await cluster.pods()
    assert len(pods) == count
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}


@pytest.mark.releases("1.36", "1.37")
async def test_rack_bound_pods_share_a_rack(cluster: Cluster) -> None:
    await t.put(cluster, *objects("trainjob-rack.yaml"))
    await t.complete(cluster, "vit")
    nodes = {node["metadata"]["name"]: node for node in (await cluster.client.kind("v1", "Node").list()).items}
    racks = {nodes[pod["spec"]["nodeName"]]["metadata"]["labels"][RACK] for pod in await cluster.pods()}
    assert len(racks) == 1


def test_every_example_is_told() -> None:
    assert sorted(STORIES) == sorted(file.name for file in EXAMPLES.glob("trainjob-*.yaml"))
