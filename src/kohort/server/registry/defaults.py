"""What an API server fills into its own kinds. Each function completes an object in place."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from kohort.api.core.pod_defaults import default_pod_template
from kohort.server import timestamps
from kohort.server.conversion import METRICS

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object


def _fill(block: Any, **values: Any) -> None:
    if isinstance(block, dict):
        for name, value in values.items():
            if block.get(name) in (None, ""):
                block[name] = dict(value) if isinstance(value, dict) else value


def _spec(obj: Object) -> dict[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def namespace(obj: Object, _: Context) -> None:
    """Its own label is always there; the finalizer is what termination waits for."""
    meta = obj["metadata"]
    if meta.get("name"):
        meta.setdefault("labels", {})["kubernetes.io/metadata.name"] = meta["name"]
    if not meta.get("deletionTimestamp"):
        spec = obj.setdefault("spec", {})
        if isinstance(spec, dict) and "kubernetes" not in (spec.get("finalizers") or ()):
            spec["finalizers"] = [*(spec.get("finalizers") or ()), "kubernetes"]
    _fill(obj.get("status"), phase="Active")


def node(obj: Object, _: Context) -> None:
    obj.setdefault("spec", {})
    status = obj.get("status")
    if isinstance(status, dict) and status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def service(obj: Object, _: Context) -> None:
    spec = _spec(obj)
    _fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec.get("sessionAffinity") == "ClientIP":
        _fill(spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}), timeoutSeconds=10800)
    for port in _items(spec.get("ports")):
        _fill(port, protocol="TCP")
        if port.get("targetPort") in (None, "", 0) and "port" in port:
            port["targetPort"] = port["port"]
    kind = spec.get("type")
    if kind != "ExternalName":
        _fill(spec, internalTrafficPolicy="Cluster")
    if kind in {"NodePort", "LoadBalancer"}:
        _fill(spec, externalTrafficPolicy="Cluster")
    if kind == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)


def endpoints(obj: Object, _: Context) -> None:
    for subset in _items(obj.get("subsets")):
        for port in _items(subset.get("ports")):
            _fill(port, protocol="TCP")


def endpoint_slice(obj: Object, _: Context) -> None:
    for endpoint in _items(obj.get("endpoints")):
        endpoint.setdefault("conditions", {})
    for port in _items(obj.get("ports")):
        _fill(port, protocol="TCP")
        port.setdefault("name", "")


def secret(obj: Object, _: Context) -> None:
    _fill(obj, type="Opaque")
    plain = obj.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def event(obj: Object, _: Context) -> None:
    obj.setdefault("reportingComponent", "")
    obj.setdefault("reportingInstance", "")
    obj.setdefault("source", {})
    obj.setdefault("firstTimestamp", None)
    obj.setdefault("lastTimestamp", None)
    if obj.get("involvedObject") is None:
        obj["involvedObject"] = {}


def limit_range(obj: Object, _: Context) -> None:
    """Bounds of a container are its defaults, too."""
    for limit in _items(_spec(obj).get("limits")):
        if limit.get("type") != "Container":
            continue
        for name, value in (limit.get("max") or {}).items():
            limit.setdefault("default", {}).setdefault(name, value)
        for source in ("default", "min"):
            for name, value in (limit.get(source) or {}).items():
                limit.setdefault("defaultRequest", {}).setdefault(name, value)


def claim(obj: Object, _: Context) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, volumeMode="Filesystem")
    spec.setdefault("resources", {})
    _fill(obj.get("status"), phase="Pending")


def volume(obj: Object, _: Context) -> None:
    _fill(_spec(obj), persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    host = _spec(obj).get("hostPath")
    if isinstance(host, dict):
        host.setdefault("type", "")
    _fill(obj.get("status"), phase="Pending")


def _labels_of_template(obj: Object) -> dict[str, str]:
    template = _spec(obj).get("template")
    meta = template.get("metadata") if isinstance(template, dict) else None
    return dict((meta or {}).get("labels") or {})


def pod_template(obj: Object, _: Context) -> None:
    default_pod_template(obj.get("template"))


def replication_controller(obj: Object, _: Context) -> None:
    spec, labels = _spec(obj), _labels_of_template(obj)
    if labels:
        if not spec.get("selector"):
            spec["selector"] = labels
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = labels
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    _template(obj)


def _template(obj: Object) -> None:
    template = _spec(obj).get("template")
    default_pod_template(template)
    if isinstance(template, dict):
        template.setdefault("metadata", {}).setdefault("creationTimestamp", None)
        if template["metadata"]["creationTimestamp"] is None:
            del template["metadata"]["creationTimestamp"]


def _count(obj: Object, **values: Any) -> None:
    spec = _spec(obj)
    for name, value in values.items():
        if spec.get(name) is None:
            spec[name] = value


_ROLLING: Final = {"maxSurge": "25%", "maxUnavailable": "25%"}


def deployment(obj: Object, _: Context) -> None:
    _template(obj)
    _count(obj, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = _spec(obj).setdefault("strategy", {})
    _fill(strategy, type="RollingUpdate")
    if strategy.get("type") == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), **_ROLLING)


def replica_set(obj: Object, _: Context) -> None:
    _template(obj)
    _count(obj, replicas=1)


def stateful_set(obj: Object, ctx: Context) -> None:
    _template(obj)
    _count(obj, replicas=1, revisionHistoryLimit=10)
    spec = _spec(obj)
    _fill(spec, podManagementPolicy="OrderedReady")
    spec.setdefault("serviceName", "")
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy.setdefault("rollingUpdate", {})
    _fill(strategy, type="RollingUpdate")
    if strategy.get("type") == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        _fill(strategy["rollingUpdate"], partition=0)
        if ctx.release.minor not in ("1.35", "1.36"):
            _fill(strategy["rollingUpdate"], maxUnavailable=1)
    policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    _fill(policy, whenDeleted="Retain", whenScaled="Retain")
    for one in _items(spec.get("volumeClaimTemplates")):
        one.setdefault("kind", "PersistentVolumeClaim")
        one.setdefault("apiVersion", "v1")
        claim(one, ctx)
        one.setdefault("status", {}).setdefault("phase", "Pending")


def daemon_set(obj: Object, _: Context) -> None:
    _template(obj)
    _count(obj, revisionHistoryLimit=10)
    strategy = _spec(obj).setdefault("updateStrategy", {})
    _fill(strategy, type="RollingUpdate")
    if strategy.get("type") == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), maxSurge=0, maxUnavailable=1)


def autoscaler(obj: Object, _: Context) -> None:
    spec = _spec(obj)
    _count(obj, minReplicas=1)
    if obj.get("apiVersion") == "autoscaling/v2" and not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    elif obj.get("apiVersion") == "autoscaling/v1" and METRICS not in (obj["metadata"].get("annotations") or {}):
        _count(obj, targetCPUUtilizationPercentage=80)


def network_policy(obj: Object, _: Context) -> None:
    spec = _spec(obj)
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    spec.setdefault("podSelector", {})


def role_binding(obj: Object, _: Context) -> None:
    reference = obj.get("roleRef")
    if isinstance(reference, dict):
        _fill(reference, apiGroup="rbac.authorization.k8s.io")
    for subject in _items(obj.get("subjects")):
        if subject.get("kind") in {"User", "Group"}:
            _fill(subject, apiGroup="rbac.authorization.k8s.io")


def storage_class(obj: Object, _: Context) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def csi_driver(obj: Object, ctx: Context) -> None:
    spec = obj.setdefault("spec", {})
    new = {"preventPodSchedulingIfMissing": False} if ctx.release.minor == "1.37" else {}
    for name, value in {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "requiresRepublish": False,
        "seLinuxMount": False,
        **new,
    }.items():
        if spec.get(name) is None:
            spec[name] = value
    _fill(spec, fsGroupPolicy="ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def webhooks(obj: Object, _: Context) -> None:
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for hook in _items(obj.get("webhooks")):
        _fill(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        if mutating:
            _fill(hook, reinvocationPolicy="Never")
        for rule in _items(hook.get("rules")):
            _fill(rule, scope="*")
        reference = (hook.get("clientConfig") or {}).get("service")
        if isinstance(reference, dict):
            _fill(reference, port=443)


def admission_policy(obj: Object, _: Context) -> None:
    spec = _spec(obj)
    _fill(spec, failurePolicy="Fail")
    _match_resources(spec.get("matchConstraints"))


def policy_binding(obj: Object, _: Context) -> None:
    _match_resources(_spec(obj).get("matchResources"))


def _match_resources(match: Any) -> None:
    if isinstance(match, dict):
        _fill(match, matchPolicy="Equivalent")
        match.setdefault("namespaceSelector", {})
        match.setdefault("objectSelector", {})
        for rule in [*_items(match.get("resourceRules")), *_items(match.get("excludeResourceRules"))]:
            _fill(rule, scope="*")


def api_service(obj: Object, _: Context) -> None:
    reference = _spec(obj).get("service")
    if isinstance(reference, dict):
        _fill(reference, port=443)


def priority_level(obj: Object, _: Context) -> None:
    limited = _spec(obj).get("limited")
    if isinstance(limited, dict):
        limited.setdefault("nominalConcurrencyShares", 30)
        limited.setdefault("lendablePercent", 0)


def device_taint_rule(obj: Object, _: Context) -> None:
    taint = _spec(obj).get("taint")
    if isinstance(taint, dict):
        _fill(taint, timeAdded=timestamps.stamp())


def _device_requests(spec: Any) -> None:
    devices = spec.get("devices") if isinstance(spec, dict) else None
    for request in _items((devices or {}).get("requests")):
        exactly = request.get("exactly")
        for one in [*_items([exactly]), *_items(request.get("firstAvailable"))]:
            _fill(one, allocationMode="ExactCount")
            if one.get("allocationMode") == "ExactCount" and one.get("count") is None:
                one["count"] = 1


def resource_claim(obj: Object, _: Context) -> None:
    _device_requests(_spec(obj))


def resource_claim_template(obj: Object, _: Context) -> None:
    _device_requests(_spec(obj).get("spec"))
