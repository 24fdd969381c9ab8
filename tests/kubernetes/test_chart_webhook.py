"""The admission webhook on a real cluster, from the chart: it refuses what no definition can see, and when it is dead
or hangs, nobody waits for it longer than its timeout."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.kubernetes.test_chart_life import gang, space
from tests.support.chartbed import SPACE, Bed, bed

from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster
from kohort.testing.environment.environment import Environment
from kohort.webhook.grouping import LABEL

pytestmark = pytest.mark.timeout(600)
TIMEOUT = 2  # seconds that API servers wait for it
CONFIGURATION = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")


@pytest.fixture(params=["1.37", "1.36"])
async def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, kubernetes_environments: Callable[..., Environment]
) -> AsyncIterator[Bed]:
    async with bed(request.param, tmp_path, kubernetes_environments, services=True) as found:
        yield found


def mistaken(name: str) -> dict[str, Any]:
    """Names of its pods would be too long, those of its Jobs are not: the definition sees the latter only."""
    return gang(f"{name}-".ljust(56, "n"))


def train(name: str) -> dict[str, Any]:
    version = "trainer.kubeflow.org/v1alpha1"
    spec = {"runtimeRef": {"name": "nobody-has-this"}}
    return {"apiVersion": version, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


async def refusal(work: Cluster, body: dict[str, Any]) -> str:
    """Why it is not taken; empty: it would be (nothing is created)."""
    try:
        await work.client.of(body).create(body, work.namespace, dry_run=True)
    except ApiError as error:
        return error.message
    return ""


def webhooks(cluster: Bed) -> list[Any]:
    return [process for name, process in cluster.host.processes.items() if name.startswith("kohort-webhook-")]


async def test_mistakes_are_refused_and_a_dead_webhook_stops_nobody(cluster: Bed) -> None:
    await cluster.release(
        "install", replicas=2, webhook__enabled=True, webhook__timeoutSeconds=TIMEOUT, scheduler__enabled=False
    )
    work = await space(cluster, "team-a")

    async def refuses() -> str:
        return await refusal(work, mistaken("early"))

    said = await work.until(refuses, what="an API server that has read whom to trust")
    assert 'admission webhook "validate.kohort.dev" denied the request' in said
    assert "nobody-has-this" in await refusal(work, train("t"))  # another object decides
    assert await refusal(work, gang("good")) == ""

    # An update that the definition would let pass.
    await work.create(gang("frozen"))
    with pytest.raises(ApiError, match=r"validate\.kohort\.dev"):
        await _change_image(work, "frozen")

    # One of two is killed: the other answers.
    first, second = webhooks(cluster)
    first.kill()
    assert "validate.kohort.dev" in await work.until(refuses, what="the other one")

    # Both hang: a write waits for the timeout, once, and is taken as it is. Other kinds never notice.
    for process in (second, *webhooks(cluster)):
        process.send_signal(signal.SIGSTOP)
    began = monotonic()
    await work.create(mistaken("while-hanging"))
    assert monotonic() - began < TIMEOUT + 5  # a busy machine
    await _others_do_not_notice(work, "hanging")

    # All are dead, and stay so.
    await cluster.client.kind("apps/v1", "Deployment").scale("kohort-webhook", 0, SPACE)
    for process in webhooks(cluster):
        process.kill()
    await work.until(lambda: _none(cluster), what="the end of the processes")
    began = monotonic()
    await work.create(mistaken("while-dead"))
    assert monotonic() - began < TIMEOUT + 5
    await _others_do_not_notice(work, "dead")

    # It comes back, and what came meanwhile can still be changed and deleted.
    await cluster.client.kind("apps/v1", "Deployment").scale("kohort-webhook", 1, SPACE)
    await work.until(refuses, seconds=180, what="a webhook that came back")
    late = mistaken("while-dead")["metadata"]["name"]
    jobsets = work.client.kind("jobset.x-k8s.io/v1alpha2", "JobSet")
    await jobsets.patch(late, {"spec": {"suspend": True}}, work.namespace)
    await jobsets.delete(late, work.namespace)

    assert " cannot " not in cluster.host.said()  # the roles are enough
    await cluster.helm("uninstall", "kohort", "-n", SPACE, "--wait", "--timeout=60s")
    for version, kind, where in ((*CONFIGURATION, ""), ("v1", "Secret", SPACE)):
        with pytest.raises(ApiError, match="not found"):
            await cluster.client.kind(version, kind).get("kohort-webhook", where)
    assert await refusal(work, mistaken("after")) == ""


async def _none(cluster: Bed) -> bool:
    return all(process.poll() is not None for process in webhooks(cluster))


async def _change_image(work: Cluster, name: str) -> None:
    path = "/spec/replicatedJobs/0/template/spec/template/spec/containers/0/image"
    change = [{"op": "replace", "path": path, "value": "registry.example/other:2"}]
    await work.client.kind("jobset.x-k8s.io/v1alpha2", "JobSet").patch(name, change, work.namespace, kind="json")


async def _others_do_not_notice(work: Cluster, name: str) -> None:
    container = {"name": "c", "image": "registry.example/c:1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    began = monotonic()
    await work.client.of(pod).create(pod, work.namespace)
    await work.client.of(pod).delete(name, work.namespace, grace=0)
    assert monotonic() - began < TIMEOUT


async def test_kube_scheduler_gangs_pods_of_operators_that_know_no_groups(cluster: Bed) -> None:
    """`webhook.grouping`, in a namespace that asks for it: pods that carry Kohort's keys are placed by kube-scheduler
    together or not at all."""
    await cluster.release(
        "install",
        replicas=1,
        webhook__enabled=True,
        webhook__grouping=True,
        scheduler__enabled=False,
        **{f"controllers__{name}": False for name in ("jobset", "trainjob", "grove", "leaderworkerset")},
    )
    work = await space(cluster, "team-b")
    await cluster.client.kind("v1", "Namespace").patch(work.namespace, {"metadata": {"labels": {LABEL: "enabled"}}})

    async def asked() -> bool:
        probe = _replicas("probe", "1")["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", **probe, "metadata": {**probe["metadata"], "name": "probe"}}
        return "schedulingGroup" in (await work.client.of(pod).create(pod, work.namespace, dry_run=True))["spec"]

    await work.until(asked, what="an API server that asks")
    for body in (_replicas("large", "5"), _replicas("fits", "3")):
        await work.create(body)

    async def bound() -> dict[str, int]:
        counts = {"fits": 0, "large": 0}
        for pod in await work.pods():
            assert "schedulingGroup" in pod["spec"]
            counts[pod["metadata"]["labels"]["kohort.dev/pod-group"]] += bool(pod["spec"].get("nodeName"))
        return counts if counts["fits"] == 3 else {}

    counts = await work.until(bound, what="a gang that kube-scheduler has placed")
    assert counts == {"fits": 3, "large": 0}  # of 3 pods with a minimum of 5, none
    version = "scheduling.k8s.io/v1beta1" if "1.37" in str(await _version(cluster)) else "scheduling.k8s.io/v1alpha2"
    groups = (await cluster.client.kind(version, "PodGroup").list(work.namespace)).items
    assert len(groups) == 2
    assert " cannot " not in cluster.host.said()
    await cluster.helm("uninstall", "kohort", "-n", SPACE, "--wait", "--timeout=60s")


async def _version(cluster: Bed) -> dict[str, Any]:
    return await cluster.client.version()


def _replicas(name: str, minimum: str) -> dict[str, Any]:
    """Three pods of a controller that writes no groups, as most do. (Those of Jobs are grouped by 1.37 itself.)"""
    container = {"name": "c", "image": "registry.example/c:1", "command": ["sleep", "86400"]}
    labels = {"kohort.dev/pod-group": name}
    meta = {"labels": labels, "annotations": {"kohort.dev/min-count": minimum}}
    spec = {"containers": [{**container, "resources": {"requests": {"cpu": "1"}}}]}
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": meta, "spec": spec}},
    }  # fmt: skip
