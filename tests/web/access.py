"""What tests of the dashboard do in a browser and on a cluster, whichever that is."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

from tests.support.browser import Page
from tests.web import stage

from kohort.kube.client import Client

AXE: Final = os.environ.get("KOHORT_AXE", "")  # the file of axe-core, if it is to be asked
PAGE_TEXT: Final = "document.getElementById('main').innerText"


async def go(page: Page, route: str, until: str) -> None:
    await page.run(f"void (location.hash = '#/{route}')")
    await page.until(until)


async def check_access(page: Page) -> None:
    """What axe-core finds serious, where it is at hand."""
    if not AXE:
        return
    await page.run(Path(AXE).read_text() + "; 0")
    result = await page.run(
        "axe.run().then((found) => found.violations.map("
        "(one) => [one.id, one.impact, one.nodes.map((node) => node.html)]))"
    )
    assert [one for one in result if one[1] in {"serious", "critical"}] == []


async def placed(client: Client, namespace: str, name: str) -> None:
    """All pods whose names begin so have nodes."""
    for _ in range(1200):
        pods = [
            one
            for one in (await client.kind("v1", "Pod").list(namespace)).items
            if one["metadata"]["name"].startswith(name)
        ]
        if pods and all(one["spec"].get("nodeName") for one in pods):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{namespace}/{name} did not start")


async def reader(client: Client, namespace: str, name: str) -> str:
    """The token of somebody who may read what is in one namespace."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    binding: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    await stage.create(client, account, binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
    made = await client.kind("v1", "ServiceAccount").create(request, namespace, name=name, subresource="token")
    return str(made["status"]["token"])
