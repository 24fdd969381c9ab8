"""Which volumes a claim may have, as far as no node is concerned; for the scheduler and the controller of volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kohort.api.core.storageclass import CLASS
from kohort.apimachinery.labels import matches
from kohort.apimachinery.quantity import parse

Json = Mapping[str, Any]
_FREE: Final = frozenset({"", "Pending", "Available"})


def storage_class_of(obj: Json) -> str:
    """Of a claim or a volume; empty: none."""
    old = (obj["metadata"].get("annotations") or {}).get(CLASS)
    return str(old if old is not None else _spec(obj).get("storageClassName") or "")


def asked(claim: Json) -> int:
    """Bytes."""
    wanted = (_spec(claim).get("resources") or {}).get("requests") or {}
    return parse(wanted.get("storage") or "0").ceil()


def capacity(volume: Json) -> int:
    """Bytes."""
    return parse((_spec(volume).get("capacity") or {}).get("storage") or "0").ceil()


def fits(key: str, claim: Json, volume: Json) -> bool:
    """Whether a volume may be the claim's (`key`: its namespace/name): one that is meant for it, or a free one."""
    meta, reference = volume["metadata"], _spec(volume).get("claimRef")
    if meta.get("deletionTimestamp") is not None:
        return False
    if reference:
        same = f"{reference.get('namespace')}/{reference.get('name')}" == key
        return same and reference.get("uid") in {None, "", claim["metadata"].get("uid")}
    selector = _spec(claim).get("selector")
    return (
        (volume.get("status") or {}).get("phase", "") in _FREE
        and not mismatch(claim, volume)
        and (not selector or matches(selector, meta.get("labels") or {}))
    )


def mismatch(claim: Json, volume: Json) -> str:
    """Why a volume that the claim names cannot be used for it; empty: it can."""
    wanted, spec = _spec(claim), _spec(volume)
    if capacity(volume) < asked(claim):
        return "requested PV is too small"
    if storage_class_of(volume) != storage_class_of(claim):
        return "storageClassName does not match"
    if (spec.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
        return "incompatible volumeMode"
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return "incompatible accessMode"
    return ""


def _spec(obj: Json) -> Mapping[str, Any]:
    return obj.get("spec") or {}
