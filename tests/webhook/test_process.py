"""The process as API servers meet it: over TLS, with a certificate that it made itself, on a cluster."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.webhook.test_validating import jobset

from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.run.options import Options, WebhookOptions
from kohort.run.process import look
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.webhook import rotation, serve
from kohort.webhook.grouping import LABEL
from kohort.webhook.process import WebhookProcess
from kohort.webhook.serve import seconds_of
from kohort.webhook.upkeep import Upkeep, host_names

SPACE = "kohort-system"
CHOSEN = Options(listen="127.0.0.1:0", webhook=WebhookOptions(listen="127.0.0.1:0", namespace=SPACE))
NAME = "kohort-webhook"
CONFIGURATION = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server, Client.within(server.api) as found:
        while not await found.discovery.versions("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
            await asyncio.sleep(0.01)
            await found.discovery.refresh()
        for body in chart():
            await found.of(body).create(body, body["metadata"].get("namespace", ""))
        yield found


def chart() -> list[dict[str, Any]]:
    """What the chart installs for it."""
    rule = {
        "apiGroups": ["example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"],
    }  # fmt: skip
    service = {"namespace": SPACE, "name": NAME, "path": "/validate"}
    hook = {
        "name": "validate.kohort.dev", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore", "clientConfig": {"service": service},
    }  # fmt: skip
    meta = {"name": NAME, "namespace": SPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta},
        {"apiVersion": CONFIGURATION[0], "kind": CONFIGURATION[1], "metadata": {"name": NAME}, "webhooks": [hook]},
    ]


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[WebhookProcess]:
    process = WebhookProcess(client, CHOSEN, (await look(client, CHOSEN)).plan)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(process.listening())
        work = asyncio.create_task(process.run())
        stack.callback(work.cancel)
        async with asyncio.timeout(20):
            await process.upkeep.ready.wait()
        yield process


async def trusting(client: Client) -> ssl.SSLContext:
    """As an API server that reads the configuration."""
    found = await client.kind(*CONFIGURATION).get(NAME)
    (hook,) = found["webhooks"]
    return ssl.create_default_context(cadata=b64decode(hook["clientConfig"]["caBundle"]).decode())


def question(new: Any, **more: Any) -> dict[str, Any]:
    group, _, version = new["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": new["kind"]}
    request = {"uid": "u", "kind": kind, "operation": "CREATE", "namespace": "default", "object": new, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def post(process: WebhookProcess, context: ssl.SSLContext, body: Any, path: str = "/validate?timeout=5s") -> Any:
    url = f"https://127.0.0.1:{process.port}{path}"
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    name = host_names(process.upkeep.chosen)[0]
    async with (
        aiohttp.ClientSession() as web,
        web.post(url, data=BytesIO(data), ssl=context, server_hostname=name) as answer,
    ):
        text = await answer.read()
        return msgspec.json.decode(text)["response"] if answer.status == 200 else (answer.status, text.decode())


async def test_it_answers_with_a_certificate_of_its_own(client: Client) -> None:
    async with running(client) as process:
        context = await trusting(client)
        good = await post(process, context, question(jobset()))
        assert good == {"uid": "u", "allowed": True}
        bad = await post(process, context, question(jobset(name="n" * 60)))
        assert bad["allowed"] is False
        assert bad["status"]["reason"] == "Invalid"
        numbers = process.metrics().decode()
        assert 'kohort_webhook_requests_total{decision="denied",kind="JobSet"} 1.0' in numbers
        assert "kohort_webhook_certificate_expiry_timestamp_seconds" in numbers


async def test_what_an_object_refers_to_is_looked_up(client: Client) -> None:
    train = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
        "metadata": {"name": "t", "namespace": "default"}, "spec": {"runtimeRef": {"name": "mine"}},
    }  # fmt: skip
    async with running(client) as process:
        context = await trusting(client)
        assert (await post(process, context, question(train)))["allowed"] is False
        runtime: dict[str, Any] = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "mine", "labels": {"trainer.kubeflow.org/framework": "torch"}},
            "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": jobset()["spec"]}},
        }  # fmt: skip
        runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["name"] = "node"
        await client.of(runtime).create(runtime)
        assert (await post(process, context, question(train)))["allowed"] is True


async def test_bounds(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no question, too large, too slow: an answer at once, which the failurePolicy judges."""
    async with running(client) as process:
        context = await trusting(client)
        assert (await post(process, context, b"?"))[0] == 400
        assert (await post(process, context, b" " * (serve.LARGEST + 1)))[0] == 413
        large = jobset()
        containers = [{"name": f"c{n}", "image": "i", "args": ["x" * 50]} for n in range(20_000)]
        large["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"] = containers
        status, text = await post(process, context, question(large), "/validate?timeout=50ms")
        assert (status, "no answer was found within" in text) == (504, True)
        assert (await post(process, context, question(jobset())))["allowed"] is True  # by another worker
        monkeypatch.setattr(serve, "_WAITING", 0)
        assert (await post(process, context, question(jobset())))[0] == 429


@pytest.mark.parametrize(("text", "seconds"), [("3s", 2.7), ("500ms", 0.45), ("60s", 9.0), ("", 9.0), ("1h", 9.0)])
def test_the_api_server_says_how_long(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


async def test_two_processes_share_one_certificate(client: Client) -> None:
    """Both begin at once, and the API server lets one of them make it."""
    found = [Upkeep(client, replace(CHOSEN.webhook)) for _ in range(4)]
    await asyncio.gather(*(one.look() for one in found))
    await asyncio.gather(*(one.look() for one in found))
    assert len({one._loaded for one in found}) == 1


async def test_it_is_rotated_while_somebody_asks(client: Client) -> None:
    """An authority that lasts seconds: questions go on all the time, each with what the configuration says by then."""
    async with running(client) as process:
        before = await trusting(client)
        process.upkeep.lives = rotation.Lives(timedelta(days=40000), timedelta(days=40000), timedelta(0))
        await process.upkeep.look()  # both are renewed: of such a life, less than a third is left
        assert process.upkeep.rotations == 2
        after = await trusting(client)
        assert (await post(process, after, question(jobset())))["allowed"] is True
        with pytest.raises(aiohttp.ClientError):  # signed by the new one, once it is trusted
            await post(process, before, question(jobset()))


async def test_a_wrong_bundle_is_put_right(client: Client) -> None:
    upkeep = Upkeep(client, CHOSEN.webhook)
    await upkeep.look()
    right = await client.kind(*CONFIGURATION).get(NAME)
    wrong = b64encode(b"nobody").decode()
    change = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": wrong}]
    try:
        await client.kind(*CONFIGURATION).patch(NAME, change, kind="json")
    except ApiError:
        change[0] = {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}
        await client.kind(*CONFIGURATION).patch(NAME, change, kind="json")
    await upkeep.look()
    now = await client.kind(*CONFIGURATION).get(NAME)
    assert now["webhooks"] == right["webhooks"]
    assert upkeep.rotations == 1


async def test_files_of_somebody_else(client: Client, tmp_path: Path) -> None:
    """cert-manager renews them in place; nothing on the cluster is written."""
    keys = [rotation.write(made) for made in (_made(), _made())]
    paths = {name: tmp_path / name for name in (rotation.CERTIFICATE, rotation.KEY)}
    options = replace(CHOSEN.webhook, certificate=str(paths[rotation.CERTIFICATE]), key=str(paths[rotation.KEY]))
    upkeep = Upkeep(client, options)
    for number, data in enumerate(keys, 1):
        for name, path in paths.items():
            path.write_bytes(b64decode(data[name]))
        await upkeep.look()
        await upkeep.look()
        assert upkeep.rotations == number
    assert "data" not in await client.kind("v1", "Secret").get(NAME, SPACE)


def _made() -> rotation.Keys:
    made = rotation.due(rotation.Keys(), ("a.svc",), datetime.now(UTC))
    assert made is not None
    return made


# ---- groups for kube-scheduler


def _member(number: int) -> dict[str, Any]:
    keys = {"labels": {"kohort.dev/pod-group": "g"}, "annotations": {"kohort.dev/min-count": "2"}}
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "default-scheduler"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", **keys}, "spec": spec}


async def test_a_pod_gets_its_group_and_the_group_is_made(client: Client) -> None:
    pods = [_member(number) for number in range(3)]
    assert LABEL == "kohort.dev/grouping"
    async with running(client) as process:
        context = await trusting(client)
        dry = await post(process, context, question(pods[0], dryRun=True), "/group")
        assert dry["patchType"] == "JSONPatch"
        assert (await client.kind("scheduling.k8s.io/v1beta1", "PodGroup").list("default")).items == []
        said = [await post(process, context, question(pod), "/group") for pod in pods]
        assert len({one["patch"] for one in said}) == 1
        (patch,) = msgspec.json.decode(b64decode(said[0]["patch"]))
        groups = (await client.kind("scheduling.k8s.io/v1beta1", "PodGroup").list("default")).items
        assert [one["metadata"]["name"] for one in groups] == [patch["value"]["podGroupName"]]
        assert groups[0]["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2
        ours = {**pods[0], "spec": {**pods[0]["spec"], "schedulerName": "kohort"}}
        assert await post(process, context, question(ours), "/group") == {"uid": "u", "allowed": True}


def _of_flink(number: int) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    meta = {"name": f"f{number}", "labels": {"app": "counts"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def test_rules_of_the_cluster_are_followed(client: Client) -> None:
    """A GroupingRule counts from when it is there, for pods of a kind that nobody here has heard of."""
    names = {"plural": "flinks", "singular": "flink", "kind": "Flink", "listKind": "FlinkList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "flinks.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip
    rule = {
        "apiVersion": "kohort.dev/v1alpha1", "kind": "GroupingRule", "metadata": {"name": "flink"},
        "spec": {"apiVersion": "example.org/v1", "kind": "Flink", "membership": {"label": "app"},
                 "minimum": {"cel": "object.spec.workers + 1"}},
    }  # fmt: skip
    owner = {"apiVersion": "example.org/v1", "kind": "Flink", "metadata": {"name": "counts"}, "spec": {"workers": 2}}
    await client.of(definition).create(definition)
    while not await client.discovery.versions("example.org", "Flink"):
        await asyncio.sleep(0.01)
        await client.discovery.refresh()
    await client.of(owner).create(owner, "default")
    nothing = {"uid": "u", "allowed": True}
    async with running(client) as process, asyncio.timeout(20):
        context = await trusting(client)
        assert await post(process, context, question(_of_flink(0)), "/group") == nothing
        await client.of(rule).create(rule)
        while (said := await post(process, context, question(_of_flink(0)), "/group")) == nothing:
            await asyncio.sleep(0.02)
        (patch,) = msgspec.json.decode(b64decode(said["patch"]))
        group = await client.kind("scheduling.k8s.io/v1beta1", "PodGroup").get(
            patch["value"]["podGroupName"], "default"
        )
        assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3
        await client.of(rule).delete("flink")
        while await post(process, context, question(_of_flink(1)), "/group") != nothing:
            await asyncio.sleep(0.02)
