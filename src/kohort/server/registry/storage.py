"""Rules of volumes, claims and storage classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import FieldError, forbidden, invalid, not_supported, required
from kohort.api.rules import same
from kohort.apimachinery.quantity import ZERO, parse

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CLAIM: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _access(spec: dict[str, Any], path: str = "spec") -> list[FieldError]:
    modes, path = spec.get("accessModes") or [], f"{path}.accessModes"
    if not modes:
        return [required(path, "at least 1 access mode is required")]
    return [not_supported(path, mode, _MODES) for mode in modes if mode not in _MODES]


def claim(obj: Object, _: Context) -> list[FieldError]:
    return claim_spec(obj.get("spec") or {}, "spec")


def claim_spec(spec: dict[str, Any], path: str) -> list[FieldError]:
    found = _access(spec, path)
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        found.append(required(f"{path}.resources[storage]"))
    elif not parse(asked) > ZERO:
        found.append(invalid(f"{path}.resources[storage]", str(asked), "must be greater than zero"))
    return found


def claim_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    found = claim(new, ctx)
    spec, before = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    if not before.get("volumeName"):
        spec.pop("volumeName", None)
    free = ["resources", "volumeAttributesClassName"]
    if not before.get("storageClassName"):  # may be given later, once
        free.append("storageClassName")
    for member in free:
        spec.pop(member, None)
        before.pop(member, None)
    if not same({**spec, "volumeName": None}, {**before, "volumeName": None}) or (
        before.get("volumeName") and spec.get("volumeName") != before["volumeName"]
    ):
        found.append(forbidden("spec", _CLAIM))
    return found


def volume(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = _access(spec)
    if not spec.get("capacity"):
        found.append(required("spec.capacity"))
    return found


def storage_class(obj: Object, _: Context) -> list[FieldError]:
    found = [] if obj.get("provisioner") else [required("provisioner")]
    for member, accepted in (
        ("reclaimPolicy", ("Delete", "Retain")),
        ("volumeBindingMode", ("Immediate", "WaitForFirstConsumer")),
    ):
        if obj.get(member) not in accepted:
            found.append(not_supported(member, obj.get(member), accepted))
    return found


def storage_class_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    return [
        forbidden(member, "updates to this field are forbidden.")
        if member == "parameters"
        else invalid(member, new.get(member), "field is immutable")
        for member in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
        if not same(new.get(member), old.get(member))
    ]


def resource_claim_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    if same(new.get("spec"), old.get("spec")):
        return []
    return [invalid("spec", new.get("spec"), "field is immutable")]
