"""What unmodified operators make of their manifests: labels, annotations, owners and order as their sources have them.

Only what grouping can see. Each function makes all that its operator makes at once; what it makes later, once something
is ready, is a call of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.grouping.cluster import Cluster

Json = dict[str, Any]


# ---- Job


def job(cluster: Cluster, body: Json, labels: Json | None = None, annotations: Json | None = None) -> list[str]:
    """Indexed pods of a Job, as the Job controller makes them."""
    cluster.own(body)
    name, spec = body["metadata"]["name"], body["spec"]
    template = (spec.get("template") or {}).get("metadata") or {}
    pods = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))
    made = []
    for index in range(pods):
        known = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/job-completion-index": str(index)}
        notes = {**template.get("annotations", {}), **(annotations or {})}
        cluster.pod(f"{name}-{index}", body, {**template.get("labels", {}), **(labels or {}), **known}, notes)
        made.append(f"{name}-{index}")
    return made


def _job_of(owner: Json, name: str, spec: Json) -> Json:
    from tests.grouping.cluster import reference

    meta = {"name": name, "uid": f"job-{name}", "ownerReferences": [reference(owner)]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


# ---- JobSet and TrainJob


def jobset(cluster: Cluster, body: Json, only: str = "", leaders: bool = False, followers: bool = False) -> list[str]:
    """Jobs of all ReplicatedJobs, or of one. `leaders`, `followers`: only the first pods of Jobs, only the others: so
    JobSet's webhook admits them under exclusive placement."""
    cluster.own(body)
    made: list[str] = []
    meta = body["metadata"]
    notes = {key: value for key, value in meta.get("annotations", {}).items() if key.startswith("alpha.jobset")}
    for part in body["spec"]["replicatedJobs"]:
        if only and part["name"] != only:
            continue
        for index in range(part.get("replicas", 1)):
            labels = {
                "jobset.sigs.k8s.io/jobset-name": meta["name"],
                "jobset.sigs.k8s.io/jobset-uid": meta["uid"],
                "jobset.sigs.k8s.io/replicatedjob-name": part["name"],
                "jobset.sigs.k8s.io/job-index": str(index),
                "jobset.sigs.k8s.io/restart-attempt": "0",
            }
            one = _job_of(body, f"{meta['name']}-{part['name']}-{index}", part["template"]["spec"])
            own = (part["template"]["spec"].get("template") or {}).get("metadata") or {}
            said = ({**own.get("labels", {}), **labels}, {**own.get("annotations", {}), **notes})
            made += _pods_of_job(cluster, one, *said, leaders=leaders, followers=followers)
    return made


def _pods_of_job(
    cluster: Cluster, one: Json, labels: Json, notes: Json, *, leaders: bool, followers: bool
) -> Iterator[str]:
    cluster.own(one)
    spec = one["spec"]
    count = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))
    for index in range(count):
        if (leaders and index) or (followers and not index):
            continue
        name = f"{one['metadata']['name']}-{index}"
        cluster.pod(name, one, {**labels, "batch.kubernetes.io/job-completion-index": str(index)}, notes)
        yield name


# ---- LeaderWorkerSet


def lws(cluster: Cluster, body: Json, group: int, *, leader: bool = True, workers: bool = True) -> list[str]:
    """One replica: the leader is a pod of a StatefulSet, its workers of another that belongs to the leader."""
    cluster.own(body)
    name, size = body["metadata"]["name"], body["spec"]["leaderWorkerTemplate"]["size"]
    made = []
    for index in range(size):
        if (index == 0 and not leader) or (index and not workers):
            continue
        labels = {
            "leaderworkerset.sigs.k8s.io/name": name,
            "leaderworkerset.sigs.k8s.io/group-index": str(group),
            "leaderworkerset.sigs.k8s.io/worker-index": str(index),
        }
        pod = f"{name}-{group}" if index == 0 else f"{name}-{group}-{index}"
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "uid": f"sts-{name}"}}
        cluster.own({**owner, "spec": {"replicas": size, "podManagementPolicy": "Parallel"}})
        cluster.pod(pod, owner, labels, {"leaderworkerset.sigs.k8s.io/size": str(size)})
        made.append(pod)
    return made


# ---- training operators


def kubeflow(cluster: Cluster, body: Json, field: str, *, without: str = "") -> list[str]:
    cluster.own(body)
    made = []
    for replica, one in body["spec"][field].items():
        for index in range(one.get("replicas", 1)):
            role = replica.lower()
            if role == without:
                continue
            labels = {
                "training.kubeflow.org/job-name": body["metadata"]["name"],
                "training.kubeflow.org/replica-type": role,
                "training.kubeflow.org/replica-index": str(index),
                "training.kubeflow.org/operator-name": f"{body['kind'].lower()}-controller",
            }
            if role == "master":
                labels["training.kubeflow.org/job-role"] = "master"
            made.append(f"{body['metadata']['name']}-{role}-{index}")
            cluster.pod(made[-1], body, labels)
    return made


def mpi_launcher(cluster: Cluster, body: Json) -> str:
    """Of the MPI operator's v2beta1: a Job with one pod."""
    name = f"{body['metadata']['name']}-launcher"
    owner = cluster.own(_job_of(body, name, {"parallelism": 1, "completions": 1}))
    labels = {"training.kubeflow.org/job-name": body["metadata"]["name"], "training.kubeflow.org/job-role": "launcher"}
    cluster.pod(f"{name}-x", owner, labels)
    return f"{name}-x"


# ---- Ray


def ray(cluster: Cluster, body: Json) -> list[str]:
    cluster.own(body)
    name, spec = body["metadata"]["name"], body["spec"]
    labels = {"ray.io/cluster": name, "ray.io/node-type": "head", "ray.io/group": "headgroup"}
    cluster.pod(f"{name}-head", body, labels)
    made = [f"{name}-head"]
    for group in spec["workerGroupSpecs"]:
        for index in range(group.get("replicas", 0) * group.get("numOfHosts", 1)):
            labels = {"ray.io/cluster": name, "ray.io/node-type": "worker", "ray.io/group": group["groupName"]}
            made.append(f"{name}-{group['groupName']}-{index}")
            cluster.pod(made[-1], body, labels)
    return made


# ---- Spark


def spark_driver(cluster: Cluster, body: Json) -> str:
    name = f"{cluster.own(body)['metadata']['name']}-driver"
    cluster.pod(name, body, spark_labels(body["metadata"]["name"], "driver"))
    return name


def spark_executors(cluster: Cluster, body: Json, number: int) -> list[str]:
    """The driver's own pods: it owns them."""
    name = body["metadata"]["name"]
    driver = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-driver", "uid": "d"}}
    made = [f"{name}-exec-{index}" for index in range(1, number + 1)]
    for index, one in enumerate(made, 1):
        cluster.pod(one, driver, {**spark_labels(name, "executor"), "spark-exec-id": str(index)})
    return made


def spark_labels(name: str, role: str, *, operator: bool = True) -> Json:
    labels = {"spark-app-selector": f"spark-{name}", "spark-app-name": name, "spark-role": role}
    return {**labels, "sparkoperator.k8s.io/app-name": name} if operator else labels
