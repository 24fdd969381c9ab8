"""Objects with a quantity in every place where a kind of Kubernetes has one, for tests here and on real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Object = dict[str, Any]
NAMESPACE = "amounts"
WRITTEN: tuple[Any, ...] = ("1000m", "1024Mi", "0.5", "1.5Gi", "1e3", "0.0001", "100n", "+5", 2, 1.5)

TEXTS: tuple[Any, ...] = (
    "1", "1.0", "1500m", "1E3", "1e-3", "1536Mi", "0.5Gi", "1000", "1000k", "1024", "1024Ki", "1234567", "0", "0m",
    "0Gi", "000", "-0", "1.", ".5", ".5Mi", "0.0000000001", "999u", "1000000n", "12345678901234567890", "1E", "1Ei",
    "8Ei", "9223372036854775808", "1e20", "1e21", "1e40", "0.1Ki", "1.0Ki", "1023Ki", "2048Mi", "0.25Ki", "1.5e3",
    "12e6", "1200e3", "1e4", "1e6", "0.100", "1.5G", "1.5k", "1.0001k", "0.5m", "1.5m", "m", "Ki", ".", "+", "-", "",
    " 1 ", "2Ki", "1000Ki", "1e+3", "1e03", "9007199254740993", 0, "0e3", "000010", "0001.500", "1024Pi",
    "1024Ei", "9000Pi", "1e-9", "1.23456789e3", "1.5e6", "0x10", "1_000", "1K", "1ki", "1e", "1i", "00.5Gi",
    "1.000000001", "999999999999999999999n", "3e-2", "3000e-3", "5e-7", "1e1", None,
)  # fmt: skip


def _pod(q: Any) -> Object:
    divided = {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m", "containerName": "c"}}
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": q}}}}
    volumes = [
        {"name": "e", "emptyDir": {"sizeLimit": q}},
        {"name": "v", "ephemeral": {"volumeClaimTemplate": claim}},
        {"name": "d", "downwardAPI": {"items": [{"path": "p", **divided}]}},
    ]
    amounts = {"requests": {"a.io/x": "1e3", "cpu": q}, "limits": {"a.io/x": "1000", "cpu": q, "memory": "4096Ki"}}
    container = {"name": "c", "image": "x", "resources": amounts, "env": [{"name": "E", "valueFrom": divided}]}
    return {"containers": [container], "initContainers": [{**container, "name": "i"}], "volumes": volumes}


def _template(q: Any) -> Object:
    return {"metadata": {"labels": {"a": "b"}}, "spec": _pod(q)}


def _set(q: Any) -> Object:
    return {"selector": {"matchLabels": {"a": "b"}}, "template": _template(q)}


def _job(q: Any) -> Object:
    template = _template(q)
    return {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}}


def _claim(q: Any) -> Object:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": q}, "limits": {"storage": q}}}


def _scaler(q: Any) -> Object:
    named = {"metric": {"name": "m"}, "target": {"type": "Value", "value": q}}
    object_ = {"describedObject": {"kind": "A", "name": "a", "apiVersion": "v1"}, **named}
    pods = {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": q}}
    target = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
    metrics = [{"type": "Object", "object": object_}, {"type": "Pods", "pods": pods}]
    return {"maxReplicas": 3, "scaleTargetRef": target, "metrics": metrics}


def _slice(q: Any) -> Object:
    policy = {"default": "1000m", "validRange": {"min": "1000m", "max": "4000m", "step": "1000m"}}
    shared = {"allowMultipleAllocations": True, "capacity": {"a.io/c": {"value": "4096Ki", "requestPolicy": policy}}}
    devices = [{"name": "d", "capacity": {"a.io/c": {"value": q}}}, {"name": "e", **shared}]
    pool = {"name": "p", "resourceSliceCount": 1, "generation": 1}
    return {"driver": "a.io", "nodeName": "n", "pool": pool, "devices": devices}


Maker = Callable[[Any], Object]
_CORE, _APPS = f"/api/v1/namespaces/{NAMESPACE}", f"/apis/apps/v1/namespaces/{NAMESPACE}"
PLACES: dict[str, tuple[str, Maker]] = {
    "Node": ("/api/v1/nodes", lambda q: {"status": {"capacity": {"x": q}, "allocatable": {"x": q, "cpu": q}}}),
    "Pod": (f"{_CORE}/pods", lambda q: {"spec": _pod(q)}),
    "PodTemplate": (f"{_CORE}/podtemplates", lambda q: {"template": _template(q)}),
    "ReplicationController": (f"{_CORE}/replicationcontrollers", lambda q: {"spec": {"template": _template(q)}}),
    "PersistentVolumeClaim": (f"{_CORE}/persistentvolumeclaims", lambda q: {"spec": _claim(q)}),
    "PersistentVolume": (
        "/api/v1/persistentvolumes",
        lambda q: {
            "spec": {"capacity": {"storage": q}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
        },
    ),
    "ResourceQuota": (f"{_CORE}/resourcequotas", lambda q: {"spec": {"hard": {"cpu": q, "requests.memory": q}}}),
    "LimitRange": (
        f"{_CORE}/limitranges",
        lambda q: {
            "spec": {
                "limits": [
                    {"type": "Container", "max": {"cpu": q}, "min": {"cpu": q}, "default": {"cpu": q}},
                    {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2000m"}},
                ]
            }
        },
    ),
    "Deployment": (f"{_APPS}/deployments", lambda q: {"spec": _set(q)}),
    "ReplicaSet": (f"{_APPS}/replicasets", lambda q: {"spec": _set(q)}),
    "DaemonSet": (f"{_APPS}/daemonsets", lambda q: {"spec": _set(q)}),
    "StatefulSet": (
        f"{_APPS}/statefulsets",
        lambda q: {
            "spec": {
                **_set(q),
                "serviceName": "s",
                "volumeClaimTemplates": [{"metadata": {"name": "t"}, "spec": _claim(q)}],
            }
        },
    ),
    "Job": (f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", lambda q: {"spec": _job(q)}),
    "CronJob": (
        f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs",
        lambda q: {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": _job(q)}}},
    ),
    "RuntimeClass": (
        "/apis/node.k8s.io/v1/runtimeclasses",
        lambda q: {"handler": "h", "overhead": {"podFixed": {"cpu": q}}},
    ),
    "HorizontalPodAutoscaler": (
        f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
        lambda q: {"spec": _scaler(q)},
    ),
    "CSIStorageCapacity": (
        f"/apis/storage.k8s.io/v1/namespaces/{NAMESPACE}/csistoragecapacities",
        lambda q: {"storageClassName": "s", "capacity": q, "maximumVolumeSize": q},
    ),
    "ResourceSlice": ("/apis/resource.k8s.io/v1/resourceslices", lambda q: {"spec": _slice(q)}),
    "ResourceClaim": (
        f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims",
        lambda q: {
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "r", "exactly": {"deviceClassName": "c", "capacity": {"requests": {"a.io/c": q}}}}
                    ]
                }
            }
        },
    ),
}


def asked() -> Iterator[tuple[str, str, Object]]:
    """(where, path, body) of dry-run creations."""
    for kind, (path, make) in PLACES.items():
        for q in WRITTEN:
            yield f"{kind} {q!r}", f"{path}?dryRun=All", {"metadata": {"name": "x"}, **make(q)}
    for q in TEXTS:
        yield f"text {q!r}", "/api/v1/nodes?dryRun=All", {"metadata": {"name": "x"}, "status": {"capacity": {"x": q}}}


def became(asked: Any, answer: Any) -> Any:
    """What a server made of everything that was asked for, in order; of a refusal the code."""
    return list(_values(asked, answer.json())) if answer.ok else answer.code


def _values(asked: Any, found: Any) -> Iterator[Any]:
    if isinstance(asked, dict):
        for name, value in asked.items():
            yield from _values(value, found[name])
    elif isinstance(asked, list):
        for one, other in zip(asked, found, strict=True):
            yield from _values(one, other)
    else:
        yield found
