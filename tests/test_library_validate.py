"""kohort.validate: every kind that Kubernetes has, and documents that refuse each other."""

from __future__ import annotations

from typing import Any

import pytest

import kohort

SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


def test_a_good_service_is_valid_and_nothing_is_said() -> None:
    assert kohort.validate(SERVICE, warnings=True) == []


@pytest.mark.parametrize(
    ("change", "field", "kind"),
    [
        ({"prots": []}, "spec.prots", "UnknownField"),
        ({"ports": "80"}, "spec.ports", ""),
        ({"ports": [{"prot": 80}]}, "spec.ports[0].prot", "UnknownField"),
    ],
)
def test_a_service_is_judged_as_its_server_would(change: dict[str, Any], field: str, kind: str) -> None:
    (found,) = kohort.validate({**SERVICE, "spec": {**SERVICE["spec"], **change}})
    assert (found.severity, found.field) == ("error", field)
    assert not kind or found.kind == kind


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Deployment", {"strategy": {"type": "Rolling"}}, "spec.strategy"),
        ("Deployment", {"selector": {"matchLabels": {"app": "other"}}}, "spec.template.metadata.labels"),
        ("StatefulSet", {"podManagementPolicy": "Ordered"}, "spec.podManagementPolicy"),
        ("DaemonSet", {"template": {"metadata": {"labels": {"app": "a"}}}}, "spec.template.spec.containers"),
    ],
)
def test_rules_beyond_types_are_the_servers(kind: str, spec: dict[str, Any], field: str) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    whole = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    good = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"}, "spec": whole}
    assert kohort.validate(good) == []
    (found,) = kohort.validate({**good, "spec": {**whole, **spec}})
    assert (found.severity, found.field) == ("error", field)


def test_a_name_that_its_kind_does_not_take() -> None:
    (found,) = kohort.validate({**SERVICE, "metadata": {"name": "1web"}})
    assert found.field == "metadata.name"


def test_every_object_has_a_name() -> None:
    (found,) = kohort.validate({**SERVICE, "metadata": {}})
    assert found.field == "metadata.name"
    assert kohort.validate({**SERVICE, "metadata": {"generateName": "web-"}}) == []


def test_a_kind_that_nobody_knows_is_told_as_such() -> None:
    other = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "prots": 1}
    (found,) = kohort.validate(other, warnings=True)
    assert found.severity == "warning"


# ---- documents beside each other


def runtime(name: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "node", "image": "i"}]}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": pod}},
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def trainjob(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t"},
        "spec": {"runtimeRef": {"name": name}, **spec},
    }


def test_a_trainjob_that_its_runtime_refuses_is_refused_where_both_are_given() -> None:
    """Variables of torch are set by the runtime's policy."""
    bad = trainjob("r", trainer={"env": [{"name": "PET_NNODES", "value": "3"}]})
    (found,) = kohort.validate([runtime("r"), bad])
    assert (found.object, found.severity) == ("TrainJob/t", "error")
    assert found.field.startswith("spec.trainer.env")
    assert kohort.validate([runtime("r"), trainjob("r")]) == []


def test_a_runtime_that_is_not_among_the_documents_may_be_on_the_cluster() -> None:
    bad = trainjob("elsewhere", trainer={"env": [{"name": "PET_NNODES", "value": "3"}]})
    assert kohort.validate([bad]) == []
    assert kohort.validate([runtime("r"), bad]) == []
