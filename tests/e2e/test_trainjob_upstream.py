"""What Kubeflow Trainer's own runtimes and examples are about, in our words: each is accepted and keeps its promise.

Listed from its repository of August 2026, nothing is copied. `manifests/base/runtimes`: torch, jax, xgboost, deepspeed,
mlx, torch with a data cache, torchtune for three models. `examples`: yaml/01 to 05, flux (runtime and three jobs).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.e2e import training as t
from tests.kinds.trainer.compile.build import initializer, rjob, trainer

from kohort.api.kind import Object
from kohort.kube.errors import ApiError
from kohort.sim.cluster import Pool
from kohort.testing.cluster import Cluster, condition

pytestmark = pytest.mark.releases("1.37")
SSHD = {"command": ["/usr/sbin/sshd"], "args": ["-De"]}
MPI = {"numNodes": 1, "mpi": {"numProcPerNode": 1, "sshAuthMountPath": "/home/user/.ssh", "runLauncherAsNode": True}}
BY_LAUNCHER = {
    "network": {"publishNotReadyAddresses": True},
    "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
}
MOUNT = {"name": "initializer", "mountPath": "/workspace"}


@pytest.fixture
def pools() -> Sequence[Pool]:
    capacity = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "8"}
    return (Pool(name="n", count=4, capacity=capacity, labels={"node-type": "training"}),)


def mounted(job: Object, volume: Object | None = None) -> Object:
    pod = job["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["volumeMounts"] = [MOUNT]
    if volume is not None:
        pod["volumes"] = [{"name": "initializer", **volume}]
    return job


def over_mpi() -> tuple[Object, ...]:
    """DeepSpeed and MLX: the launcher is a node, and comes when the others are up."""
    node = t.lasting(rjob("node"), t.FOR_EVER)
    node["template"]["spec"]["template"]["spec"]["containers"][0] |= SSHD
    return node, t.lasting(trainer("launcher", after=[("node", "Ready")]), 2)


def with_cache() -> tuple[Object, ...]:
    fetch = initializer("dataset-initializer", replicas=1, serviceAccountName="default")
    return fetch, trainer(after=[("dataset-initializer", "Complete")])


# name -> (ReplicatedJobs, ML policy, more of the runtime, spec of the job, pods in all)
RUNTIMES: dict[str, tuple[tuple[Object, ...], Object, Object, Object, int]] = {
    "torch": ((trainer(),), {"numNodes": 1, "torch": {}}, {}, {"trainer": {"numNodes": 3}}, 3),
    "jax": ((trainer(),), {"numNodes": 1, "jax": {}}, {}, {"trainer": {"numNodes": 2}}, 2),
    "xgboost": ((trainer(),), {"numNodes": 1, "xgboost": {}}, {}, {"trainer": {"numNodes": 2}}, 2),
    "deepspeed": (over_mpi(), MPI, {"template": BY_LAUNCHER}, {"trainer": {"numNodes": 3}}, 3),
    "mlx": (over_mpi(), MPI, {"template": BY_LAUNCHER}, {"trainer": {"numNodes": 1}}, 2),
    "data-cache": (
        with_cache(),
        {"numNodes": 1, "torch": {}},
        {"labels": {"trainer.kubeflow.org/webhook-validation": "disabled"}},
        {"trainer": {"numNodes": 2}},
        3,
    ),
    "flux": (
        (trainer(),),
        {"numNodes": 1, "flux": {}},
        {"labels": {"trainer.kubeflow.org/webhook-validation": "disabled"}},
        {"trainer": {"numNodes": 2, "numProcPerNode": 4, "command": ["simulate", "-x", "4"]}},
        2,
    ),
    "flux-gpus": (
        (trainer(),),
        {"numNodes": 1, "flux": {}},
        {},
        {
            "trainer": {
                "numNodes": 2,
                "numProcPerNode": 1,
                "command": ["simulate"],
                "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}},
                "env": [{"name": "FLUX_VIEW_IMAGE", "value": "acme/view:1"}],
            }
        },
        2,
    ),
}


@pytest.mark.parametrize("groups", [True, False], ids=["workload", "as-upstream"])
@pytest.mark.parametrize("name", RUNTIMES)
async def test_runtime(cluster: Cluster, name: str, groups: bool) -> None:
    """With our groups and, as they are upstream, without."""
    jobs, policy, more, spec, pods = RUNTIMES[name]
    await cluster.create(t.runtime(*jobs, ml=policy, groups=groups, seconds=2, **more), t.trainjob(**spec))
    await t.complete(cluster)
    assert len(await cluster.pods()) == pods
    assert len(await cluster.workloads()) == int(groups)


async def test_torchtune(cluster: Cluster) -> None:
    """Initializers fill a volume, then one recipe is completed for as many nodes and devices as there are."""
    tune = ["tune", "run", "--rdzv_endpoint=localhost:29500", "full_finetune_distributed", "--config", "m/1B_full"]
    node = trainer(after=[("dataset-initializer", "Complete"), ("model-initializer", "Complete")])
    container = node["template"]["spec"]["template"]["spec"]["containers"][0]
    container |= {"command": [*tune, "output_dir=/workspace/output"], "resources": {"limits": {"nvidia.com/gpu": 2}}}
    jobs = [mounted(one) for one in (initializer("dataset-initializer"), initializer("model-initializer"), node)]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    policies = [{"templates": [{"metadata": {"name": "initializer"}, "spec": claim}]}]
    body = t.runtime(*jobs, ml={"numNodes": 1, "torch": {}}, template={"volumeClaimPolicies": policies}, seconds=1)
    model = {"storageUri": "hf://acme/model", "secretRef": {"name": "hub"}}
    await cluster.create(body, t.trainjob(initializer={"dataset": {"storageUri": "hf://acme/data"}, "model": model}))

    async def claimed() -> list[Object]:
        return await cluster.every("v1", "PersistentVolumeClaim")

    (found,) = await cluster.until(claimed)
    assert found["metadata"]["name"] == "initializer-job"

    async def made() -> list[Object]:
        return await cluster.pods("jobset.sigs.k8s.io/replicatedjob-name=model-initializer")

    (pod,) = await cluster.until(made)
    variables = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert variables["STORAGE_URI"] == "hf://acme/model"
    assert pod["spec"]["containers"][0]["envFrom"] == [{"secretRef": {"name": "hub"}}]


async def test_flux_interactive(cluster: Cluster) -> None:
    """Four brokers that wait for people: they run until somebody deletes the job."""
    await cluster.create(t.runtime(ml={"flux": {}}), t.trainjob(trainer={"numNodes": 4, "command": ["sleep", "inf"]}))
    pods = await cluster.running(4)
    assert pods[0]["spec"]["containers"][0]["command"][-1] == "sleep inf"
    await cluster.delete(*t.TRAINJOB, "job")
    await cluster.gone("v1", "Pod")
    await cluster.gone(*t.SECRET)


# ---- examples/yaml


@pytest.mark.releases("1.35", "1.36", "1.37")
async def test_01_multi_node(cluster: Cluster) -> None:
    """On the built-in runtime of that name; every node knows its rank and where to meet."""
    await cluster.create(t.trainjob(of="torch-distributed", trainer={"numNodes": 3, "command": ["torchrun", "x.py"]}))
    pods = await cluster.running(3)
    values = {one["name"]: one.get("value") for one in pods[0]["spec"]["containers"][0]["env"]}
    assert values["PET_NNODES"] == "3"
    assert values["PET_MASTER_ADDR"] == "job-node-0-0.job"
    assert t.groups_of((await cluster.workloads())[0]) == {"trainer": 3}
    await t.complete(cluster)


async def test_02_runtime_patches(cluster: Cluster) -> None:
    pod = {
        "serviceAccountName": "training-sa",
        "nodeSelector": {"node-type": "training"},
        "tolerations": [{"key": "training", "operator": "Exists", "effect": "NoSchedule"}],
    }
    template = {
        "metadata": {"labels": {"team": "platform"}, "annotations": {"prometheus.io/scrape": "true"}},
        "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": pod}}}}]},
    }
    patch = {"manager": "example.io/platform", "trainingRuntimeSpec": {"template": template}}
    resources = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}}
    training = {"numNodes": 2, "env": [{"name": "MINE", "value": "1"}], "resourcesPerNode": resources}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "training-sa"}}
    await cluster.create(account, t.trainjob(of="torch-distributed", trainer=training, runtimePatches=[patch]))
    pods = await cluster.running(2)
    assert {pod["spec"]["serviceAccountName"] for pod in pods} == {"training-sa"}
    assert {pod["spec"]["nodeSelector"]["node-type"] for pod in pods} == {"training"}
    assert pods[0]["spec"]["containers"][0]["resources"]["limits"]["memory"] == "8Gi"
    jobset = await cluster.get(*t.JOBSET, "job")
    assert jobset is not None
    assert jobset["metadata"]["labels"]["team"] == "platform"


async def test_03_queue(cluster: Cluster) -> None:
    """Made suspended; whoever admits it patches and resumes."""
    job = t.trainjob(3, of="torch-distributed", suspend=True)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "training"}
    await cluster.create(job)
    await t.idle(cluster)
    assert await cluster.pods() == []
    assert condition(await cluster.get(*t.TRAINJOB, "job"), "Suspended")
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"node-type": "training"}}}}}}]
    entry = {
        "manager": "kueue.x-k8s.io/admission",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }
    await cluster.patch(*t.TRAINJOB, "job", {"spec": {"suspend": False, "runtimePatches": [entry]}})
    pods = await cluster.running(3)
    assert {pod["spec"]["nodeSelector"]["node-type"] for pod in pods} == {"training"}


def other_scheduler(group: str, version: str) -> Object:
    """A stand-in for the CRD of another project's PodGroup."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"}
    served = {"name": version, "served": True, "storage": True, "schema": schema}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [served]}
    meta = {"name": f"podgroups.{group}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("policy", "group", "version"),
    [("volcano", "scheduling.volcano.sh", "v1beta1"), ("coscheduling", "scheduling.x-k8s.io", "v1alpha1")],
)
async def test_04_other_gang_schedulers(cluster: Cluster, policy: str, group: str, version: str) -> None:
    await cluster.create(other_scheduler(group, version))

    async def served() -> bool:
        await cluster.client.discovery.refresh()
        return await cluster.serves(f"{group}/{version}", "PodGroup")

    await cluster.until(served)
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}}
    body = t.runtime(podGroupPolicy={policy: {}}, groups=False)
    await cluster.create(body, t.trainjob(trainer={"numNodes": 4, "resourcesPerNode": resources}))
    pods = await cluster.running(4)
    (found,) = await cluster.every(f"{group}/{version}", "PodGroup")
    assert found["spec"]["minMember"] == 4
    assert found["spec"]["minResources"] == {"cpu": "4", "memory": "8Gi"}
    marks = {**pods[0]["metadata"]["labels"], **pods[0]["metadata"]["annotations"]}
    assert "job" in (marks.get("scheduling.x-k8s.io/pod-group"), marks.get("scheduling.k8s.io/group-name"))
    assert [one for one in await cluster.workloads() if one["spec"]["controllerRef"]["kind"] == "TrainJob"] == []
    await cluster.client.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").delete(f"podgroups.{group}")


async def test_04_without_that_scheduler(cluster: Cluster) -> None:
    """Its kind is not served: people are told, and nothing starts."""
    await cluster.create(t.runtime(podGroupPolicy={"volcano": {}}, groups=False), t.trainjob(2))
    (event,) = await t.told(cluster, "TrainJobResourcesCreationFailed")
    assert "PodGroup" in event["message"]
    assert await cluster.pods() == []


async def refusal(cluster: Cluster, job: Object) -> str:
    """At once where Kohort's rules stand in front of the API, else when it is built."""
    try:
        await cluster.create(job)
    except ApiError as error:
        return error.message
    (event,) = await t.told(cluster, "TrainJobResourcesCreationFailed")
    return str(event["message"])


@pytest.mark.parametrize("mount", [True, False])
async def test_05_multi_step(cluster: Cluster, mount: bool) -> None:
    """As it stands there the initializer mounts no volume: Trainer's own webhook refuses the job (recorded v-init)."""
    volume: Any = {"emptyDir": {}} if mount else None
    fetch = initializer("dataset-initializer", replicas=1)
    jobs = (mounted(fetch, volume) if mount else fetch, trainer(after=[("dataset-initializer", "Complete")]))
    spec: dict[str, Any] = {"initializer": {"dataset": {"storageUri": "hf://acme/data"}}, "trainer": {"numNodes": 2}}
    await cluster.create(t.runtime(*jobs, seconds=1))
    if not mount:
        assert "initializer" in await refusal(cluster, t.trainjob(**spec))
        return
    await cluster.create(t.trainjob(**spec))
    await t.complete(cluster)
    job = await cluster.get(*t.TRAINJOB, "job")
    assert job is not None
    assert {row["name"]: row["succeeded"] for row in job["status"]["jobsStatus"]} == {
        "dataset-initializer": 1,
        "node": 1,
    }
