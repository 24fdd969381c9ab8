"""A kopf operator on our server, with the roles that kopf's documentation asks for and no others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.testing.server import ServerThread

GROUP = "kopf.example.org"
FILE = Path(__file__).parent / "operator_of_kopf.py"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"whom": {"type": "string"}}, "required": ["whom"]},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
DEFINITION = {
    "metadata": {"name": f"greetings.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"plural": "greetings", "kind": "Greeting"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}
ROLE = {
    "metadata": {"name": "kopf"},
    "rules": [
        {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "watch", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "patch", "create"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["list", "watch"]},
    ],
}
BINDING = {
    "metadata": {"name": "kopf"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kopf"},
    "subjects": [{"kind": "ServiceAccount", "name": "kopf", "namespace": "default"}],
}


@pytest.fixture
def operator(kohort_server: ServerThread, kohort_namespace: str, tmp_path: Path) -> Iterator[Path]:
    async def prepare(client: Client) -> None:
        await client.resource("customresourcedefinitions").create(DEFINITION)
        await client.resource("clusterroles").create(ROLE)
        await client.resource("clusterrolebindings").create(BINDING)

    kohort_server.run(prepare)
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--namespace", kohort_namespace, "--standalone", str(FILE)],
            env={**os.environ, "KUBECONFIG": str(kohort_server.kubeconfig_of("kopf"))},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    yield log
    process.terminate()
    process.wait(30)


async def until(look: Callable[[], Awaitable[Any]], log: Path) -> Any:
    for _ in range(1500):
        try:
            if found := await look():
                return found
        except ApiError as error:
            if not error.not_found:
                raise
        await asyncio.sleep(0.02)
    raise AssertionError(log.read_text())


async def test_an_operator(operator: Path, kohort_client: Client) -> None:
    greetings = kohort_client.resource(f"greetings.{GROUP}")
    maps, events = kohort_client.resource("configmaps"), kohort_client.resource("events")
    await maps.create({"metadata": {"name": "any", "labels": {"touch": "please"}}})
    await greetings.create(
        {"apiVersion": f"{GROUP}/v1", "kind": "Greeting", "metadata": {"name": "g"}, "spec": {"whom": "you"}}
    )

    async def status() -> Any:
        return (await greetings.get("g")).get("status", {}).get("made")

    assert await until(status, operator) == {"text": "Hello, you"}
    made = await greetings.get("g")
    assert made["metadata"]["finalizers"] == [f"{GROUP}/finalizer"]
    child = await maps.get("g")
    assert child["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]

    async def told() -> bool:
        return any(one["reason"] == "Greeted" for one in (await events.list(kohort_client.namespace)).items)

    async def touched() -> Any:
        return (await maps.get("any"))["metadata"].get("annotations", {}).get("touched")

    assert await until(told, operator)
    assert await until(touched, operator) == "yes"

    await greetings.patch("g", {"spec": {"whom": "them"}})

    async def changed() -> bool:
        return (await greetings.get("g"))["status"].get("whom") == "them"

    assert await until(changed, operator)
    assert (await maps.get("g"))["data"]["text"] == "Hello, them"

    await greetings.delete("g")
    assert await until(lambda: maps.get("g-was-here"), operator)

    async def collected() -> bool:
        left = [one["metadata"]["name"] for one in (await maps.list(kohort_client.namespace)).items]
        return "g" not in left and not (await greetings.list(kohort_client.namespace)).items

    assert await until(collected, operator)
    assert "Traceback" not in operator.read_text()
