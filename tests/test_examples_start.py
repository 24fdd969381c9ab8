"""Every example starts on the cluster that is shipped beside them, in virtual time: `kohort up --cluster`."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from kohort import manifest
from kohort.sim.cluster import read
from kohort.testing.cluster import Cluster, cluster
from kohort.testing.virtual import VirtualLoop

FOLDER = Path(__file__).parent.parent / "examples"
SHIPPED = FOLDER / "cluster.yaml"
DAY = 25 * 3600.0

# How many pods an example has had when all of it has started; those of the first steps may have ended by then.
PODS = {
    "cronjob-nightly.yaml": 4,
    "job-elastic.yaml": 10,
    "job-gang.yaml": 8,
    "job-ranks.yaml": 10,
    "jobset-gang.yaml": 17,
    "jobset-hello.yaml": 9,
    "jobset-policies.yaml": 10,
    "jobset-scheduler-name.yaml": 4,
    "jobset-slices.yaml": 33,
    "jobset-tree.yaml": 9,
    "leaderworkerset-inference.yaml": 8,
    "leaderworkerset-leader-first.yaml": 9,
    "leaderworkerset-tree.yaml": 15,
    "podcliqueset-disaggregated.yaml": 20,
    "podcliqueset-simple.yaml": 2,
    "podcliqueset-topology.yaml": 12,
    "trainjob-finetune.yaml": 6,
    "trainjob-mpi.yaml": 13,
    "trainjob-rack.yaml": 4,
    "trainjob-torch.yaml": 8,
    "workload-gang.yaml": 4,
    "workload-tree.yaml": 4,
}


def test_every_example_is_here() -> None:
    assert {file.name for file in FOLDER.glob("*.yaml")} - {SHIPPED.name} == set(PODS)


def test_there_is_one_name_for_racks() -> None:
    keys = {word.strip('"{}[],') for file in FOLDER.glob("*.yaml") for word in file.read_text().split()}
    assert {key for key in keys if key.endswith("/rack")} == {"topology.kubernetes.io/rack"}


def test_all_of_them_start_on_the_shipped_cluster() -> None:
    """One after another, each in a namespace of its own; what serves goes on serving."""

    async def work() -> None:
        async with cluster(pools=read(SHIPPED.read_text())) as lab:
            for name, pods in PODS.items():
                space = name.removesuffix(".yaml")
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
                await lab.client.kind("v1", "Namespace").create(body)
                own = Cluster(lab.client, space)
                await own.create(*(document.obj for document in manifest.read([str(FOLDER / name)])))
                started = partial(_started, own, set(), pods)
                await own.until(started, seconds=DAY, what=f"{name}: {pods} started pods")

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())


async def _started(lab: Cluster, seen: set[str], wanted: int) -> bool:
    pods = await lab.pods()
    seen |= {pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in {"Running", "Succeeded"}}
    return len(seen) >= wanted and all(pod["spec"].get("nodeName") for pod in pods)
