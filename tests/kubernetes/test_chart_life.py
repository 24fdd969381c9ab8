"""The chart from install to uninstall: its Deployment starts the processes that then place gangs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.chartbed import SPACE, Bed, bed

from kohort.testing.cluster import Cluster
from kohort.testing.environment.environment import Environment

pytestmark = pytest.mark.timeout(600)
JOBSET = "jobset.x-k8s.io/v1alpha2"


# The whole life on real Kubernetes, too; what needs one look at a running release on the embedded server alone.
EVERYWHERE = pytest.mark.parametrize("place", ["embedded", "1.37", "1.36"])


@pytest.fixture
def place() -> str:
    return "embedded"


@pytest.fixture
async def cluster(
    place: str, tmp_path: Path, kubernetes_environments: Callable[..., Environment]
) -> AsyncIterator[Bed]:
    async with bed(place, tmp_path, kubernetes_environments) as found:
        yield found


def gang(name: str, pods: int = 4) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "c", "image": "registry.example/c:1", "command": ["sleep", "86400"], "resources": resources}
    pod = {"restartPolicy": "Never", "schedulerName": "kohort", "containers": [container]}
    job = {"spec": {"parallelism": pods, "completions": pods, "template": {"spec": pod}}}
    spec = {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": [{"name": "w", "replicas": 1, "template": job}]}
    return {"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


async def lives(found: Cluster) -> dict[str, tuple[str, str]]:
    return {pod["metadata"]["uid"]: (pod["spec"]["nodeName"], pod["status"]["phase"]) for pod in await found.pods()}


async def space(found: Bed, name: str) -> Cluster:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await found.client.kind("v1", "Namespace").create(body)
    return Cluster(found.client, name, patience=60)


async def own_pods(found: Bed) -> list[dict[str, Any]]:
    return (await found.client.kind("v1", "Pod").list(SPACE, labels="app.kubernetes.io/name=kohort")).items


@EVERYWHERE
async def test_install_upgrade_roll_back_uninstall(cluster: Bed) -> None:
    said = await cluster.release("install", replicas=2)
    assert "spec.schedulerName: kohort" in said
    deployment = await cluster.client.kind("apps/v1", "Deployment").get("kohort", SPACE)
    assert deployment["status"]["availableReplicas"] == 2
    work = await space(cluster, "team-a")
    await work.create(gang("first"))
    await work.running(4)
    before = await lives(work)

    # A new configuration rolls the processes; what runs does not notice, and what is submitted meanwhile starts.
    old = {pod["metadata"]["uid"] for pod in await own_pods(cluster)}
    upgrade = asyncio.create_task(cluster.release("upgrade", replicas=2, log__verbose=True))
    await work.create(gang("second"))
    await upgrade

    async def rolled() -> bool:
        return old.isdisjoint(pod["metadata"]["uid"] for pod in await own_pods(cluster))

    await work.until(rolled, what="the end of the old processes")
    await work.running(8)
    assert before.items() <= (await lives(work)).items()

    await cluster.helm("rollback", "kohort", "1", "-n", SPACE, "--wait", "--timeout=100s")
    await work.create(gang("third"))
    await work.running(12)
    running = await lives(work)
    assert before.items() <= running.items()

    assert " cannot " not in cluster.host.said()  # the roles are enough
    said = await cluster.helm("uninstall", "kohort", "-n", SPACE, "--wait", "--timeout=60s")

    async def gone() -> bool:
        return not await own_pods(cluster)

    await work.until(gone, what="the end of Kohort's pods")
    assert await lives(work) == running
    assert len(await work.every(JOBSET, "JobSet")) == 3
    if not cluster.own_crds:
        assert "jobsets.jobset.x-k8s.io" in said  # helm says what it kept


async def test_split_in_two_and_only_in_one_namespace(cluster: Bed) -> None:
    work, theirs = await space(cluster, "mine"), await space(cluster, "theirs")
    await cluster.release("install", replicas=1, split=True, namespaces=["mine"])
    await work.create(gang("ours"))
    await theirs.create(gang("not-ours"))
    await work.running(4)
    assert await theirs.pods() == []
    accounts = {pod["spec"]["serviceAccountName"] for pod in await own_pods(cluster)}
    assert accounts == {"kohort-scheduler", "kohort-controllers"}
    assert " cannot " not in cluster.host.said()
    assert await _may(cluster, "kohort-scheduler", "create", "pods/binding", "mine")
    assert not await _may(cluster, "kohort-scheduler", "create", "pods/binding", "theirs")
    assert not await _may(cluster, "kohort-scheduler", "list", "secrets", "mine")
    assert not await _may(cluster, "kohort-controllers", "create", "pods/binding", "mine")
    await cluster.helm("uninstall", "kohort", "-n", SPACE, "--wait")


async def test_logs_probes_and_metrics(cluster: Bed) -> None:
    await cluster.release("install", replicas=2)

    async def leads_and_stands_by() -> bool:
        answers = set()
        async with aiohttp.ClientSession() as web:
            for pod in await own_pods(cluster):
                root = f"http://127.0.0.1:{cluster.host.port(pod['metadata']['name'])}"
                async with web.get(f"{root}/readyz") as answer:
                    answers.add((await answer.text())[:15])
                async with web.get(f"{root}/metrics") as answer:
                    assert answer.status == 200
        return answers == {"ok", "ok: standing by"}

    await Cluster(cluster.client, SPACE, patience=60).until(leads_and_stands_by)
    lines = [json.loads(line) for line in cluster.host.said().splitlines()]  # every line is JSON
    assert {"Workload API", "scheduler"} <= {line.get("capability") for line in lines}
    assert "working; stop with Ctrl-C" in {line["message"] for line in lines}
    await cluster.helm("uninstall", "kohort", "-n", SPACE, "--wait")


async def _may(cluster: Bed, account: str, verb: str, resource: str, namespace: str) -> bool:
    name, _, sub = resource.partition("/")
    asked = {"verb": verb, "resource": name, "subresource": sub, "namespace": namespace}
    spec = {"user": f"system:serviceaccount:{SPACE}:{account}", "resourceAttributes": asked}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    made = await cluster.client.of(body).create(body)
    return bool(made["status"]["allowed"])
