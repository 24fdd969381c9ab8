"""The columns of kinds that administrators look at: definitions, certificates, policies, attachments, flow control."""

from __future__ import annotations

from typing import Final

from kohort.api.kind import Column
from kohort.server import timestamps
from kohort.server.printers.cells import AGE, CREATED_AT, Cell, Object, at, length, look, seen, text

_UNSET: Final = "<unset>"


def _condition(obj: Object, kind: str) -> Object:
    found = (one for one in look(obj, "status.conditions") or [] if one.get("type") == kind)
    return next(found, {})


def _is_true(obj: Object, kind: str) -> bool:
    return _condition(obj, kind).get("status") == "True"


def _truth(path: str) -> Cell:
    return lambda obj: bool(look(obj, path))


# ---- definitions


def _versions(obj: Object) -> str:
    return ",".join(
        f"{one.get('name')}(storage)" if one.get("storage") else str(one.get("name"))
        for one in look(obj, "spec.versions") or []
    )


def _short_names(obj: Object) -> str:
    return ",".join(look(obj, "spec.names.shortNames") or [])


DEFINITION: Final = (
    Column("Scope", cell=at("spec.scope")),
    Column("Versions", cell=_versions),
    CREATED_AT,
    Column("Group", cell=at("spec.group"), priority=1),
    Column("Kind", cell=at("spec.names.kind"), priority=1),
    Column("ShortNames", cell=_short_names, priority=1),
    Column("Established", "boolean", cell=lambda obj: _is_true(obj, "Established"), priority=1),
)


def _service(obj: Object) -> str:
    service = look(obj, "spec.service")
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def _available(obj: Object) -> str:
    one = _condition(obj, "Available")
    if one.get("status") == "True":
        return "True"
    return f"{one['status']} ({one.get('reason')})" if one else "Unknown"


API_SERVICE: Final = (Column("Service", cell=_service), Column("Available", cell=_available), AGE)


def _migration(obj: Object) -> str:
    for kind in ("Succeeded", "Failed", "Running"):
        if _is_true(obj, kind):
            return kind
    return ""


def _migrated(obj: Object) -> str:
    resource = look(obj, "spec.resource") or {}
    return ".".join(filter(None, (resource.get("resource"), resource.get("group"))))


STORAGE_VERSION_MIGRATION: Final = (
    Column("Name", cell=at("metadata.name")),
    Column("Resource", cell=_migrated),
    Column("Status", cell=_migration),
)

# ---- certificates


def _requested_duration(obj: Object) -> str:
    seconds = look(obj, "spec.expirationSeconds")
    return timestamps.human_duration(seconds) if seconds else "<none>"


def _decision(obj: Object) -> str:
    """Approved and denied by people; failed and issued by signers."""
    kinds = {one.get("type") for one in look(obj, "status.conditions") or []}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    words += ["Failed"] if "Failed" in kinds else []
    words += ["Issued"] if look(obj, "status.certificate") else []
    return ",".join(words)


SIGNING_REQUEST: Final = (
    AGE,
    Column("SignerName", cell=text("spec.signerName", "<none>")),
    Column("Requestor", cell=at("spec.username")),
    Column("RequestedDuration", cell=_requested_duration),
    Column("Condition", cell=_decision),
)
TRUST_BUNDLE: Final = (Column("SignerName", cell=text("spec.signerName", "<none>")),)


def _certificate_state(obj: Object) -> str:
    found = (kind for kind in ("Issued", "Denied", "Failed") if _is_true(obj, kind))
    return next(found, "Pending")


def _user_annotations(obj: Object) -> str:
    given = look(obj, "spec.unverifiedUserAnnotations") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(given.items())) or "<none>"


POD_CERTIFICATE: Final = (
    Column("PodName", cell=at("spec.podName")),
    Column("ServiceAccountName", cell=at("spec.serviceAccountName")),
    Column("NodeName", cell=at("spec.nodeName")),
    Column("SignerName", cell=at("spec.signerName")),
    Column("State", cell=_certificate_state),
    Column("UnverifiedUserAnnotations", cell=_user_annotations),
)

# ---- policies


def _param_kind(obj: Object) -> str:
    found = look(obj, "spec.paramKind") or {}
    return "/".join(filter(None, (found.get("apiVersion"), found.get("kind")))) or _UNSET


def _param_ref(obj: Object) -> str:
    found = look(obj, "spec.paramRef") or {}
    if not found:
        return _UNSET
    if not found.get("name"):
        return "*"
    return "/".join(filter(None, (found.get("namespace"), found["name"])))


POLICY_BINDING: Final = (Column("PolicyName", cell=at("spec.policyName")), Column("ParamRef", cell=_param_ref), AGE)


def policy(counted: str) -> tuple[Column, ...]:
    """`counted`: the member of the spec that holds the rules."""
    number = Column(counted.capitalize(), "integer", cell=length(f"spec.{counted}"))
    return (number, Column("ParamKind", cell=_param_kind), AGE)


def _distinguisher(obj: Object) -> str:
    return str(look(obj, "spec.distinguisherMethod.type") or "<none>")


def _dangling(obj: Object) -> str:
    return str(_condition(obj, "Dangling").get("status") or "?")


FLOW_SCHEMA: Final = (
    Column("PriorityLevel", cell=at("spec.priorityLevelConfiguration.name")),
    Column("MatchingPrecedence", cell=at("spec.matchingPrecedence")),
    Column("DistinguisherMethod", cell=_distinguisher),
    AGE,
    Column("MissingPL", cell=_dangling),
)


def _queuing(member: str) -> Cell:
    def cell(obj: Object) -> object:
        found = look(obj, f"spec.limited.limitResponse.queuing.{member}")
        return "<none>" if found is None else found

    return cell


def _shares(obj: Object) -> object:
    of = "exempt" if look(obj, "spec.type") == "Exempt" else "limited"
    found = look(obj, f"spec.{of}.nominalConcurrencyShares")
    return "<none>" if found is None else found


PRIORITY_LEVEL: Final = (
    Column("Type", cell=at("spec.type")),
    Column("NominalConcurrencyShares", cell=_shares),
    Column("Queues", cell=_queuing("queues")),
    Column("HandSize", cell=_queuing("handSize")),
    Column("QueueLengthLimit", cell=_queuing("queueLengthLimit")),
    AGE,
)
DEVICE_TAINT_RULE: Final = (
    Column("Key", cell=at("spec.taint.key")),
    Column("Value", cell=at("spec.taint.value")),
    Column("Effect", cell=at("spec.taint.effect")),
    Column("TimeAdded", cell=seen("spec.taint.timeAdded", "<unknown>")),
    AGE,
)

# ---- addresses and volumes


def _parent(obj: Object) -> str:
    found = look(obj, "spec.parentRef") or {}
    return "/".join(filter(None, (found.get(name) for name in ("group", "resource", "namespace", "name"))))


IP_ADDRESS: Final = (Column("ParentRef", cell=_parent),)
SERVICE_CIDR: Final = (Column("CIDRs", cell=lambda obj: ",".join(look(obj, "spec.cidrs") or [])), AGE)


def _token_requests(obj: Object) -> str:
    found = look(obj, "spec.tokenRequests") or []
    return ",".join(str(one.get("audience")) for one in found) or _UNSET


CSI_DRIVER: Final = (
    Column("AttachRequired", "boolean", cell=lambda obj: look(obj, "spec.attachRequired") is not False),
    Column("PodInfoOnMount", "boolean", cell=_truth("spec.podInfoOnMount")),
    Column("StorageCapacity", "boolean", cell=_truth("spec.storageCapacity")),
    Column("TokenRequests", cell=_token_requests),
    Column("RequiresRepublish", "boolean", cell=_truth("spec.requiresRepublish")),
    Column("Modes", cell=lambda obj: ",".join(look(obj, "spec.volumeLifecycleModes") or []) or "<none>"),
    AGE,
)
VOLUME_ATTACHMENT: Final = (
    Column("Attacher", cell=at("spec.attacher"), format="name"),
    Column("PV", cell=at("spec.source.persistentVolumeName")),
    Column("Node", cell=at("spec.nodeName")),
    Column("Attached", "boolean", cell=_truth("status.attached")),
    AGE,
)
VOLUME_ATTRIBUTES_CLASS: Final = (Column("DriverName", cell=at("driverName")), AGE)
