"""Lists by key in the shipped definitions, where upstream's have them: an apply after an apply must not conflict."""

from typing import Any

import pytest

from kohort.api import registry
from kohort.api.openapi import structural

_RUNTIME = {
    "spec.mlPolicy.torch.envInjection.targets": ["jobName"],
    "spec.template.spec.replicatedJobs": ["name"],
    "spec.template.spec.replicatedJobs[].dependsOn": ["name"],
}
_PATCHED = "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs"
_PATCHED_POD = f"{_PATCHED}[].template.spec.template.spec"
# As upstream's definitions of August 2026 say it.
UPSTREAM: dict[tuple[str, str], dict[str, list[str]]] = {
    ("jobset.x-k8s.io", "JobSet"): {
        "spec.replicatedJobs": ["name"],
        "spec.replicatedJobs[].dependsOn": ["name"],
        "spec.replicatedJobs[].template.spec.template.spec.imagePullSecrets": ["name"],
        "spec.replicatedJobs[].template.spec.template.spec.containers[].ports": ["containerPort", "protocol"],
    },
    ("trainer.kubeflow.org", "TrainingRuntime"): _RUNTIME,
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): _RUNTIME,
    ("trainer.kubeflow.org", "TrainJob"): {
        "spec.trainer.env": ["name"],
        "spec.initializer.dataset.env": ["name"],
        "spec.runtimePatches": ["manager"],
        _PATCHED: ["name"],
        f"{_PATCHED_POD}.containers[].volumeMounts": ["name"],
        f"{_PATCHED_POD}.imagePullSecrets": ["name"],
    },
    ("grove.io", "PodCliqueSet"): {
        "spec.template.cliques": ["name"],
        "spec.template.cliques[].spec.podSpec.imagePullSecrets": ["name"],
    },
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): {
        "spec.leaderWorkerTemplate.workerTemplate.spec.imagePullSecrets": ["name"],
    },
}


def at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for name in path.split("."):
        schema = schema["properties"][name.removesuffix("[]")]
        schema = schema["items"] if name.endswith("[]") else schema
    return schema


@pytest.mark.parametrize(("group", "kind"), list(UPSTREAM))
def test_lists_have_the_keys_that_upstream_gives_them(group: str, kind: str) -> None:
    schema = structural(next(one for one in registry.kinds(group) if one.kind == kind))
    for path, keys in UPSTREAM[group, kind].items():
        found = at(schema, path)
        assert (found.get("x-kubernetes-list-type"), found.get("x-kubernetes-list-map-keys")) == ("map", keys), path
