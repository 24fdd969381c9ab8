"""kr8s: create, read, update, delete, watch, wait; it has no apply of its own, so its patch with that type."""

from __future__ import annotations

from collections.abc import AsyncIterator

import kr8s
import pytest
from kr8s.asyncio import Api
from kr8s.asyncio import api as connect
from kr8s.asyncio.objects import ConfigMap, Deployment, Pod, new_class

from kohort.testing.server import ServerThread

# It warns of servers that are newer than itself.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported:UserWarning")


@pytest.fixture
async def api(kohort_server: ServerThread) -> AsyncIterator[Api]:
    made = await connect(kubeconfig=str(kohort_server.kubeconfig))
    yield made
    assert made._session is not None
    await made._session.aclose()  # it does so only when it is collected


def pod(name: str, namespace: str, **labels: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "example.org/c"}]},
    }


async def test_create_read_update_delete(api: Api, kohort_namespace: str) -> None:
    made = await Pod(pod("p", kohort_namespace, a="b"), api=api)
    await made.create()
    await made.label(a="c")
    assert [one.name async for one in api.get("pods", namespace=kohort_namespace, label_selector={"a": "c"})] == ["p"]
    await made.patch({"status": {"phase": "Running"}}, subresource="status")
    await made.refresh()
    assert made.status.phase == "Running"
    await made.wait("jsonpath='{.status.phase}'=Running", timeout=60)
    await made.delete(grace_period=0)
    await made.wait("delete", timeout=60)
    assert not await made.exists()
    with pytest.raises(kr8s.NotFoundError):
        await Pod.get("p", namespace=kohort_namespace, api=api)


async def test_watch(api: Api, kohort_namespace: str) -> None:
    found = await ConfigMap({"metadata": {"name": "m", "namespace": kohort_namespace}, "data": {"x": "1"}}, api=api)
    await found.create()
    seen = []
    async for kind, one in api.watch("configmaps", namespace=kohort_namespace, field_selector="metadata.name=m"):
        seen.append((kind, one.raw["data"]["x"]))
        if len(seen) == 1:
            await found.patch({"data": {"x": "2"}})
        elif len(seen) == 2:
            await found.delete()
        else:
            break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def test_scale_and_custom_resources(api: Api, kohort_namespace: str) -> None:
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "example.org/c"}]},
        },
    }
    found = await Deployment({"metadata": {"name": "d", "namespace": kohort_namespace}, "spec": spec}, api=api)
    await found.create()
    await found.patch({"spec": {"replicas": 3}}, subresource="scale")
    await found.refresh()
    assert found.replicas == 3
    binding = new_class("ClusterTopologyBinding", "grove.io/v1alpha1", namespaced=False, asyncio=True)
    levels = [{"domain": "rack", "key": "example.org/rack"}]
    one = binding({"metadata": {"name": "kr8s"}, "spec": {"levels": levels}}, api=api)
    await one.create()
    assert [item.name async for item in api.get("clustertopologybindings.grove.io")] == ["kr8s"]
    await one.delete()


async def test_apply(api: Api, kohort_namespace: str) -> None:
    body = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"x": "1"}}'
    async with api.call_api(
        "PATCH",
        version="v1",
        url="configmaps/m",
        namespace=kohort_namespace,
        params={"fieldManager": "me"},
        headers={"Content-Type": "application/apply-patch+yaml"},
        content=body,
    ) as response:
        assert response.json()["metadata"]["managedFields"][0]["operation"] == "Apply"
