"""Sets of the shapes that Grove's own samples have (our words, their structure): accepted, and up as documented."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.e2e.grove_short import GROVE, available, clique, cliques, cliqueset, gangs, gone, group, names

from kohort.api.kind import Object
from kohort.testing.cluster import Cluster

_CPU = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]
_GROWS: dict[str, Any] = {"autoScalingConfig": {"maxReplicas": 5, "metrics": _CPU}}
_GROUP_GROWS: dict[str, Any] = {"scaleConfig": {"maxReplicas": 6, "metrics": _CPU}}
_TOLERANT: dict[str, Any] = {
    "tolerations": [{"key": "fake-node", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]
}
_EXPLICIT = {"cliqueStartupType": "CliqueStartupTypeExplicit", "terminationDelay": "1m"}


@dataclass(frozen=True)
class Sample:
    """Where upstream has it, what it is, and how many PodCliques, pods, gangs and autoscalers come of it."""

    path: str
    body: Object
    cliques: int
    pods: int
    gangs: list[str]
    autoscalers: list[str] = field(default_factory=list)


def _after(*parents: str) -> dict[str, Any]:
    return {"startsAfter": list(parents)}


SAMPLES = [
    Sample(
        "operator/samples/simple/simple1.yaml",
        cliqueset(
            "one",
            clique("pca", 3, spec=_GROWS),
            *(clique(name, 2) for name in ("pcb", "pcc", "pcd")),
            groups=[group("sga", ["pcb", "pcc"], **_GROUP_GROWS)],
        ),
        4,
        9,
        ["one-0"],
        ["one-0-pca", "one-0-sga"],
    ),
    Sample(
        "operator/samples/simple/simple2-explicit-startup-order.yaml",
        cliqueset(
            "two",
            clique("pca", 3, spec=_GROWS),
            clique("pcb", 2, spec=_after("pca")),
            clique("pcc", 2, spec=_after("pca")),
            clique("pcd", 2, spec=_after("pcb", "pcc")),
            template=_EXPLICIT,
        ),
        4,
        9,
        ["two-0"],
        ["two-0-pca"],
    ),
    Sample(
        "operator/samples/simple/simple3-explicit-startup-order.yaml",
        cliqueset(
            "three",
            clique("pca", 3, spec=_GROWS),
            clique("pcb", 2, spec=_after("pca")),
            clique("pcc", 2, spec=_after("pca")),
            clique("pcd", 2, spec=_after("pcb", "pcc")),
            clique("pce", 2, spec=_after("pcb", "pcc")),
            groups=[group("sga", ["pcb", "pcc", "pcd"], 3, 2, **_GROUP_GROWS)],
            template=_EXPLICIT,
        ),
        11,
        23,
        ["three-0", "three-0-sga-0"],
        ["three-0-pca", "three-0-sga"],
    ),
    Sample(
        "operator/samples/user-guide/01_core-concepts/single-node-aggregated.yaml",
        cliqueset("single", clique("model", 2, pod=_TOLERANT)),
        1,
        2,
        ["single-0"],
    ),
    Sample(
        "operator/samples/user-guide/01_core-concepts/single-node-disaggregated.yaml",
        cliqueset("split", clique("prefill", 3, pod=_TOLERANT), clique("decode", 2, pod=_TOLERANT)),
        2,
        5,
        ["split-0"],
    ),
    Sample(
        "operator/samples/user-guide/01_core-concepts/multi-node-aggregated.yaml",
        cliqueset("multi", clique("leader"), clique("worker", 3), groups=[group("model", ["leader", "worker"], 2)]),
        4,
        8,
        ["multi-0", "multi-0-model-0"],
    ),
    Sample(
        "operator/samples/user-guide/01_core-concepts/multi-node-disaggregated.yaml",
        cliqueset(
            "disagg",
            clique("pleader"),
            clique("pworker", 4),
            clique("dleader"),
            clique("dworker", 2),
            groups=[group("prefill", ["pleader", "pworker"], 2), group("decode", ["dleader", "dworker"])],
        ),
        6,
        13,
        ["disagg-0", "disagg-0-prefill-0"],
    ),
    Sample(
        "operator/samples/user-guide/01_core-concepts/complete-inference-pipeline.yaml",
        cliqueset(
            "pipeline",
            clique("frontend", 2),
            clique("encoder"),
            clique("pleader"),
            clique("pworker", 4),
            clique("dleader"),
            clique("dworker", 2),
            groups=[group("prefill", ["pleader", "pworker"]), group("decode", ["dleader", "dworker"])],
        ),
        6,
        11,
        ["pipeline-0"],
    ),
    Sample(
        "operator/samples/user-guide/02_pod-and-resource-naming-conventions/multinode-disaggregated-with-frontend.yaml",
        cliqueset(
            "named",
            clique("frontend", 2),
            clique("pleader"),
            clique("pworker", 3),
            clique("dleader"),
            clique("dworker", 2),
            groups=[group("prefill", ["pleader", "pworker"], 2), group("decode", ["dleader", "dworker"])],
        ),
        7,
        13,
        ["named-0", "named-0-prefill-0"],
    ),
    Sample(
        "operator/samples/user-guide/03_environment-variables-for-pod-discovery/standalone-env-vars.yaml",
        cliqueset("env", clique("frontend", 2)),
        1,
        2,
        ["env-0"],
    ),
    Sample(
        "operator/samples/user-guide/03_environment-variables-for-pod-discovery/pcsg-env-vars.yaml",
        cliqueset("envs", clique("leader"), clique("worker", 3), groups=[group("model", ["leader", "worker"], 2)]),
        4,
        8,
        ["envs-0", "envs-0-model-0"],
    ),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path.rpartition("/")[2])
@pytest.mark.releases("1.37")
async def test_sample(cluster: Cluster, sample: Sample) -> None:
    await cluster.create(sample.body)
    pods = await cluster.running(sample.pods)
    await available(cluster, sample.body["metadata"]["name"])
    assert len(await cliques(cluster)) == sample.cliques
    assert names(await gangs(cluster)) == sample.gangs
    assert names(await cluster.every("autoscaling/v2", "HorizontalPodAutoscaler")) == sample.autoscalers
    for pod in pods:
        told = {one["name"]: one for one in pod["spec"]["containers"][0]["env"]}
        assert told["GROVE_PCS_NAME"]["value"] == sample.body["metadata"]["name"]
        assert ("GROVE_PCSG_NAME" in told) == ("grove.io/podcliquescalinggroup" in pod["metadata"]["labels"])
    await cluster.delete(GROVE, "PodCliqueSet", sample.body["metadata"]["name"])
    await gone(cluster)
