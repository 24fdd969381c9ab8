"""The official Python client: plain, asynchronous, dynamic, its informer and its leader election."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from kohort.testing.server import ServerThread
from kubernetes import aio, client, config, dynamic, utils, watch

POD = {"containers": [{"name": "c", "image": "example.org/c"}]}


@pytest.fixture(scope="module")
def api(kohort_server: ServerThread) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(kohort_server.kubeconfig)) as made:
        yield made


def until(look: Callable[[], Any], what: str) -> None:
    for _ in range(1000):
        if look():
            return
        time.sleep(0.01)
    raise AssertionError(f"never: {what}")


# ---- plain


def test_create_read_update_delete(api: client.ApiClient, kohort_namespace: str) -> None:
    core = client.CoreV1Api(api)
    made = core.create_namespaced_pod(
        kohort_namespace,
        client.V1Pod(
            metadata=client.V1ObjectMeta(name="p", labels={"app": "web"}),
            spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="example.org/c")]),
        ),
    )
    assert made.spec.restart_policy == "Always"
    assert made.status.phase == "Pending"
    assert [
        pod.metadata.name for pod in core.list_namespaced_pod(kohort_namespace, label_selector="app=web").items
    ] == ["p"]
    made.metadata.labels["app"] = "db"
    assert core.replace_namespaced_pod("p", kohort_namespace, made).metadata.labels == {"app": "db"}
    made.metadata.labels["app"] = "late"
    with pytest.raises(client.ApiException) as late:
        core.replace_namespaced_pod("p", kohort_namespace, made)
    assert (late.value.status, late.value.reason) == (409, "Conflict")
    node = client.V1Binding(
        metadata=client.V1ObjectMeta(name="p"), target=client.V1ObjectReference(kind="Node", name="n")
    )
    core.create_namespaced_pod_binding("p", kohort_namespace, node, _preload_content=False)
    assert core.read_namespaced_pod("p", kohort_namespace).spec.node_name == "n"
    core.patch_namespaced_pod_status("p", kohort_namespace, {"status": {"phase": "Running"}})
    assert core.read_namespaced_pod_status("p", kohort_namespace).status.phase == "Running"
    core.delete_namespaced_pod("p", kohort_namespace, grace_period_seconds=0)
    with pytest.raises(client.ApiException) as gone:
        core.read_namespaced_pod("p", kohort_namespace)
    assert gone.value.status == 404


def test_patches_and_apply(api: client.ApiClient, kohort_namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(kohort_namespace, {"metadata": {"name": "m"}, "data": {"a": "1"}})
    core.patch_namespaced_config_map("m", kohort_namespace, {"data": {"b": "2"}})
    core.patch_namespaced_config_map("m", kohort_namespace, [{"op": "remove", "path": "/data/a"}])
    assert core.read_namespaced_config_map("m", kohort_namespace).data == {"b": "2"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"b": "3"}}

    def applied(**options: Any) -> Any:
        return core.patch_namespaced_config_map(
            "m", kohort_namespace, body, field_manager="me", _content_type="application/apply-patch+yaml", **options
        )

    with pytest.raises(client.ApiException) as conflict:
        applied()
    assert conflict.value.status == 409
    assert applied(force=True).data == {"b": "3"}


def test_watch_goes_on_from_a_list(api: client.ApiClient, kohort_namespace: str) -> None:
    core = client.CoreV1Api(api)
    version = core.list_namespaced_config_map(kohort_namespace).metadata.resource_version
    for number in range(3):
        core.create_namespaced_config_map(kohort_namespace, {"metadata": {"name": f"m{number}"}})
    core.delete_namespaced_config_map("m1", kohort_namespace)
    seen, stream = [], watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map,
        kohort_namespace,
        resource_version=version,
        timeout_seconds=20,
        field_selector="metadata.name!=kube-root-ca.crt",
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 4:
            stream.stop()
    assert seen == [("ADDED", "m0"), ("ADDED", "m1"), ("ADDED", "m2"), ("DELETED", "m1")]


def test_batch_scale_and_a_file_of_objects(api: client.ApiClient, kohort_namespace: str) -> None:
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD},
        },
    }
    utils.create_from_dict(api, body, namespace=kohort_namespace)
    apps = client.AppsV1Api(api)
    apps.patch_namespaced_deployment_scale("d", kohort_namespace, {"spec": {"replicas": 5}})
    assert apps.read_namespaced_deployment_scale("d", kohort_namespace).spec.replicas == 5
    batch = client.BatchV1Api(api)
    spec = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
    batch.create_namespaced_job(kohort_namespace, {"metadata": {"name": "j"}, "spec": spec})
    assert batch.read_namespaced_job("j", kohort_namespace).spec.backoff_limit == 6
    batch.delete_namespaced_job("j", kohort_namespace, propagation_policy="Foreground")
    until(lambda: not batch.list_namespaced_job(kohort_namespace).items, "the Job is gone")


def test_pages_and_roles(api: client.ApiClient, kohort_server: ServerThread, kohort_namespace: str) -> None:
    core = client.CoreV1Api(api)
    for number in range(7):
        core.create_namespaced_secret(kohort_namespace, {"metadata": {"name": f"s{number}"}, "stringData": {"k": "v"}})
    first = core.list_namespaced_secret(kohort_namespace, limit=5)
    rest = core.list_namespaced_secret(kohort_namespace, limit=5, _continue=first.metadata._continue)
    assert (len(first.items), len(rest.items), first.metadata.remaining_item_count) == (5, 2, 2)
    file = kohort_server.kubeconfig_of("nobody", kohort_namespace)
    with config.new_client_from_config(str(file)) as theirs:
        with pytest.raises(client.ApiException) as no:
            client.CoreV1Api(theirs).list_namespaced_secret(kohort_namespace)
        assert no.value.status == 403


# ---- custom objects, dynamic client


def definition(group: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def test_dynamic_client(api: client.ApiClient, kohort_namespace: str) -> None:
    found = dynamic.DynamicClient(api)
    crds = found.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    crds.create(body=definition("dynamic.example.org"))

    def established() -> bool:
        conditions = crds.get(name="things.dynamic.example.org").to_dict()["status"].get("conditions", [])
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    until(established, "the definition is established")
    things = found.resources.get(api_version="dynamic.example.org/v1", kind="Thing")
    body = {"apiVersion": "dynamic.example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"n": 1}}
    things.create(body=body, namespace=kohort_namespace)
    things.patch(
        name="t", namespace=kohort_namespace, body={"spec": {"n": 2}}, content_type="application/merge-patch+json"
    )
    assert things.get(name="t", namespace=kohort_namespace).spec.n == 2
    body["spec"] = {"n": 3}
    assert (
        things.server_side_apply(namespace=kohort_namespace, body=body, field_manager="me", force_conflicts=True).spec.n
        == 3
    )
    with pytest.raises(dynamic.exceptions.UnprocessibleEntityError):
        things.create(body=body | {"metadata": {"name": "x"}, "spec": {"n": "x"}}, namespace=kohort_namespace)
    for event in things.watch(namespace=kohort_namespace, timeout=20):
        assert event["object"].metadata.name == "t"
        break
    things.delete(name="t", namespace=kohort_namespace)
    sets = found.resources.get(api_version="jobset.x-k8s.io/v1alpha2", kind="JobSet")
    assert sets.get(namespace=kohort_namespace).items == []


# ---- informer, leader election


def test_informer(api: client.ApiClient, kohort_namespace: str) -> None:
    core, told = client.CoreV1Api(api), []
    core.create_namespaced_config_map(kohort_namespace, {"metadata": {"name": "before", "labels": {"l": "x"}}})
    informer = SharedInformer(core.list_namespaced_config_map, namespace=kohort_namespace, label_selector="l=x")
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda obj, kind=kind: told.append((kind, obj.metadata.name)))
    informer.start()
    try:
        until(lambda: ("ADDED", "before") in told, "the first list")
        core.create_namespaced_config_map(kohort_namespace, {"metadata": {"name": "later", "labels": {"l": "x"}}})
        core.patch_namespaced_config_map("later", kohort_namespace, {"data": {"k": "v"}})
        core.delete_namespaced_config_map("before", kohort_namespace)
        until(lambda: ("DELETED", "before") in told, "the deletion")
        assert told == [("ADDED", "before"), ("ADDED", "later"), ("MODIFIED", "later"), ("DELETED", "before")]
        assert [obj.metadata.name for obj in informer.cache.list()] == ["later"]
    finally:
        informer.stop()


def test_leader_election(kohort_server: ServerThread, kohort_namespace: str) -> None:
    config.load_kube_config(str(kohort_server.kubeconfig))
    leading = threading.Event()

    def candidate(name: str) -> leaderelection.LeaderElection:
        lock = LeaseLock("lock", kohort_namespace, name)
        return leaderelection.LeaderElection(electionconfig.Config(lock, 3, 2, 1, leading.set, lambda: None))

    first, second = candidate("a"), candidate("b")
    assert first.try_acquire_or_renew()
    assert not second.try_acquire_or_renew()
    assert first.try_acquire_or_renew()
    leases = client.CoordinationV1Api()
    assert leases.read_namespaced_lease("lock", kohort_namespace).spec.holder_identity == "a"
    thread = threading.Thread(target=second.acquire, daemon=True)
    thread.start()  # the first one is gone
    thread.join(20)
    assert leases.read_namespaced_lease("lock", kohort_namespace).spec.holder_identity == "b"


# ---- asynchronous


async def test_asynchronous(kohort_server: ServerThread, kohort_namespace: str) -> None:
    async with await aio.config.new_client_from_config(str(kohort_server.kubeconfig)) as api:
        core = aio.client.CoreV1Api(api)
        await core.create_namespaced_config_map(kohort_namespace, {"metadata": {"name": "m"}, "data": {"a": "1"}})
        found = await core.list_namespaced_config_map(kohort_namespace, field_selector="metadata.name=m")
        version = found.metadata.resource_version
        await core.patch_namespaced_config_map("m", kohort_namespace, {"data": {"a": "2"}})
        await core.delete_namespaced_config_map("m", kohort_namespace)
        seen = []
        async with aio.watch.Watch() as stream:
            async for event in stream.stream(
                core.list_namespaced_config_map,
                kohort_namespace,
                field_selector="metadata.name=m",
                resource_version=version,
                timeout_seconds=20,
            ):
                seen.append((event["type"], event["object"].data["a"]))
                if len(seen) == 2:
                    break
        assert seen == [("MODIFIED", "2"), ("DELETED", "2")]
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": {"x": "y"}}
        applied = await core.patch_namespaced_config_map(
            "n", kohort_namespace, body, field_manager="me", _content_type="application/apply-patch+yaml"
        )
        assert applied.metadata.managed_fields[0].operation == "Apply"
