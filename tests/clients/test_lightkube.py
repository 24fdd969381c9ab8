"""lightkube, in both of its forms: create, read, update, delete, watch, apply, custom resources."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lightkube import ApiError, AsyncClient, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType

from kohort.testing.server import ServerThread


@pytest.fixture
def client(kohort_server: ServerThread, kohort_namespace: str) -> Iterator[Client]:
    with Client(KubeConfig.from_file(kohort_server.kubeconfig), namespace=kohort_namespace) as made:
        yield made


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def test_create_read_update_delete(client: Client) -> None:
    spec = PodSpec(containers=[Container(name="c", image="example.org/c")])
    pod = client.create(Pod(metadata=ObjectMeta(name="p", labels={"a": "b"}), spec=spec))
    assert pod.metadata is not None
    assert pod.metadata.labels is not None
    pod.metadata.labels["a"] = "c"
    client.replace(pod)
    assert [one.metadata.name for one in client.list(Pod, labels={"a": "c"}) if one.metadata] == ["p"]
    client.patch(Pod.Status, "p", {"status": {"phase": "Running"}})
    found = client.get(Pod, "p")
    assert found.status is not None
    assert found.status.phase == "Running"
    client.delete(Pod, "p", grace_period=0)
    with pytest.raises(ApiError) as gone:
        client.get(Pod, "p")
    assert gone.value.status.code == 404


def test_patches_and_apply(client: Client) -> None:
    client.create(config_map("m", a="1"))
    client.patch(ConfigMap, "m", {"data": {"b": "2"}}, patch_type=PatchType.MERGE)
    client.patch(ConfigMap, "m", [{"op": "remove", "path": "/data/a"}], patch_type=PatchType.JSON)
    assert client.get(ConfigMap, "m").data == {"b": "2"}
    with pytest.raises(ApiError) as conflict:
        client.apply(config_map("m", b="3"), field_manager="me")
    assert conflict.value.status.code == 409
    assert client.apply(config_map("m", b="3"), field_manager="me", force=True).data == {"b": "3"}


def test_scale(client: Client) -> None:
    client.apply(
        Deployment.from_dict(
            {
                "metadata": {"name": "d"},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"containers": [{"name": "c", "image": "example.org/c"}]},
                    },
                },
            }
        ),
        field_manager="me",
    )
    scale = client.get(Deployment.Scale, "d")
    assert scale.spec is not None
    assert scale.spec.replicas == 1
    scale.spec = ScaleSpec(replicas=4)
    client.replace(scale, "d")
    found = client.get(Deployment, "d")
    assert found.spec is not None
    assert found.spec.replicas == 4


def test_custom_resources(client: Client) -> None:
    sets = create_namespaced_resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example.org/c"}]}}}}
    jobs = {"replicatedJobs": [{"name": "w", "template": template}]}
    made = client.create(sets(metadata=ObjectMeta(name="s"), spec=jobs))
    assert made.spec["replicatedJobs"][0]["replicas"] == 1
    with pytest.raises(ApiError) as wrong:
        client.create(sets(metadata=ObjectMeta(name="S"), spec=jobs))
    assert wrong.value.status.code == 422


async def test_asynchronous_watch_and_wait(kohort_server: ServerThread, kohort_namespace: str) -> None:
    client = AsyncClient(KubeConfig.from_file(kohort_server.kubeconfig), namespace=kohort_namespace)
    try:
        await client.create(config_map("a", x="1"))
        seen = []
        async for kind, found in client.watch(ConfigMap, fields={"metadata.name": "a"}):
            seen.append((kind, (found.data or {}).get("x")))
            if len(seen) == 1:
                await client.patch(ConfigMap, "a", {"data": {"x": "2"}})
            elif len(seen) == 2:
                await client.delete(ConfigMap, "a")
            else:
                break
        assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]
    finally:
        await client.close()
