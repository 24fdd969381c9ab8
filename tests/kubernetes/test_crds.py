"""A real API server takes every CRD, establishes it, and checks by its rules."""

import time
from copy import deepcopy
from typing import Any

import pytest

from kohort.api.crd import crds
from kohort.testing.client import Client
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import Namespace

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.org/c"}]}}
JOBSET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "aurora"},
    "spec": {
        "successPolicy": {"operator": "All"},
        "replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"template": POD}}}],
    },
}


@pytest.fixture(scope="module")
def established(kubernetes_environment: Environment) -> Client:
    """A client of a server that has all CRDs."""
    client = kubernetes_environment.client()
    for made in crds():
        client.create(DEFINITIONS, made)
    end = time.monotonic() + 30
    while any(conditions(one).get("Established") != "True" for one in client.get(DEFINITIONS)["items"]):
        assert time.monotonic() < end, client.get(DEFINITIONS)
        time.sleep(0.2)
    return client


def conditions(definition: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in definition.get("status", {}).get("conditions") or []}


def test_all_are_taken_and_structural(established: Client) -> None:
    ours = {one["metadata"]["name"] for one in crds()}
    items = [one for one in established.get(DEFINITIONS)["items"] if one["metadata"]["name"] in ours]
    found = {one["metadata"]["name"]: conditions(one) for one in items}
    assert set(found) == ours
    assert {name for name, one in found.items() if "NonStructuralSchema" in one} == set()


def test_frozen_fields_and_enums_are_refused_by_field(established: Client, kubernetes_namespace: Namespace) -> None:
    path = kubernetes_namespace.path("jobsets", "jobset.x-k8s.io/v1alpha2")
    broken: dict[str, Any] = deepcopy(JOBSET) | {"metadata": {"name": "broken"}}
    broken["spec"]["successPolicy"] = {"operator": "Most"}
    refused = established.request("POST", path, broken).json()
    assert "spec.successPolicy.operator" in {one["field"] for one in refused["details"]["causes"]}
    stored = established.create(path, JOBSET)
    stored["spec"]["successPolicy"]["operator"] = "Any"
    stored["spec"]["managedBy"] = "example.org/controller"
    refused = established.request("PUT", f"{path}/aurora", stored).json()
    causes = {(one["field"], one["message"]) for one in refused["details"]["causes"]}
    assert causes == {
        ("spec", "Invalid value: managedBy cannot be set or cleared later"),
        ("spec.successPolicy", "Invalid value: field is immutable"),
    }


def test_templates_keep_their_metadata_and_the_pod_field(established: Client, kubernetes_namespace: Namespace) -> None:
    path = kubernetes_namespace.path("jobsets", "jobset.x-k8s.io/v1alpha2")
    sent: dict[str, Any] = deepcopy(JOBSET)
    template = sent["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    template["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    stored = established.create(f"{path}?fieldValidation=Strict", sent)
    assert stored["spec"]["replicatedJobs"][0]["template"]["spec"]["template"] == template
