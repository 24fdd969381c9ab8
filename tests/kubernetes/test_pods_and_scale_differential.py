"""Who owns the replicas after a scale, what a server works out about a new pod: asked of ours and of the real one."""

from __future__ import annotations

import json
from typing import Any

from tests.server.talk import Talk

from kohort.testing.environment import Environment

DEPLOYMENTS = "/apis/apps/v1/namespaces/d/deployments"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
DIGEST = "sha256:" + "0" * 64
IMAGES = ["Foo", "x:1:2", "x", "x:1", f"x:latest@{DIGEST}", f"x@{DIGEST}", "Host/x", "a" * 256, "0" * 64]
RESOURCES: list[Any] = [
    {},
    {"requests": {}, "limits": {}},
    {"limits": {"cpu": "1"}},
    {"limits": {"cpu": "1", "memory": "1Gi"}},
    {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    {"requests": {"cpu": "0"}},
    {"requests": {"ephemeral-storage": "1Gi"}},
]


PUT = {"metadata": {"name": "w", "namespace": "d"}, "spec": {"replicas": 6}}
CHANGE = [{"op": "replace", "path": "/spec/replicas", "value": 1}]


def deployment(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": spec}


def scale(**spec: int) -> dict[str, Any]:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": spec}


def owners(client: Any) -> list[Any]:
    entries = client.request("GET", f"{DEPLOYMENTS}/w").json()["metadata"]["managedFields"]
    return sorted(
        (one["manager"], one["operation"], one.get("subresource", ""), one["apiVersion"])
        for one in entries
        if "f:replicas" in one["fieldsV1"].get("f:spec", {})
    )


def scaled(client: Any) -> list[Any]:
    """Codes, messages and owners after each of a few writes."""
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "d"}})
    client.request("POST", f"{DEPLOYMENTS}?fieldManager=maker", deployment(2))
    at = f"{DEPLOYMENTS}/w/scale"
    found: list[Any] = [owners(client)]
    for method, path, body, media in (
        ("PATCH", f"{at}?fieldManager=hpa", {"spec": {"replicas": 3}}, MERGE),
        ("PATCH", f"{at}?fieldManager=me", scale(replicas=4), APPLY),
        ("PATCH", f"{at}?fieldManager=me&force=true", scale(replicas=4), APPLY),
        ("PATCH", f"{DEPLOYMENTS}/w?fieldManager=other", deployment(9), APPLY),
        ("PUT", f"{at}?fieldManager=putter", PUT, ""),
        ("PATCH", f"{at}?fieldManager=me&force=true", scale(), APPLY),
        ("PATCH", f"{at}?fieldManager=x", CHANGE, "application/json-patch+json"),
    ):  # fmt: skip
        answer = client.request(method, path, body, content_type=media or "application/json")
        said = answer.json()
        found.append((answer.code, said.get("message"), said.get("spec"), sorted(said["metadata"]), owners(client)))
    return found


def pods(client: Any) -> list[Any]:
    found: list[tuple[Any, ...]] = []
    for image, resources in [(image, {}) for image in IMAGES] + [("x", one) for one in RESOURCES]:
        body = {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": image, "resources": resources}]},
        }
        answer = client.request("POST", "/api/v1/namespaces/d/pods?dryRun=All", body).json()
        (container,) = answer["spec"]["containers"]
        found.append((image, container["imagePullPolicy"], container["resources"], answer["status"]))
    return found


def test_same_answers(kubernetes_environments: Any) -> None:
    env: Environment = kubernetes_environments("1.37")
    theirs, ours = env.client(), Talk()
    try:
        assert scaled(ours) == scaled(theirs)
        assert pods(ours) == pods(theirs)
    finally:
        ours.close()


def test_a_pod_without_time_to_go_is_marked_first(kubernetes_environments: Any) -> None:
    """What tests/server/test_watching.py says of ours."""
    client = kubernetes_environments("1.37").client()
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": "e"}})
    at = "/api/v1/namespaces/e/pods"
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    version = client.create(at, body)["metadata"]["resourceVersion"]
    client.request("DELETE", f"{at}/p?gracePeriodSeconds=0")
    lines = client.request("GET", f"{at}?watch=1&timeoutSeconds=1&resourceVersion={version}").body.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["MODIFIED", "DELETED"]
