"""The doctor on a cluster that is well, and on others of which each has something wrong."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kohort.apimachinery.times import micros
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.run.examination import examine
from kohort.run.findings import Finding, diagnose, worst
from kohort.run.options import WebhookOptions
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.webhook import rotation
from kohort.webhook.upkeep import Upkeep, host_names

ROOT = Path(__file__).parents[2]
SPACE = "kohort-system"
LEASE = ("coordination.k8s.io/v1", "Lease")
HOOKS = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")


async def install(client: Client, namespace: str = SPACE) -> None:
    """What `kohort manifests | kubectl apply -f -` makes, with two processes that are ready and one that leads."""
    text = (ROOT / "deploy" / "kustomize" / "kohort.yaml").read_text().replace(SPACE, namespace)
    for obj in yaml.safe_load_all(text):
        try:
            await client.of(obj).create(obj, obj["metadata"].get("namespace", ""))
        except ApiError as error:
            if not error.already_exists:
                raise
    status = {"status": {"replicas": 2, "readyReplicas": 2, "observedGeneration": 1}}
    for name in ("kohort", "kohort-webhook"):
        await client.kind("apps/v1", "Deployment").patch(name, status, namespace, subresource="status")
    await answering(client, namespace)
    spec = {"holderIdentity": "kohort-0", "leaseDurationSeconds": 10, "renewTime": micros(client.clock.now())}
    lease = {"apiVersion": LEASE[0], "kind": LEASE[1], "metadata": {"name": "kohort"}, "spec": spec}
    await client.of(lease).create(lease, namespace)


async def answering(client: Client, namespace: str) -> None:
    """The webhook has made its certificate, and its Service leads somewhere."""
    chosen = WebhookOptions(namespace=namespace)
    await Upkeep(client, chosen).look()
    labels = {"kubernetes.io/service-name": chosen.name}
    body = {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "kohort-webhook-1", "labels": labels},
        "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": True}}], "ports": [{"port": 10354}],
    }  # fmt: skip
    await client.of(body).create(body, namespace)


async def certificate(client: Client, made: datetime) -> None:
    """Another one, made at that moment, by an authority that API servers trust."""
    secrets = client.kind("v1", "Secret")
    keys = rotation.due(rotation.Keys(), host_names(WebhookOptions(namespace=SPACE)), made)
    assert keys is not None
    await secrets.patch("kohort-webhook", {"data": rotation.write(keys)}, SPACE)
    change = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": b64encode(keys.bundle).decode()}]
    await client.kind(*HOOKS).patch("kohort-webhook", change, kind="json")


async def served(client: Client) -> None:
    while not await client.discovery.versions("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
        await asyncio.sleep(0.01)
        await client.discovery.refresh()


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server, Client.within(server.api) as found:
        await served(found)
        await install(found)
        yield found


async def findings(client: Client) -> list[Finding]:
    return diagnose(await examine(client))


def of(found: list[Finding], what: str) -> list[Finding]:
    return [one for one in found if one.what == what and one.state != "good"]


async def test_a_healthy_cluster(client: Client) -> None:
    found = await findings(client)
    assert worst(found) == "good", [one for one in found if one.state != "good"]
    assert {
        "Kubernetes",
        "Workload API",
        "processes",
        "leader",
        "roles",
        "clock",
        "definitions",
        "webhooks",
        "own webhook",
    } <= {one.what for one in found}


async def test_no_workload_api(tmp_path: Path) -> None:
    gates = dict.fromkeys(
        (
            "GenericWorkload",
            "CompositePodGroup",
            "TopologyAwareWorkloadScheduling",
            "DRAWorkloadResourceClaims",
            "WorkloadWithJob",
        ),
        False,
    )
    settings = Settings(tmp_path, gates=gates, port=0, in_memory=True)
    async with Server(settings) as server, Client.within(server.api) as client:
        await served(client)
        await install(client)
        (one,) = of(await findings(client), "Workload API")
    assert one.state == "bad"
    assert "--feature-gates=GenericWorkload=true" in one.mend


async def test_a_right_is_lacking(client: Client) -> None:
    await client.kind("rbac.authorization.k8s.io/v1", "ClusterRole").delete("kohort-jobset")
    (one,) = of(await findings(client), "roles")
    assert one.state == "bad"
    assert one.text.startswith("kohort-system/kohort may not create jobs.batch, ")
    assert "helm upgrade" in one.mend


async def test_a_leader_that_died_and_nobody_followed(client: Client) -> None:
    long_ago = micros(client.clock.now() - timedelta(minutes=5))
    await client.kind(*LEASE).patch("kohort", {"spec": {"renewTime": long_ago}}, SPACE)
    status = {"status": {"readyReplicas": None}}
    await client.kind("apps/v1", "Deployment").patch("kohort", status, SPACE, subresource="status")
    found = await findings(client)
    (leader,), (processes,) = of(found, "leader"), of(found, "processes")
    assert "kohort-0 has not renewed it for 300 s" in leader.text
    assert processes.text == "kohort-system/kohort: 0 of 2 are ready"
    assert worst(found) == "bad"


async def test_a_lease_that_flaps(client: Client) -> None:
    await client.kind(*LEASE).patch("kohort", {"spec": {"leaseTransitions": 40}}, SPACE)
    (one,) = of(await findings(client), "leader")
    assert (one.state, "changed hands 40 times" in one.text) == ("odd", True)


async def test_two_of_them(client: Client) -> None:
    await install(client, "other")
    (one,) = of(await findings(client), "who schedules")
    assert one.text == "Kohort is installed in 2 namespaces: kohort-system, other"
    assert "helm uninstall kohort -n other" in one.mend


async def test_an_old_definition(client: Client) -> None:
    crds = client.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    crd = await crds.get("jobsets.jobset.x-k8s.io")
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["gangConfig"]
    rules = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules.pop("x-kubernetes-validations", None)
    await crds.update(crd)
    (one,) = of(await findings(client), "definitions")
    assert one.text.startswith("jobsets.jobset.x-k8s.io: v1alpha2 does not know spec.gangConfig")
    assert one.mend == "kohort crds jobsets.jobset.x-k8s.io | kubectl apply --server-side --force-conflicts -f -"


async def test_our_webhook_with_nobody_behind_it(client: Client) -> None:
    await client.kind("discovery.k8s.io/v1", "EndpointSlice").delete("kohort-webhook-1", SPACE)
    (one,) = of(await findings(client), "own webhook")
    assert (one.state, "nobody answers at Service kohort-system/kohort-webhook" in one.text) == ("bad", True)
    assert of(await findings(client), "webhooks") == []  # nobody is stopped: failurePolicy Ignore


async def test_our_certificate_has_expired(client: Client) -> None:
    await certificate(client, client.clock.now() - timedelta(days=366))
    (one,) = of(await findings(client), "own webhook")
    assert (one.state, "expired on" in one.text) == ("bad", True)
    assert one.mend == "kubectl rollout restart deployment kohort-webhook -n kohort-system"


async def test_our_certificate_was_not_renewed(client: Client) -> None:
    await certificate(client, client.clock.now() - timedelta(days=360))
    (one,) = of(await findings(client), "own webhook")
    assert (one.state, "was not renewed" in one.text) == ("odd", True)


async def test_api_servers_trust_somebody_else(client: Client) -> None:
    found = await client.kind("v1", "Secret").get("kohort-webhook", SPACE)
    await certificate(client, client.clock.now())
    await client.kind("v1", "Secret").patch("kohort-webhook", {"data": found["data"]}, SPACE)
    (one,) = of(await findings(client), "own webhook")
    assert (one.state, "caBundle is not of who signed its certificate" in one.text) == ("bad", True)


async def test_api_servers_trust_nobody(client: Client) -> None:
    change = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    await client.kind(*HOOKS).patch("kohort-webhook", change, kind="json")
    (one,) = of(await findings(client), "own webhook")
    assert (one.state, "caBundle has no certificate" in one.text) == ("bad", True)


async def test_our_webhook_lacks_a_right(client: Client) -> None:
    await client.kind("rbac.authorization.k8s.io/v1", "Role").delete("kohort-webhook-certificate", SPACE)
    (one,) = of(await findings(client), "roles")
    assert (
        one.text == "kohort-system/kohort-webhook may not get secrets in kohort-system, update secrets in kohort-system"
    )


async def test_a_webhook_with_nobody_behind_it(client: Client) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook: dict[str, Any] = {
        "name": "a.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail", "clientConfig": {"service": {"namespace": "default", "name": "gone"}},
    }  # fmt: skip
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "policy"}, "webhooks": [hook],
    }  # fmt: skip
    await client.of(body).create(body)
    (one,) = of(await findings(client), "webhooks")
    assert one.state == "bad"
    assert "nobody answers at Service default/gone" in one.text


async def test_a_clock_that_is_ahead(client: Client) -> None:
    ahead = micros(client.clock.now() + timedelta(minutes=1))
    await client.kind(*LEASE).patch("kohort", {"spec": {"renewTime": ahead}}, SPACE)
    (one,) = of(await findings(client), "clock")
    assert "the holder of Lease kohort-system/kohort is 60 s ahead" in one.text


async def test_not_installed(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server, Client.within(server.api) as client:
        await served(client)
        (one,) = of(await findings(client), "processes")
    assert "helm install" in one.mend
