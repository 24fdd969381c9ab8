"""What `kubectl get` shows of Kubernetes' own kinds. The name comes first where it is not listed."""

from __future__ import annotations

from typing import Final

from kohort.api.kind import Column
from kohort.server.printers import cluster, pods, workloads
from kohort.server.printers.cells import AGE, CREATED_AT, at, keys, length, number, seen, text

PLAIN: Final[tuple[Column, ...]] = (AGE,)
_CREATED: Final[tuple[Column, ...]] = (CREATED_AT,)


def _role(obj: dict[str, object]) -> str:
    reference = obj.get("roleRef")
    return f"{reference.get('kind')}/{reference.get('name')}" if isinstance(reference, dict) else ""


def _subjects(kind: str) -> Column:
    def cell(obj: dict[str, object]) -> str:
        subjects = obj.get("subjects")
        found = [one for one in subjects if one.get("kind") == kind] if isinstance(subjects, list) else []
        names = [f"{one['namespace']}/{one['name']}" if one.get("namespace") else str(one["name"]) for one in found]
        return ", ".join(names)

    word = {"User": "Users", "Group": "Groups", "ServiceAccount": "ServiceAccounts"}[kind]
    return Column(word, cell=cell, priority=1)


_BINDING: Final = (
    Column("Role", cell=_role),
    AGE,
    _subjects("User"),
    _subjects("Group"),
    _subjects("ServiceAccount"),
)
_WEBHOOKS: Final = (Column("Webhooks", "integer", cell=length("webhooks")), AGE)
_COLUMNS: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Pod"): pods.POD,
    ("", "PodTemplate"): (
        Column("Containers", cell=workloads.containers("template")),
        Column("Images", cell=workloads.images("template")),
        Column("Pod Labels", cell=workloads.template_labels),
    ),
    ("", "Node"): workloads.NODE,
    ("", "Namespace"): (Column("Status", cell=at("status.phase")), AGE),
    ("", "Service"): workloads.SERVICE,
    ("", "Endpoints"): (Column("Endpoints", cell=workloads.endpoints), AGE),
    ("", "ConfigMap"): (Column("Data", cell=keys("data", "binaryData")), AGE),
    ("", "Secret"): (Column("Type", cell=at("type")), Column("Data", cell=keys("data")), AGE),
    ("", "ServiceAccount"): (AGE,),
    ("", "Event"): workloads.EVENT,
    ("events.k8s.io", "Event"): workloads.EVENT,
    ("", "ReplicationController"): workloads.replicated("status.readyReplicas"),
    ("", "ResourceQuota"): (
        Column("Request", cell=workloads.quota("requests")),
        Column("Limit", cell=workloads.quota("limits")),
        AGE,
    ),
    ("", "LimitRange"): _CREATED,
    ("", "PersistentVolume"): workloads.VOLUME,
    ("", "PersistentVolumeClaim"): workloads.CLAIM,
    ("apps", "Deployment"): workloads.DEPLOYMENT,
    ("apps", "ReplicaSet"): workloads.replicated("status.readyReplicas"),
    ("apps", "StatefulSet"): workloads.STATEFUL_SET,
    ("apps", "DaemonSet"): workloads.DAEMON_SET,
    ("apps", "ControllerRevision"): (
        Column("Controller", cell=workloads.controller),
        Column("Revision", cell=at("revision")),
        AGE,
    ),
    ("batch", "Job"): workloads.JOB,
    ("batch", "CronJob"): workloads.CRON_JOB,
    ("policy", "PodDisruptionBudget"): (
        Column("Min Available", cell=text("spec.minAvailable", "N/A")),
        Column("Max Unavailable", cell=text("spec.maxUnavailable", "N/A")),
        Column("Allowed Disruptions", "integer", cell=number("status.disruptionsAllowed")),
        AGE,
    ),
    ("coordination.k8s.io", "Lease"): (Column("Holder", cell=text("spec.holderIdentity", "")), AGE),
    ("node.k8s.io", "RuntimeClass"): (Column("Handler", cell=at("handler")), AGE),
    ("rbac.authorization.k8s.io", "Role"): _CREATED,
    ("rbac.authorization.k8s.io", "ClusterRole"): _CREATED,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("storage.k8s.io", "StorageClass"): workloads.STORAGE_CLASS,
    ("storage.k8s.io", "CSINode"): (Column("Drivers", "integer", cell=length("spec.drivers")), AGE),
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.AUTOSCALER,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): cluster.policy("mutations"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): cluster.POLICY_BINDING,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): cluster.policy("validations"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): cluster.POLICY_BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): cluster.DEFINITION,
    ("apiregistration.k8s.io", "APIService"): cluster.API_SERVICE,
    ("certificates.k8s.io", "CertificateSigningRequest"): cluster.SIGNING_REQUEST,
    ("certificates.k8s.io", "ClusterTrustBundle"): cluster.TRUST_BUNDLE,
    ("certificates.k8s.io", "PodCertificateRequest"): cluster.POD_CERTIFICATE,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): cluster.FLOW_SCHEMA,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): cluster.PRIORITY_LEVEL,
    ("networking.k8s.io", "IPAddress"): cluster.IP_ADDRESS,
    ("networking.k8s.io", "ServiceCIDR"): cluster.SERVICE_CIDR,
    ("resource.k8s.io", "DeviceTaintRule"): cluster.DEVICE_TAINT_RULE,
    ("storage.k8s.io", "CSIDriver"): cluster.CSI_DRIVER,
    ("storage.k8s.io", "CSIStorageCapacity"): _CREATED,
    ("storage.k8s.io", "VolumeAttachment"): cluster.VOLUME_ATTACHMENT,
    ("storage.k8s.io", "VolumeAttributesClass"): cluster.VOLUME_ATTRIBUTES_CLASS,
    ("storagemigration.k8s.io", "StorageVersionMigration"): cluster.STORAGE_VERSION_MIGRATION,
    ("networking.k8s.io", "Ingress"): workloads.INGRESS,
    ("networking.k8s.io", "IngressClass"): (
        Column("Controller", cell=at("spec.controller")),
        Column("Parameters", cell=text("spec.parameters.name", "<none>")),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        Column("Pod-Selector", cell=workloads.selector("spec.podSelector")),
        AGE,
    ),
    ("discovery.k8s.io", "EndpointSlice"): (
        Column("AddressType", cell=at("addressType")),
        Column("Ports", cell=workloads.slice_ports),
        Column("Endpoints", cell=workloads.slice_addresses),
        AGE,
    ),
    ("resource.k8s.io", "ResourceClaim"): (Column("State", cell=workloads.claim_state), AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        Column("Node", cell=text("spec.nodeName", "<unset>")),
        Column("Driver", cell=at("spec.driver")),
        Column("Pool", cell=at("spec.pool.name")),
        AGE,
    ),
}

__all__ = ["PLAIN", "of", "seen"]


def of(group: str, kind: str) -> tuple[Column, ...] | None:
    return _COLUMNS.get((group, kind))
