"""What upstream's end-to-end tests found here, each as a small test of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.talk import Talk

from kohort.server import openapi, openapi_descriptions, openapi_protobuf, protobuf


@pytest.fixture(scope="module")
def talk() -> Iterator[Talk]:
    one = Talk("1.37")
    one.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    yield one
    one.close()


def test_a_namespace_with_an_empty_spec_is_emptied_before_it_goes(talk: Talk) -> None:
    """client-go sends `spec: {}`; without the finalizer its pods outlived it."""
    made = talk.create("/api/v1/namespaces", {"metadata": {"name": "e"}, "spec": {}, "status": {}})
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    own = talk.create("/api/v1/namespaces", {"metadata": {"name": "f"}, "spec": {"finalizers": ["example.com/mine"]}})
    assert own["spec"] == {"finalizers": ["example.com/mine", "kubernetes"]}
    going = talk.request("DELETE", "/api/v1/namespaces/e").json()
    assert going["status"]["phase"] == "Terminating"
    assert talk.request("GET", "/api/v1/namespaces/e").code == 200


def test_a_time_with_microseconds_keeps_them(talk: Talk) -> None:
    event = {"metadata": {"name": "e1"}, "regarding": {"namespace": "d"}, "eventTime": "2017-09-19T13:49:16.000000Z"}
    event |= {"note": "x", "action": "Do", "reason": "T", "type": "Normal"}
    event |= {"reportingController": "a", "reportingInstance": "b"}
    made = talk.create("/apis/events.k8s.io/v1/namespaces/d/events", event)
    assert made["eventTime"] == "2017-09-19T13:49:16.000000Z"


def test_the_status_of_most_kinds_takes_metadata_too(talk: Talk) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}}
    path = "/apis/batch/v1/namespaces/d/cronjobs"
    talk.create(path, {"metadata": {"name": "c"}, "spec": spec})
    change = {"metadata": {"annotations": {"seen": "yes"}}, "spec": {"suspend": True}}
    found = talk.request("PATCH", f"{path}/c/status", change, content_type="application/merge-patch+json").json()
    assert found["metadata"]["annotations"] == {"seen": "yes"}
    assert found["spec"]["suspend"] is False


def test_the_status_of_a_pod_group_does_not(talk: Talk) -> None:
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/d/podgroups"
    talk.create(path, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    change = {"metadata": {"annotations": {"seen": "yes"}}}
    found = talk.request("PATCH", f"{path}/g/status", change, content_type="application/merge-patch+json").json()
    assert "annotations" not in found["metadata"]


def test_a_certificate_is_approved_through_an_endpoint_of_its_own(talk: Talk) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    spec = {"request": "eA==", "signerName": "example.com/a", "usages": ["digital signature"]}
    talk.create(path, {"metadata": {"name": "c"}, "spec": spec})
    condition = {"type": "Approved", "status": "True", "reason": "me", "message": "fine"}
    change = {"status": {"conditions": [condition]}, "spec": {"signerName": "example.com/b"}}
    answer = talk.request("PATCH", f"{path}/c/approval", change, content_type="application/merge-patch+json")
    found = answer.json()
    assert answer.code == 200, found
    assert condition.items() <= found["status"]["conditions"][0].items()
    assert found["spec"]["signerName"] == "example.com/a"


def test_managed_fields_are_in_order(talk: Talk) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    path = "/api/v1/namespaces/d/pods/p?fieldManager=me"
    made = talk.request("PATCH", path, body, content_type="application/apply-patch+yaml").json()
    (entry,) = made["metadata"]["managedFields"]
    wanted = '{"f:spec":{"f:containers":{"k:{\\"name\\":\\"c\\"}":{".":{},"f:image":{},"f:name":{}}}}}'
    assert json.dumps(entry["fieldsV1"], separators=(",", ":")) == wanted


def test_a_review_has_no_table(talk: Talk) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    assert talk.request("POST", path, body, accept=table).code == 406
    other = talk.request("POST", path, body, accept=f"{table},application/json")
    assert other.code == 501  # acceptable; but nobody is known to this API without a server around it


def test_unknown_and_repeated_fields_are_told_together(talk: Talk) -> None:
    text = '{"metadata":{"name":"x"},"data":{"a":"1","a":"2"},"datum":{}}'
    path = "/api/v1/namespaces/d/configmaps?fieldValidation=Strict"
    message = talk.request("POST", path, text=text).json()["message"]
    assert message.endswith('strict decoding error: unknown field "datum", duplicate field "data.a"')


def test_every_group_of_a_real_server_can_be_discovered(talk: Talk) -> None:
    for path, plural in (("apiregistration.k8s.io/v1", "apiservices"), ("autoscaling/v1", "horizontalpodautoscalers")):
        assert plural in {one["name"] for one in talk.get(f"/apis/{path}")["resources"]}


def test_an_autoscaler_is_the_same_in_both_versions(talk: Talk) -> None:
    one, two = (f"/apis/autoscaling/{version}/namespaces/d/horizontalpodautoscalers" for version in ("v1", "v2"))
    target = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 5}
    talk.create(one, {"metadata": {"name": "a"}, "spec": {**target, "targetCPUUtilizationPercentage": 60}})
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    assert talk.get(f"{two}/a")["spec"]["metrics"] == [{"type": "Resource", "resource": cpu}]
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Value", "value": "1Gi"}}}
    metrics = [{"type": "Resource", "resource": cpu}, memory]
    talk.create(two, {"metadata": {"name": "b"}, "spec": {**target, "metrics": metrics}})
    old = talk.get(f"{one}/b")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 60
    assert json.loads(old["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]) == [memory]
    talk.request("PUT", f"{one}/b", {**old, "spec": {**old["spec"], "targetCPUUtilizationPercentage": 70}})
    new = talk.get(f"{two}/b")
    assert new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    assert new["spec"]["metrics"][1:] == [memory]
    assert "annotations" not in new["metadata"]
    talk.create(one, {"metadata": {"name": "c"}, "spec": target})
    assert talk.get(f"{one}/c")["spec"]["targetCPUUtilizationPercentage"] == 80


def test_custom_resources_in_version_two_of_the_document(talk: Talk) -> None:
    identity = {"x-kubernetes-group-version-kind": [{"group": "e.com", "version": "v1", "kind": "E"}]}
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"metadata": {}}}
    inner = {"type": "array", "items": {"type": "string"}, "nullable": True}
    strict = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {
            "a": inner,
            "b": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"c": inner}},
            "d": {"type": "integer", "anyOf": [{"minimum": 1}]},
        },
    }
    added: dict[str, dict[str, Any]] = {"com.e.v1.E": {**loose, **identity}, "com.e.v1.F": {**strict, **identity}}
    found = openapi.v2("1.37", talk.api.resources, added)["definitions"]
    assert found["com.e.v1.E"] == {"type": "object", **identity}
    assert found["com.e.v1.F"] == {
        "type": "object",
        "required": ["b"],
        "properties": {"a": {}, "b": {"x-kubernetes-preserve-unknown-fields": True}, "d": {"type": "integer"}},
        **identity,
    }


def test_members_that_every_object_has_are_explained(talk: Talk) -> None:
    for schemas in (
        talk.get("/openapi/v2")["definitions"],
        talk.get("/openapi/v3/api/v1")["components"]["schemas"],
    ):
        members = schemas[openapi_descriptions.OBJECT_META]["properties"]
        assert all(one["description"] for one in members.values())
        assert members["creationTimestamp"]["description"].startswith("CreationTimestamp is a timestamp")


def test_the_document_that_kubectl_wants_for_a_list_is_there(talk: Talk) -> None:
    """For `kind: List` it takes only the binary form, and looks for the parameters of a patch."""
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = talk.request("GET", "/openapi/v2", accept=accept)
    assert (answer.code, dict(answer.headers)["content-type"]) == (200, openapi_protobuf.MEDIA)

    def inside(data: bytes, *numbers: int) -> list[bytes]:
        found = [value for number, _, value in protobuf._wire(data) if number == numbers[0]]
        wanted = [value for value in found if isinstance(value, bytes)]
        return wanted if len(numbers) == 1 else [one for value in wanted for one in inside(value, *numbers[1:])]

    patches = {
        json.loads(inside(item, 2, 8, 13, 2, 2)[0])["kind"]: inside(item, 2, 8, 8, 1, 2, 3, 4)
        for item in inside(answer.body, 8, 2)
    }
    assert b"fieldValidation" in patches["Namespace"]
    assert {"Pod", "PodGroup", "Job"} <= set(patches)


# ---- definitions of custom resources in Kubernetes' binary format, as client-go sends them


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return (
            bytes([number << 3 if number < 16 else (number << 3 & 0x7F) | 0x80])
            + (b"" if number < 16 else bytes([number >> 4]))
            + bytes([value])
        )
    raw = value.encode() if isinstance(value, str) else value
    tag = number << 3 | 2
    head = bytes([tag]) if tag < 128 else bytes([tag & 0x7F | 0x80, tag >> 7])
    size = bytes([len(raw)]) if len(raw) < 128 else bytes([len(raw) & 0x7F | 0x80, len(raw) >> 7])
    return head + size + raw


def test_a_definition_may_be_binary() -> None:
    text, number = field(5, "string"), field(5, "integer")
    items = field(1, text)  # a schema, or a list of them
    extra = field(1, 0) + field(2, number)  # a yes or no, or a schema
    rule = field(1, "self.a > 0")
    schema = field(5, "object") + field(8, field(1, '{"a":1}')) + field(20, field(1, "1")) + field(20, field(1, '"x"'))
    schema += field(29, field(1, "a") + field(2, field(5, "array") + field(24, items)))
    schema += field(29, field(1, "b") + field(2, field(5, "object") + field(30, extra)))
    schema += field(29, field(1, "c") + field(2, field(5, "object") + field(30, field(1, 1))))
    schema += field(38, 1) + field(44, rule)
    version = field(1, "v1") + field(2, 0) + field(3, 1) + field(4, field(1, schema))
    spec = field(1, "example.com") + field(4, "Namespaced") + field(7, version)
    meta = field(1, "apiextensions.k8s.io/v1") + field(2, "CustomResourceDefinition")
    found = protobuf.decode(protobuf.MAGIC + field(1, meta) + field(2, field(2, spec)))
    assert found["spec"]["group"] == "example.com"
    (one,) = found["spec"]["versions"]
    assert (one["served"], one["storage"]) == (False, True)
    assert one["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "default": {"a": 1},
        "enum": [1, "x"],
        "properties": {
            "a": {"type": "array", "items": {"type": "string"}},
            "b": {"type": "object", "additionalProperties": {"type": "integer"}},
            "c": {"type": "object", "additionalProperties": True},
        },
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-validations": [{"rule": "self.a > 0"}],
    }
