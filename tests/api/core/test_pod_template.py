"""The pod template rules that people trip over: kind of error and path as a server has them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kohort.api.core import check_pod_template
from kohort.api.errors import ErrorKind as E
from kohort.api.kind import Context

Object = dict[str, Any]
CTX = Context.of("1.37")
CONTAINER: Object = {"name": "main", "image": "lab.example/img:1"}


def template(container: Object | None = None, *, labels: Object | None = None, **spec: Any) -> Object:
    main = {**CONTAINER, **(container or {})}
    return {"metadata": {"labels": labels or {}}, "spec": {"containers": [main], **spec}}


def found(obj: Object, minor: str = "1.37", **more: Any) -> list[tuple[str, E]]:
    before = deepcopy(obj)
    errors = check_pod_template(obj, "spec.template", Context.of(minor), **more)
    assert obj == before, "a check changes nothing"
    return [(error.field.removeprefix("spec.template."), error.kind) for error in errors]


def of_container(**container: Any) -> list[tuple[str, E]]:
    return [(field.removeprefix("spec.containers[0]."), kind) for field, kind in found(template(container))]


def test_a_plain_template_is_fine() -> None:
    assert found(template()) == []


@pytest.mark.parametrize("empty", [None, {}, {"spec": {}}, {"spec": {"containers": []}}])
def test_containers_are_required(empty: Any) -> None:
    assert check_pod_template(empty, "t", CTX)[0].field == "t.spec.containers"


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"name": ""}, [("name", E.REQUIRED)]),
        ({"name": "Main"}, [("name", E.INVALID)]),
        ({"image": ""}, [("image", E.REQUIRED)]),
        ({"image": " img"}, [("image", E.INVALID)]),
        ({"imagePullPolicy": "Sometimes"}, [("imagePullPolicy", E.NOT_SUPPORTED)]),
        ({"restartPolicy": "Always"}, [("restartPolicy", E.FORBIDDEN)]),
        ({"ports": [{"containerPort": 0}]}, [("ports[0].containerPort", E.REQUIRED)]),
        ({"ports": [{"containerPort": 70000}]}, [("ports[0].containerPort", E.INVALID)]),
        ({"ports": [{"containerPort": 80, "protocol": "tcp"}]}, [("ports[0].protocol", E.NOT_SUPPORTED)]),
        ({"ports": [{"containerPort": 80, "name": "a-name-too-long-for-it"}]}, [("ports[0].name", E.INVALID)]),
        (
            {"ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81, "name": "web"}]},
            [("ports[1].name", E.DUPLICATE)],
        ),
        ({"env": [{"name": ""}]}, [("env[0].name", E.REQUIRED)]),
        ({"env": [{"name": "A=B"}]}, [("env[0].name", E.INVALID)]),
        ({"env": [{"name": "A", "valueFrom": {}}]}, [("env[0].valueFrom", E.INVALID)]),
        (
            {"env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            [("env[0].valueFrom", E.INVALID)],
        ),
        ({"volumeMounts": [{"name": "data", "mountPath": "/data"}]}, [("volumeMounts[0].name", E.NOT_FOUND)]),
        ({"resources": {"requests": {"cpus": "1"}}}, [("resources.requests[cpus]", E.INVALID)]),
        ({"resources": {"requests": {"cpu": "-1"}}}, [("resources.requests[cpu]", E.INVALID)]),
        ({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}, [("resources.requests", E.INVALID)]),
        ({"resources": {"requests": {"nvidia.com/gpu": "1"}}}, [("resources.limits", E.REQUIRED)]),
        (
            {"resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}},
            [("resources.requests", E.INVALID)],
        ),
        ({"resources": {"limits": {"nvidia.com/gpu": "500m"}}}, [("resources.limits[nvidia.com/gpu]", E.INVALID)]),
        ({"resources": {"claims": [{"name": "gpu"}]}}, [("resources.claims[0]", E.NOT_FOUND)]),
        ({"livenessProbe": {}}, [("livenessProbe", E.REQUIRED)]),
        (
            {"livenessProbe": {"tcpSocket": {"port": 80}, "exec": {"command": ["true"]}}},
            [("livenessProbe.tcpSocket", E.FORBIDDEN)],
        ),
        ({"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}}}, []),
        ({"ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81, "name": "api"}]}, []),
    ],
)
def test_containers(container: Object, expected: list[tuple[str, E]]) -> None:
    assert of_container(**container) == expected


def test_names_are_told_apart_together() -> None:
    obj = template(initContainers=[dict(CONTAINER)])
    assert found(obj) == [("spec.initContainers[0].name", E.DUPLICATE)]


def test_init_containers() -> None:
    side = {**CONTAINER, "name": "side", "restartPolicy": "Always", "readinessProbe": {"tcpSocket": {"port": 1}}}
    assert found(template(initContainers=[side])) == []
    prep = {**CONTAINER, "name": "prep", "readinessProbe": {"tcpSocket": {"port": 1}}}
    assert found(template(initContainers=[prep])) == [("spec.initContainers[0].readinessProbe", E.FORBIDDEN)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"restartPolicy": "Sometimes"}, [("spec.restartPolicy", E.NOT_SUPPORTED)]),
        ({"dnsPolicy": "Mine"}, [("spec.dnsPolicy", E.NOT_SUPPORTED)]),
        ({"serviceAccountName": "Bad_Name"}, [("spec.serviceAccountName", E.INVALID)]),
        ({"hostname": "a.b"}, [("spec.hostname", E.INVALID)]),
        ({"priorityClassName": "Bad_Name"}, [("spec.priorityClassName", E.INVALID)]),
        ({"preemptionPolicy": "Maybe"}, [("spec.preemptionPolicy", E.NOT_SUPPORTED)]),
        ({"activeDeadlineSeconds": 0}, [("spec.activeDeadlineSeconds", E.INVALID)]),
        ({"nodeSelector": {"bad key": "x"}}, [("spec.nodeSelector", E.INVALID)]),
        ({"nodeSelector": {"disk": "not valid"}}, [("spec.nodeSelector", E.INVALID)]),
        ({"tolerations": [{}]}, [("spec.tolerations[0].operator", E.INVALID)]),
        ({"tolerations": [{"operator": "Exists", "value": "x"}]}, [("spec.tolerations[0].operator", E.INVALID)]),
        (
            {"tolerations": [{"key": "k", "operator": "Exists", "effect": "Never"}]},
            [("spec.tolerations[0].effect", E.NOT_SUPPORTED)],
        ),
        (
            {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]},
            [("spec.tolerations[0].effect", E.INVALID)],
        ),
        ({"schedulingGates": [{"name": "a/b/c"}]}, [("spec.schedulingGates[0]", E.INVALID)]),
        ({"schedulingGates": [{"name": "a.b/c"}] * 2}, [("spec.schedulingGates[1]", E.DUPLICATE)]),
        ({"resourceClaims": [{"name": "gpu"}]}, [("spec.resourceClaims[0]", E.INVALID)]),
        ({"volumes": [{"name": "v"}]}, [("spec.volumes[0]", E.REQUIRED)]),
        ({"volumes": [{"name": "", "emptyDir": {}}]}, [("spec.volumes[0].name", E.REQUIRED)]),
        ({"volumes": [{"name": "v", "emptyDir": {}}] * 2}, [("spec.volumes[1].name", E.DUPLICATE)]),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
            [("spec.volumes[0].hostPath", E.FORBIDDEN)],
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            [("spec.volumes[0].persistentVolumeClaim.claimName", E.REQUIRED)],
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "No"}]},
            [
                ("spec.topologySpreadConstraints[0].maxSkew", E.INVALID),
                ("spec.topologySpreadConstraints[0].topologyKey", E.REQUIRED),
                ("spec.topologySpreadConstraints[0].whenUnsatisfiable", E.NOT_SUPPORTED),
            ],
        ),
        ({"schedulingGroup": {}}, [("spec.schedulingGroup.podGroupName", E.INVALID)]),
        ({"schedulingGroup": {"podGroupName": "Ring_A"}}, [("spec.schedulingGroup.podGroupName", E.INVALID)]),
        ({"schedulingGroup": {"podGroupName": "ring"}}, []),
        ({"ephemeralContainers": [{"name": "dbg"}]}, [("spec.ephemeralContainers", E.FORBIDDEN)]),
    ],
)
def test_the_spec(spec: Object, expected: list[tuple[str, E]]) -> None:
    assert found(template(**spec)) == expected


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        ({"nodeAffinity": {REQUIRED: {}}}, [(f"nodeAffinity.{REQUIRED}.nodeSelectorTerms", E.REQUIRED)]),
        (
            {
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Is"}]}]}
                }
            },
            [(f"nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator", E.INVALID)],
        ),
        (
            {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}},
            [(f"nodeAffinity.{PREFERRED}[0].weight", E.INVALID)],
        ),
        (
            {"podAffinity": {REQUIRED: [{"labelSelector": {}}]}},
            [(f"podAffinity.{REQUIRED}[0].topologyKey", E.REQUIRED)],
        ),
        (
            {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}},
            [],
        ),
    ],
)
def test_affinity(affinity: Object, expected: list[tuple[str, E]]) -> None:
    assert found(template(affinity=affinity)) == [(f"spec.affinity.{field}", kind) for field, kind in expected]


def test_labels_and_annotations_are_reported_at_the_template() -> None:
    obj = template(labels={"team": "not valid"})
    obj["metadata"]["annotations"] = {"bad key": "x"}
    assert found(obj) == [("labels", E.INVALID), ("annotations", E.INVALID)]


@pytest.mark.parametrize(
    ("policy", "accepted", "expected"),
    [
        (None, None, []),
        (None, ("Never", "OnFailure"), [("spec.restartPolicy", E.REQUIRED)]),
        ("Always", ("Never", "OnFailure"), [("spec.restartPolicy", E.REQUIRED)]),
        ("OnFailure", ("Never", "OnFailure"), []),
        ("OnFailure", ("Always",), [("spec.restartPolicy", E.NOT_SUPPORTED)]),
        (None, ("Always",), []),
        ("Odd", ("Never", "OnFailure"), [("spec.restartPolicy", E.NOT_SUPPORTED)]),
    ],
)
def test_restart_policies_of_the_embedding_kind(
    policy: str | None, accepted: tuple[str, ...] | None, expected: list[tuple[str, E]]
) -> None:
    obj = template(restartPolicy=policy) if policy else template()
    assert found(obj, restart_policies=accepted) == expected


def test_membership_is_that_of_the_minor() -> None:
    reference = {"workloadRef": {"name": "w"}}
    assert found(template(**reference), "1.35") == [("spec.workloadRef.podGroup", E.INVALID)]
    assert found(template(**reference), "1.37") == []  # an unknown field there: the decoder's matter


def test_mounts_find_their_volumes() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/data"}]
    obj = template({"volumeMounts": mounts}, volumes=[{"name": "data", "emptyDir": {}}])
    assert found(obj) == [("spec.containers[0].volumeMounts[1].mountPath", E.INVALID)]
