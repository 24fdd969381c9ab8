"""The strategies of Kubernetes' own kinds: defaults, validation and what else their structure does not say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.server.registry import apps, cluster, config, defaults, endpoint_slices, network, quotas, roles, storage

if TYPE_CHECKING:
    from kohort.api.errors import FieldError
    from kohort.api.formats import Format
    from kohort.api.kind import Context, Object


def _nothing(_: Any, __: Any) -> list[FieldError]:
    return []


def _no_update(_: Any, __: Any, ___: Any) -> list[FieldError]:
    return []


def _no_default(_: Any, __: Any) -> None:
    return None


def _no_warning(_: Any, __: Any) -> list[str]:
    return []


def _empty(_: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A registry strategy; members as in `Kind`. `create_on_update`: a PUT to a free name creates."""

    name_format: Format | None = None
    needs_version: bool = False
    counts_changes: bool = False
    create_on_update: bool = False
    first_status: Callable[[Object], Object] = _empty
    default: Callable[[Object, Context], None] = _no_default
    validate: Callable[[Object, Context], list[FieldError]] = _nothing
    validate_update: Callable[[Object, Object, Context], list[FieldError]] = _no_update
    warn: Callable[[Object, Context], list[str]] = _no_warning


_PLAIN: Final = Strategy()
_COUNTED: Final = Strategy(counts_changes=True)
_VERSIONED: Final = Strategy(needs_version=True)
_RBAC: Final = Strategy(name_format=formats.path_segment, create_on_update=True)
_RBAC_BINDING: Final = replace(
    _RBAC, default=defaults.role_binding, validate=roles.binding, validate_update=roles.binding_update
)
_WEBHOOKS: Final = Strategy(needs_version=True, counts_changes=True, default=defaults.webhooks)


def _template_owner(default: Callable[[Object, Context], None], frozen: tuple[str, ...]) -> Strategy:
    return Strategy(
        counts_changes=True,
        default=default,
        validate=apps.validate,
        validate_update=lambda new, old, ctx: apps.validate_update(new, old, ctx, frozen),
    )


def _policy(sort: str) -> Strategy:
    def check(policy: Object, old: Object | None) -> list[FieldError]:
        from kohort.server.registry import policies  # with the expression language, which few servers need

        return policies.policy(policy, old, mutating=sort == "mutating")

    return Strategy(
        counts_changes=True,
        default=defaults.admission_policy,
        validate=lambda new, _: check(new, None),
        validate_update=lambda new, old, _: check(new, old),
    )


def _policy_binding(sort: str) -> Strategy:
    def check(binding: Object) -> list[FieldError]:
        from kohort.server.registry import policies

        return policies.binding(binding, mutating=sort == "mutating")

    return Strategy(
        counts_changes=True,
        default=defaults.policy_binding,
        validate=lambda new, _: check(new),
        validate_update=lambda new, _, __: check(new),
    )


_STRATEGIES: Final[dict[tuple[str, str], Strategy]] = {
    ("", "Namespace"): Strategy(
        name_format=formats.label, first_status=lambda _: {"phase": "Active"}, default=defaults.namespace
    ),
    ("", "Node"): Strategy(
        first_status=lambda node: node.get("status") or {}, default=defaults.node, validate_update=cluster.node_update
    ),
    ("", "Service"): Strategy(
        name_format=formats.label_1035,
        create_on_update=True,
        first_status=lambda _: {"loadBalancer": {}},
        default=defaults.service,
        validate=network.service,
        validate_update=network.service_update,
    ),
    ("", "Endpoints"): Strategy(create_on_update=True, default=defaults.endpoints),
    ("", "ConfigMap"): Strategy(validate=config.config_map, validate_update=config.config_map_update),
    ("", "Secret"): Strategy(default=defaults.secret, validate=config.secret, validate_update=config.secret_update),
    ("", "Event"): Strategy(create_on_update=True, default=defaults.event, validate=cluster.event),
    ("", "LimitRange"): Strategy(create_on_update=True, default=defaults.limit_range, validate=cluster.limit_range),
    ("", "ResourceQuota"): Strategy(validate=quotas.quota, validate_update=quotas.quota_update),
    ("", "PersistentVolumeClaim"): Strategy(
        first_status=lambda _: {"phase": "Pending"},
        default=defaults.claim,
        validate=storage.claim,
        validate_update=storage.claim_update,
    ),
    ("", "PersistentVolume"): Strategy(
        first_status=lambda _: {"phase": "Pending"}, default=defaults.volume, validate=storage.volume
    ),
    ("", "PodTemplate"): Strategy(counts_changes=True, default=defaults.pod_template),
    ("", "ReplicationController"): Strategy(
        counts_changes=True,
        default=defaults.replication_controller,
        first_status=lambda _: {"replicas": 0},
        validate=apps.controller,
        validate_update=lambda new, _, ctx: apps.controller(new, ctx),
    ),
    ("apps", "Deployment"): _template_owner(defaults.deployment, ("selector",)),
    ("apps", "ReplicaSet"): replace(
        _template_owner(defaults.replica_set, ("selector",)), first_status=lambda _: {"replicas": 0}
    ),
    ("apps", "StatefulSet"): replace(
        _template_owner(
            defaults.stateful_set, ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
        ),
        name_format=formats.label,
        first_status=lambda _: {"replicas": 0, "availableReplicas": 0},
    ),
    ("apps", "DaemonSet"): replace(
        _template_owner(defaults.daemon_set, ("selector",)),
        first_status=lambda _: {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
    ),
    ("apps", "ControllerRevision"): _PLAIN,
    ("policy", "PodDisruptionBudget"): Strategy(
        needs_version=True,
        counts_changes=True,
        first_status=lambda _: {
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
        validate=cluster.disruption_budget,
        validate_update=lambda new, _, ctx: cluster.disruption_budget(new, ctx),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Strategy(
        counts_changes=True,
        default=defaults.autoscaler,
        first_status=lambda _: {"desiredReplicas": 0, "currentMetrics": None},
        validate=cluster.autoscaler,
        validate_update=lambda new, _, ctx: cluster.autoscaler(new, ctx),
    ),
    ("networking.k8s.io", "Ingress"): replace(_COUNTED, first_status=lambda _: {"loadBalancer": {}}),
    ("networking.k8s.io", "NetworkPolicy"): replace(_COUNTED, default=defaults.network_policy),
    ("networking.k8s.io", "IngressClass"): _COUNTED,
    ("networking.k8s.io", "IPAddress"): Strategy(name_format=network.canonical_address),
    ("rbac.authorization.k8s.io", "Role"): replace(_RBAC, validate=roles.role, validate_update=roles.role_update),
    ("rbac.authorization.k8s.io", "ClusterRole"): replace(
        _RBAC, validate=roles.cluster_role, validate_update=lambda new, _, ctx: roles.cluster_role(new, ctx)
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): _RBAC_BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _RBAC_BINDING,
    ("storage.k8s.io", "StorageClass"): Strategy(
        default=defaults.storage_class,
        validate=storage.storage_class,
        validate_update=storage.storage_class_update,
    ),
    ("storage.k8s.io", "CSIDriver"): Strategy(needs_version=True, counts_changes=True, default=defaults.csi_driver),
    ("storage.k8s.io", "CSINode"): _VERSIONED,
    ("storage.k8s.io", "VolumeAttachment"): replace(_VERSIONED, first_status=lambda _: {"attached": False}),
    ("coordination.k8s.io", "Lease"): Strategy(
        needs_version=True,
        create_on_update=True,
        validate=cluster.lease,
        validate_update=lambda new, _, ctx: cluster.lease(new, ctx),
    ),
    ("node.k8s.io", "RuntimeClass"): Strategy(
        needs_version=True, validate=cluster.runtime_class, validate_update=cluster.runtime_class_update
    ),
    ("discovery.k8s.io", "EndpointSlice"): Strategy(
        counts_changes=True,
        default=defaults.endpoint_slice,
        validate=endpoint_slices.endpoint_slice,
        validate_update=endpoint_slices.endpoint_slice_update,
        warn=endpoint_slices.warn,
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): replace(_policy("validating"), needs_version=True),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _policy_binding("validating"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _policy("mutating"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _policy_binding("mutating"),
    ("apiregistration.k8s.io", "APIService"): Strategy(default=defaults.api_service),
    ("certificates.k8s.io", "ClusterTrustBundle"): Strategy(
        name_format=formats.path_segment,
        validate=cluster.trust_bundle,
        validate_update=lambda new, _, ctx: cluster.trust_bundle(new, ctx),
    ),
    ("resource.k8s.io", "DeviceClass"): _COUNTED,
    ("resource.k8s.io", "DeviceTaintRule"): Strategy(counts_changes=True, default=defaults.device_taint_rule),
    ("resource.k8s.io", "ResourceSlice"): _COUNTED,
    ("resource.k8s.io", "ResourceClaim"): Strategy(
        default=defaults.resource_claim, validate_update=storage.resource_claim_update
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): Strategy(
        default=defaults.resource_claim_template, validate_update=storage.resource_claim_update
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _COUNTED,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): replace(_COUNTED, default=defaults.priority_level),
}


def of(group: str, kind: str) -> Strategy:
    return _STRATEGIES.get((group, kind), _PLAIN)
