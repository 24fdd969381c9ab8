"""What controllers keep of pods, and of objects that are strangers' to them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kohort.controllers import writes
from kohort.controllers.parts import reading
from kohort.kube.codec import Codec

Object = dict[str, Any]
META: Object = {
    "name": "a",
    "generateName": "a-",
    "namespace": "ns",
    "uid": "u",
    "resourceVersion": "3",
    "generation": 2,
    "creationTimestamp": "2026-11-18T00:00:00Z",
    "deletionTimestamp": "2026-11-18T00:00:01Z",
    "deletionGracePeriodSeconds": 0,
    "labels": {"l": "v"},
    "annotations": {"n": "v"},
    "ownerReferences": [{"kind": "Job", "name": "j", "uid": "o", "controller": True}],
    "finalizers": ["batch.kubernetes.io/job-tracking"],
}
STATUS: Object = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"}


def kept(kind: str, obj: Object, contents_of: tuple[tuple[str, ...], ...] = ((),)) -> Any:
    parts = reading("v1", kind, contents_of)
    codec: Codec[Object] = Codec(dict[str, Any], kind=kind, api_version="v1", reading=parts)
    return codec.event(msgspec.json.encode({"type": "ADDED", "object": obj})).object


def pod(spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": META, "spec": spec, "status": STATUS}


def test_of_a_pod_all_is_kept_that_controllers_read() -> None:
    rule = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    read = {
        "nodeName": "n",
        "schedulingGroup": {"podGroupName": "g"},
        "workloadRef": {"name": "w", "podGroup": "g"},
        "schedulingGates": [{"name": "a.b/c"}],
        "nodeSelector": {"rack": "1"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [rule]}}},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
        "hostname": "h",
        "subdomain": "s",
        "hostNetwork": True,
        "restartPolicy": "Never",
        "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}]}],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "ports": [{"name": "p", "containerPort": 8080}]}],
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "p"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
        ],
    }
    assert kept("Pod", pod(read)) == pod(read)


def test_of_a_pod_nothing_else_is_kept() -> None:
    """What a tenant may write megabytes of, and who wrote what."""
    env = [{"name": f"E{number}", "value": "v"} for number in range(5000)]
    ports = [{"containerPort": number} for number in range(1, 4000)]
    mixed = {"name": "m", "ports": [*ports[:3], {"name": "http", "containerPort": 80}]}
    rules = [{"labelSelector": {}, "topologyKey": "zone"}] * 1000
    terms = [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}] * 10
    spec = {
        "containers": [
            {"name": "c", "image": "i", "env": env, "ports": ports, "resources": {"requests": {"cpu": 1}}},
            mixed,
        ],
        "volumes": [{"name": f"v{number}", "emptyDir": {}} for number in range(2000)],
        "topologySpreadConstraints": rules,
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rules},
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
        },
        "nodeName": "n",
    }
    large = pod(spec)
    large["metadata"] = {**META, "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]}
    found = kept("Pod", large)
    assert len(msgspec.json.encode(large)) > 300_000
    assert len(msgspec.json.encode(found)) < 2000
    assert (found["metadata"], found["spec"]["nodeName"], found["status"]) == (META, "n", STATUS)
    assert found["spec"]["containers"] == [{"name": "m", "ports": [{"name": "http", "containerPort": 80}]}]


@pytest.mark.parametrize("owners", [20_000, 3])
def test_of_a_strangers_object_only_who_it_is_is_kept(owners: int) -> None:
    references = [{"kind": "Node", "name": f"n{number}", "uid": f"u{number}"} for number in range(owners)]
    controller = {"apiVersion": "b/v1", "kind": "Other", "name": "o", "uid": "u", "controller": True}
    meta = {**META, "ownerReferences": [*references, controller]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"k": "djE="}}
    assert kept("Secret", secret, (("TrainJob",), ("Other2",))) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "3",
            "creationTimestamp": "2026-11-18T00:00:00Z",
            "deletionTimestamp": "2026-11-18T00:00:01Z",
            "ownerReferences": [controller],
        },
    }
    assert kept("Secret", secret, (("TrainJob",), ("Other",))) == secret
    assert kept("Secret", secret, (("TrainJob",), ())) == secret, "somebody reads all of them"


def test_what_is_read_in_part_is_not_written_whole() -> None:
    assert writes.patch(pod({}), {"metadata": {"labels": {"a": "b"}}}).verb == "patch"
    with pytest.raises(ValueError, match="Pod a: only parts of it were read"):
        writes.update(pod({}))
