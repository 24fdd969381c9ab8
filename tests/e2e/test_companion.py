"""Gangs of pods that name no group, on a whole cluster: the scheduler, what it writes, and what people are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.test_explain import asked

from kohort.api.crd import crds
from kohort.kube.errors import ApiError
from kohort.scheduler.rootstatus import RootState
from kohort.testing.cluster import Cluster

Json = dict[str, Any]


def asking(name: str, pods: int, cpu: str) -> Json:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "annotations": {"kohort.dev/gang": "true"}},
        "spec": {
            "replicas": pods,
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"schedulerName": "kohort", "containers": [container]},
            },
        },
    }


async def told(cluster: Cluster, pod: Json) -> str:
    found = (one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled")
    return str(next((one.get("message") for one in found), ""))


async def test_a_statefulset_that_asks_starts_together_or_waits_and_says_why(cluster: Cluster) -> None:
    """With nothing of the Workload API."""
    await cluster.create(asking("fits", 4, "1"))
    await cluster.create(asking("giant", 100, "4"))

    async def settled() -> Any:
        pods = await cluster.pods()
        bound = [one for one in pods if one["metadata"]["name"].startswith("fits") and one["spec"].get("nodeName")]
        waits = [one for one in pods if "grouped by rule replicas" in await told(cluster, one)]
        return len(bound) == 4 and len(waits) == 100

    await cluster.until(settled)
    (waits,), _ = await asked(cluster, "statefulset", "giant")
    assert (waits.kind, waits.name, waits.state) == ("Gang", "giant", RootState.WAITING)
    assert waits.grouped.startswith("grouped by rule replicas (StatefulSet ")
    assert waits.explanation is not None
    events = (await cluster.client.kind("v1", "Event").list(cluster.namespace)).items
    on_owner = [
        one for one in events if one["involvedObject"]["kind"] == "StatefulSet" and one["reason"] == "FailedScheduling"
    ]
    assert any("grouped by rule replicas" in one["message"] for one in on_owner)
    pods = [one for one in await cluster.pods() if one["metadata"]["name"].startswith("giant")]
    assert not any(one["spec"].get("nodeName") for one in pods)


@pytest.mark.releases("1.37")
async def test_an_operator_that_comes_after_the_scheduler(cluster: Cluster) -> None:
    """Its kind is found when the first pod needs it."""
    await cluster.create(custom("RayCluster", "rayclusters", "ray.io"))

    async def served() -> Any:
        await cluster.client.discovery.refresh()
        return await cluster.client.discovery.versions("ray.io", "RayCluster")

    await cluster.until(served)
    spec = {"headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "w", "replicas": 2, "minReplicas": 0}]}
    made = await cluster.create(
        {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "sample"}, "spec": spec}
    )

    async def pod(name: str, kind: str, group: str) -> None:
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "sample", "uid": made["metadata"]["uid"]}
        labels = {"ray.io/cluster": "sample", "ray.io/node-type": kind, "ray.io/group": group}
        meta = {"name": name, "labels": labels, "ownerReferences": [{**owner, "controller": True}]}
        containers = [{"name": "ray", "image": "ray", "resources": {"requests": {"cpu": "1"}}}]
        body = {"schedulerName": "kohort", "containers": containers}
        await cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body})

    await pod("head", "head", "headgroup")
    await pod("w-0", "worker", "w")

    async def waits() -> Any:
        return ["grouped by rule ray" in await told(cluster, one) for one in await cluster.pods()] == [True, True]

    await cluster.until(waits)
    (root,), _ = await asked(cluster, "raycluster", "sample")
    assert (root.kind, root.name, root.pending, root.missing) == ("GangTree", "sample", 2, 1)
    await pod("w-1", "worker", "w")

    async def runs() -> Any:
        return all(one["spec"].get("nodeName") for one in await cluster.pods())

    await cluster.until(runs)


@pytest.mark.releases("1.37")
async def test_a_grouping_rule_that_comes_while_the_scheduler_works(cluster: Cluster) -> None:
    """A kind that nobody has heard of; what is wrong with a rule is said on it."""
    await cluster.create(custom("FlinkDeployment", "flinkdeployments", "flink.apache.org"))
    served = await cluster.client.discovery.versions("kohort.dev", "GroupingRule")
    if not served:  # a real API server; the embedded one brings it along
        (definition,) = (one for one in crds() if one["spec"]["group"] == "kohort.dev")
        await cluster.create(definition)
    await cluster.until(lambda: _serves(cluster, "flink.apache.org", "FlinkDeployment"))
    await cluster.until(lambda: _serves(cluster, "kohort.dev", "GroupingRule"))
    rules = cluster.client.kind("kohort.dev/v1alpha1", "GroupingRule")
    spec: Json = {
        "apiVersion": "flink.apache.org/v1",
        "kind": "FlinkDeployment",
        "membership": {"label": "app"},
        "minimum": {"cel": "object.spec.replicas + 1"},
    }
    body = {"apiVersion": "kohort.dev/v1alpha1", "kind": "GroupingRule"}
    role, binding = may_read("flink.apache.org", "flinkdeployments")
    await cluster.create(role)
    await cluster.create(binding)
    try:
        await rules.create({**body, "metadata": {"name": "flink"}, "spec": spec})
        await cluster.create(
            {
                "apiVersion": "flink.apache.org/v1",
                "kind": "FlinkDeployment",
                "metadata": {"name": "count"},
                "spec": {"replicas": 2},
            }
        )
        await cluster.until(lambda: _accepted(rules, "flink"))
        for name in ("a", "b"):
            await cluster.create(plain(name, {"app": "count"}))

        async def waits() -> Any:
            return ["grouped by rule flink" in await told(cluster, one) for one in await cluster.pods()] == [True] * 2

        await cluster.until(waits)
        (root,), _ = await asked(cluster, "flinkdeployment", "count")
        assert root.grouped.startswith("grouped by rule flink (FlinkDeployment ")
        assert (root.pending, root.missing) == (2, 1)
        await cluster.create(plain("c", {"app": "count"}))

        async def runs() -> Any:
            return all(one["spec"].get("nodeName") for one in await cluster.pods())

        await cluster.until(runs)
        changed = {**spec, "minimum": {"jsonPath": ["replicas"]}}  # which no schema can see
        found = await rules.get("flink")
        try:
            await rules.update({**found, "spec": changed})
        except ApiError as error:  # the embedded server has the kind's own rules
            assert "accepted is a path in the spec" in str(error)  # noqa: PT017
        else:
            refused = await cluster.until(lambda: _accepted(rules, "flink", "False"))
            assert "accepted is a path in the spec" in refused["message"]
    finally:
        await rules.delete("flink")


@pytest.mark.releases("1.37")
async def test_a_driver_starts_with_room_for_what_it_makes_later(cluster: Cluster) -> None:
    """Two Spark applications where there is room for one: their drivers do not hold up each other."""
    await cluster.create(custom("SparkApplication", "sparkapplications", "sparkoperator.k8s.io"))
    await cluster.until(lambda: _serves(cluster, "sparkoperator.k8s.io", "SparkApplication"))
    whole = str(max(int(one["status"]["allocatable"]["cpu"]) for one in await _nodes(cluster)))
    executor = {"instances": 6, "coreRequest": whole, "memory": "64m", "schedulerName": "kohort"}
    for name in ("one", "other"):
        await _application(cluster, name, executor)
        await cluster.create(spark(name, "driver", "1"))

    async def driven() -> Any:
        pods = {one["metadata"]["name"]: one for one in await cluster.pods()}
        bound = [name for name, one in pods.items() if one["spec"].get("nodeName")]
        waits = [name for name in pods if name not in bound and "made later: 6 pods" in await told(cluster, pods[name])]
        return (bound, waits) if len(bound) == len(waits) == 1 else None

    (started,), _ = await cluster.until(driven)
    name = started.removesuffix("-driver")
    for number in range(6):
        await cluster.create(spark(name, f"executor-{number}", whole))

    async def runs() -> Any:
        return sum(bool(one["spec"].get("nodeName")) for one in await cluster.pods()) == 7

    await cluster.until(runs)


async def _nodes(cluster: Cluster) -> list[Json]:
    return (await cluster.client.kind("v1", "Node").list()).items


async def _application(cluster: Cluster, name: str, executor: Json) -> None:
    spec = {"type": "Scala", "executor": executor}
    api = "sparkoperator.k8s.io/v1"
    await cluster.create({"apiVersion": api, "kind": "SparkApplication", "metadata": {"name": name}, "spec": spec})


def spark(application: str, part: str, cpu: str) -> Json:
    labels = {
        "spark-app-selector": f"spark-{application}",
        "spark-role": part.partition("-")[0],
        "sparkoperator.k8s.io/app-name": application,
    }
    made = plain(f"{application}-{part}", labels)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return made


async def _serves(cluster: Cluster, group: str, kind: str) -> Any:
    await cluster.client.discovery.refresh()
    return await cluster.client.discovery.versions(group, kind)


async def _accepted(rules: Any, name: str, status: str = "True") -> Any:
    found = (await rules.get(name)).get("status", {}).get("conditions", ())
    return next((one for one in found if (one["type"], one["status"]) == ("Accepted", status)), None)


def may_read(group: str, resource: str) -> tuple[Json, Json]:
    api, name = "rbac.authorization.k8s.io", f"kohort-{resource}"
    allowed = {"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]}
    whom = {"kind": "ServiceAccount", "name": "kohort", "namespace": "kohort-system"}
    return (
        {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [allowed]},
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
            "subjects": [whom],
        },
    )


def plain(name: str, labels: Json) -> Json:
    containers = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"schedulerName": "kohort", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def custom(kind: str, plural: str, group: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
