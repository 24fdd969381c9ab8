"""What LeaderWorkerSet's own samples and examples are about, in our words: each is accepted and keeps its promise.

Listed from its repository of August 2026, nothing is copied. `config/samples`: leaderworkerset_v1_leaderworkerset,
_multi_template, _exclusiveplacement, _tpu, hpaexample; `docs/examples/sample`: lws, lws-multi-template,
lws-exclusive-placement, lws-restart-policy, lws-rollout-strategy, lws-volume-claim-templates,
horizontal-pod-autoscaler, gang-scheduling/lws-sample-volcano; `docs/examples`: llamacpp, sglang, tensorrt-llm,
vllm/GPU, vllm/TPU. The samples of DisaggregatedSet are of another kind. And our own examples, which are run here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.lws import PREFIX, Sets, env, group_of, lws, template

from kohort import manifest
from kohort.api.kind import Object
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster

pytestmark = pytest.mark.releases("1.37")
POOL, ACCELERATOR = "cloud.example.com/nodepool", {"cloud.example.com/accelerator": "pod-slice"}
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Two zones, each with racks of switches, and machines for whoever asks for GPUs or TPUs."""
    capacity = {"cpu": "128", "memory": "2Ti", "ephemeral-storage": "4Ti", "pods": "110"}
    racks = (
        Level("topology.kubernetes.io/zone", 2),
        Level("topology.kubernetes.io/rack", 3),
        Level("example.com/switch", 2),
    )
    gpus = Pool(name="gpu", count=24, capacity={**capacity, "nvidia.com/gpu": "8"}, topology=racks)
    tpus = Pool(name="tpu", count=12, capacity={**capacity, "google.com/tpu": "4"}, labels=ACCELERATOR)
    pools = Pool(name="np", count=6, capacity=capacity, topology=(Level(POOL, 3),))
    return [gpus, tpus, pools]


@pytest.fixture
def sets(cluster: Cluster) -> Sets:
    return Sets(cluster)


def web(**limits: str) -> Object:
    found = template("web:1")
    asked = {"limits": limits or {"cpu": "100m"}, **({} if limits else {"requests": {"cpu": "50m"}})}
    found["spec"]["containers"][0] |= {"ports": [{"containerPort": 8080}], "resources": asked}
    return found


def server(role: str, **limits: str) -> Object:
    """A model server: shared memory, a probe, arguments that name the leader."""
    found = web(**limits)
    found["metadata"]["labels"] = {"role": role}
    container = found["spec"]["containers"][0]
    container["command"] = [
        "serve",
        "--rank=$(LWS_WORKER_INDEX)",
        "--of=$(LWS_GROUP_SIZE)",
        "$(LWS_LEADER_ADDRESS):2000",
    ]
    container["env"] = [{"name": "TOKEN", "value": "x"}]
    container["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
    container["readinessProbe"] = {"tcpSocket": {"port": 8080}, "initialDelaySeconds": 15}
    found["spec"]["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "15Gi"}}]
    return found


def models(replicas: int, size: int, **limits: str) -> dict[str, Any]:
    pods = {"leaderTemplate": server("leader", **limits), "workerTemplate": server("worker", **limits)}
    return {"replicas": replicas, "size": size, **pods}


def slices(found: Object) -> Object:
    found["spec"]["nodeSelector"] = ACCELERATOR
    return found


def rolling(**numbers: int) -> dict[str, Any]:
    return {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": numbers}}


SAMPLES: dict[str, dict[str, Any]] = {
    "one template": {"replicas": 3, "size": 4, "workerTemplate": web()},
    "one at a time": {"replicas": 3, "size": 4, "workerTemplate": web(), **rolling(maxUnavailable=1)},
    "two templates": {"replicas": 3, "size": 4, "workerTemplate": web(), "leaderTemplate": web()},
    "restart policy": {"replicas": 3, "size": 4, "workerTemplate": web(), "restartPolicy": "RecreateGroupOnPodRestart"},
    "rollout strategy": {"replicas": 4, "size": 4, "workerTemplate": web(), **rolling(maxUnavailable=2, maxSurge=2)},
    "TPUs": {"replicas": 3, "size": 4, "workerTemplate": slices(web(**{"google.com/tpu": "4"}))},
    "llama.cpp": models(1, 5),
    "sglang": models(2, 2, **{"nvidia.com/gpu": "1"}),
    "tensorrt": models(1, 2, **{"nvidia.com/gpu": "8"}),
    "vllm on GPUs": models(2, 2, **{"nvidia.com/gpu": "8", "memory": "1124Gi", "ephemeral-storage": "800Gi"}),
}


@pytest.mark.parametrize("name", SAMPLES)
async def test_sample_runs(sets: Sets, name: str) -> None:
    sample = SAMPLES[name]
    await sets.create("sample", **sample)
    found = await sets.available("sample")
    assert found["status"]["readyReplicas"] == sample["replicas"]
    pods = await sets.pods()
    assert len(pods) == sample["replicas"] * sample["size"]
    assert env(pods["sample-0-1"])["LWS_LEADER_ADDRESS"].startswith("sample-0.sample.")


async def test_tpu_servers_know_each_other_and_roll_with_surge(sets: Sets) -> None:
    pods = models(2, 4, **{"google.com/tpu": "4"})
    pods |= {role: slices(pods[role]) for role in ("leaderTemplate", "workerTemplate")}
    await sets.create("vllm", **pods, **rolling(maxUnavailable=1, maxSurge=1))
    await sets.available("vllm")
    hosts = env((await sets.pods())["vllm-1-3"])["TPU_WORKER_HOSTNAMES"]
    assert hosts == "vllm-1.vllm,vllm-1-1.vllm,vllm-1-2.vllm,vllm-1-3.vllm"


async def test_a_node_pool_for_each_group(cluster: Cluster, sets: Sets) -> None:
    await sets.create("excl", 3, 4, workerTemplate=web(), annotations={f"{PREFIX}exclusive-topology": POOL})
    await sets.available("excl")
    nodes = (await cluster.client.kind("v1", "Node").list()).items
    places = {node["metadata"]["name"]: node["metadata"]["labels"].get(POOL) for node in nodes}
    pods = await sets.pods()
    used = [{places[pods[name]["spec"]["nodeName"]] for name in pods if name.startswith(f"excl-{g}")} for g in range(3)]
    assert sorted(map(len, used)) == [1, 1, 1]
    assert len(set.union(*used)) == 3


async def test_volumes_of_their_own(cluster: Cluster, sets: Sets) -> None:
    claim: Object = {
        "metadata": {"name": "store"},
        "spec": {"storageClassName": "default", "accessModes": ["ReadWriteOnce"]},
    }
    claim["spec"] |= {"resources": {"requests": {"storage": "10Gi"}}}
    pods = server("worker")
    pods["spec"]["containers"][0]["volumeMounts"].append({"name": "store", "mountPath": "/mnt"})
    await sets.create("kept", 2, 2, workerTemplate=pods, volumeClaimTemplates=[claim])

    async def made() -> bool:
        return len(await sets.names()) == 4

    await cluster.until(made, what="the pods")
    names = [one["metadata"]["name"] for one in await cluster.every("v1", "PersistentVolumeClaim")]
    assert names == ["store-kept-0", "store-kept-0-1", "store-kept-1", "store-kept-1-1"]


async def test_the_target_of_an_autoscaler(cluster: Cluster, sets: Sets) -> None:
    await sets.create("sample", 3, 2, workerTemplate=web())
    await sets.available("sample")
    target = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "sample"}
    spec = {"minReplicas": 3, "maxReplicas": 5, "scaleTargetRef": target}
    await cluster.create(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hpa"}, "spec": spec}
    )
    await sets.patch("sample", {"replicas": 5}, "scale")  # what it does
    await sets.settled("sample", readyReplicas=5)
    selector = (await sets.get("sample"))["status"]["hpaPodSelector"]
    assert len(await cluster.pods(selector)) == 5  # whom it asks: the leaders


async def test_pods_of_another_scheduler_are_left_to_it(cluster: Cluster, sets: Sets) -> None:
    await cluster.create(
        lws("sample", 2, 4, workerTemplate={**web(), "spec": {**web()["spec"], "schedulerName": "volcano"}})
    )

    async def made() -> bool:
        return len(await sets.names()) == 8

    await cluster.until(made, what="the pods")
    await cluster.sleep(5)
    assert not await sets.bound()


@pytest.mark.parametrize(
    ("file", "pods", "gangs"),
    [("leaderworkerset-inference", 8, 2), ("leaderworkerset-leader-first", 9, 2), ("leaderworkerset-tree", 15, 6)],
)
async def test_our_example_runs(cluster: Cluster, sets: Sets, file: str, pods: int, gangs: int) -> None:
    *others, example = (document.obj for document in manifest.read([str(EXAMPLES / f"{file}.yaml")]))
    for obj in others:
        await cluster.client.of(obj).apply(obj, force=True)  # of the whole cluster: it may be there
    await cluster.create(example)
    await sets.available(example["metadata"]["name"])
    found = await sets.pods()
    assert len(found) == pods
    assert len({group_of(pod) for pod in found.values()}) == gangs
