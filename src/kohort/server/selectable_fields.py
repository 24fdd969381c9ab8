"""Which fields of which kinds can be selected by, and where they stand."""

from __future__ import annotations

from typing import Any, Final

from kohort.server.selectors import Getter

Object = dict[str, Any]


def _at(path: str, default: str = "") -> Getter:
    parts = path.split(".")

    def get(obj: Object) -> str:
        value: Any = obj
        for part in parts:
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return get


def _pod_ip(pod: Object) -> str:
    addresses = (pod.get("status") or {}).get("podIPs") or []
    return str(addresses[0].get("ip", "")) if addresses else str((pod.get("status") or {}).get("podIP") or "")


def _source(event: Object) -> str:
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent") or "")


_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT: Final[dict[str, Getter]] = {
    **{f"involvedObject.{name}": _at(f"involvedObject.{name}") for name in _REFERENCE},
    "reason": _at("reason"),
    "reportingComponent": _at("reportingComponent"),
    "source": _source,
    "type": _at("type"),
}
# Stored in the older form, so the newer names read the same places.
_NEW_EVENT: Final[dict[str, Getter]] = {
    **{f"regarding.{name}": _at(f"involvedObject.{name}") for name in _REFERENCE},
    "reason": _at("reason"),
    "reportingController": _at("reportingComponent"),
    "type": _at("type"),
}
_FIELDS: Final[dict[tuple[str, str], dict[str, Getter]]] = {
    ("", "pods"): {
        "spec.nodeName": _at("spec.nodeName"),
        "spec.restartPolicy": _at("spec.restartPolicy"),
        "spec.schedulerName": _at("spec.schedulerName"),
        "spec.serviceAccountName": _at("spec.serviceAccountName"),
        "spec.hostNetwork": _at("spec.hostNetwork", "false"),
        "status.phase": _at("status.phase"),
        "status.podIP": _pod_ip,
        "status.podIPs": _pod_ip,
        "status.nominatedNodeName": _at("status.nominatedNodeName"),
    },
    ("", "nodes"): {"spec.unschedulable": _at("spec.unschedulable", "false")},
    ("", "namespaces"): {"status.phase": _at("status.phase"), "name": _at("metadata.name")},
    ("", "secrets"): {"type": _at("type")},
    ("", "events"): _EVENT,
    ("events.k8s.io", "events"): _NEW_EVENT,
    ("", "services"): {"spec.clusterIP": _at("spec.clusterIP"), "spec.type": _at("spec.type")},
    ("", "persistentvolumes"): {"name": _at("metadata.name")},
    ("", "persistentvolumeclaims"): {"name": _at("metadata.name")},
    ("", "replicationcontrollers"): {"status.replicas": _at("status.replicas", "0")},
    ("apps", "replicasets"): {"status.replicas": _at("status.replicas", "0")},
    ("batch", "jobs"): {"status.successful": _at("status.succeeded", "0")},
    ("resource.k8s.io", "resourceslices"): {
        "spec.nodeName": _at("spec.nodeName"),
        "spec.driver": _at("spec.driver"),
    },
    ("certificates.k8s.io", "certificatesigningrequests"): {"spec.signerName": _at("spec.signerName")},
}
_NAME: Final = _at("metadata.name")
_NAMESPACE: Final = _at("metadata.namespace")


def of(group: str, plural: str, namespaced: bool) -> dict[str, Getter]:
    """`metadata.name` is selectable everywhere, `metadata.namespace` where there is one."""
    found = {"metadata.name": _NAME, **_FIELDS.get((group, plural), {})}
    if namespaced or group:
        found["metadata.namespace"] = _NAMESPACE
    return found
