"""Update strategy: fields that an endpoint may not write are reset to the stored ones (upstream's PrepareForUpdate)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.copying import copied

if TYPE_CHECKING:
    from kohort.api.kind import Kind, Object

# Kinds whose status endpoint touches nothing of the metadata, and what others keep of it.
_STATUS_ONLY: Final = {
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceClaim"),
    ("scheduling.k8s.io", "CompositePodGroup"),
    ("scheduling.k8s.io", "PodGroup"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
}
_STATUS_KEEPS: Final = {("apps", "Deployment"): ("labels",), ("", "Pod"): ("ownerReferences",)}


def reset_fields(kind: Kind, new: Object, old: Object, subresource: str) -> None:
    """The endpoint decides what an update may touch: the main one not the status, that of the status nothing else."""
    if subresource == "status":
        for member in kind.schema.fields:
            if member != "status":
                set_or_remove(new, member, old.get(member))
        _reset_metadata(kind, new, old)
        kind.reset_status(new, old)
    elif subresource in kind.subresources:
        kind.subresources[subresource].reset(new, old)
    elif kind.status:
        set_or_remove(new, "status", old.get("status"))


def _reset_metadata(kind: Kind, new: Object, old: Object) -> None:
    """Most kinds of the server itself take labels, annotations and the like through their status, too."""
    before = old["metadata"]
    if kind.native and (kind.group, kind.kind) not in _STATUS_ONLY:
        for member in _STATUS_KEEPS.get((kind.group, kind.kind), ()):
            set_or_remove(new["metadata"], member, copied(before.get(member)))
        return
    version = new["metadata"].get("resourceVersion")
    new["metadata"] = copied(before)
    if version:
        new["metadata"]["resourceVersion"] = version


def set_or_remove(obj: Object, member: str, value: Any) -> None:
    if value is None:
        obj.pop(member, None)
    else:
        obj[member] = copied(value)
