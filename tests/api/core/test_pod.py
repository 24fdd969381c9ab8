"""The Pod: defaults, what may change, what people read."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest

from kohort.api import admit
from kohort.api.core.pod import POD
from kohort.api.kind import Context
from kohort.api.meta import check_selector
from kohort.apimachinery.labels import matches

Object = dict[str, Any]
CTX = Context.of("1.37")


def pod(**spec: Any) -> Object:
    containers = [{"name": "main", "image": "lab.example/img:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "rank-0", "namespace": "lab"},
        "spec": {"containers": containers, **spec},
    }


def stored(**spec: Any) -> Object:
    answer = admit.create(pod(**spec), CTX)
    assert answer.object is not None, answer.message
    return answer.object


def test_defaults() -> None:
    spec = stored()["spec"]
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["schedulerName"]) == (
        "Always",
        "ClusterFirst",
        "default-scheduler",
    )
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("img", "Always"),
        ("img:latest", "Always"),
        ("img:1", "IfNotPresent"),
        ("host:5000/img", "Always"),
        ("host:5000/img:2", "IfNotPresent"),
        ("img@sha256:0123", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert stored(containers=[{"name": "main", "image": image}])["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_limits_are_requested() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    kept = stored(containers=[{"name": "main", "image": "i:1", "resources": resources}])
    assert kept["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({"schedulingGroup": {"podGroupName": "other"}}, False),
        ({"schedulingGroup": None}, False),
        ({"nodeSelector": {"a": "b"}}, False),
        ({"activeDeadlineSeconds": 9}, True),
        ({"tolerations": [{"key": "k", "operator": "Exists"}]}, True),
    ],
)
def test_what_may_change(change: Object, accepted: bool) -> None:
    old = stored(schedulingGroup={"podGroupName": "ring"})
    new = deepcopy(old)
    new["spec"] |= change
    if "tolerations" in change:
        new["spec"]["tolerations"] = [*(old["spec"].get("tolerations") or []), *change["tolerations"]]
    answer = admit.update(new, old, CTX)
    assert answer.accepted is accepted, answer.message
    if not accepted:
        assert [cause.field for cause in answer.causes] == ["spec"]


def test_images_may_change() -> None:
    old = stored()
    new = deepcopy(old)
    new["spec"]["containers"][0]["image"] = "lab.example/img:2"
    assert admit.update(new, old, CTX).accepted


def test_gates_only_go() -> None:
    old = stored(schedulingGates=[{"name": "a.b/one"}])
    more = deepcopy(old)
    more["spec"]["schedulingGates"].append({"name": "a.b/two"})
    assert not admit.update(more, old, CTX).accepted
    less = deepcopy(old)
    del less["spec"]["schedulingGates"]
    assert admit.update(less, old, CTX).accepted


def test_columns() -> None:
    obj = pod(schedulingGroup={"podGroupName": "ring"}, nodeName="n1")
    obj["status"] = {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 2}]}
    cells = {column.name: column.cell(obj) for column in POD.columns if column.cell}
    assert cells == {"Ready": "1/1", "Status": "Running", "Restarts": 2, "Node": "n1", "Group": "ring"}
    older = pod(workloadRef={"name": "w", "podGroup": "g"})
    assert {column.name: column.cell(older) for column in POD.columns if column.cell}["Group"] == "w/g"


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {"a": "1"}, False),
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {"a": "1"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
    ],
)
def test_selectors(selector: Object | None, labels: dict[str, str], expected: bool) -> None:
    assert matches(selector, labels) is expected


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ({"key": "a", "operator": "In"}, "values"),
        ({"key": "a", "operator": "Exists", "values": ["1"]}, "values"),
        ({"key": "a", "operator": "Is"}, "operator"),
        ({"key": "bad key", "operator": "Exists"}, "key"),
    ],
)
def test_bad_selectors(expression: Object, place: str) -> None:
    (error,) = check_selector({"matchExpressions": [expression]}, "s")
    assert error.field == f"s.matchExpressions[0].{place}"


def test_names_of_sysctls() -> None:
    names = ["foo-", "kernel.shmmax", "safe-and-unsafe", "bar..", "net/ipv4/a", "kernel.shmmax"]
    answer = admit.create(pod(securityContext={"sysctls": [{"name": one, "value": "1"} for one in names]}), CTX)
    assert re.findall(r"sysctls\[(\d)\]\.name: (\w+)", answer.message) == [
        ("0", "Invalid"),
        ("3", "Invalid"),
        ("5", "Duplicate"),
    ]


@pytest.mark.parametrize(
    ("signer", "seconds", "told"),
    [
        ("example.com/s", 3599, ">= 3600"),
        ("example.com/s", 91 * 86400, ""),
        ("example.com/s", 91 * 86400 + 1, "<= 7862400"),
        ("kubernetes.io/s", 86401, "<= 86400"),
    ],
)
def test_lifetimes_of_certificates(signer: str, seconds: int, told: str) -> None:
    source = {"podCertificate": {"signerName": signer, "keyType": "ED25519", "maxExpirationSeconds": seconds}}
    answer = admit.create(pod(volumes=[{"name": "v", "projected": {"sources": [source]}}]), CTX)
    assert (told in answer.message) if told else answer.object is not None
