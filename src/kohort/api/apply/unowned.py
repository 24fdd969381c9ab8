"""What nobody comes to own by writing it: fields that an endpoint does not write, and members that are always there.

The main endpoint of a kind with a status does not write the status; the status endpoint does not write the rest.
Upstream says it kind by kind; this is that list, for kinds of Kubernetes that differ from the rule.
In Go some members are always there (`spec: {}`, `containers: null`): `zero` is the object of a kind before anything is
written into it, what the types of Kubernetes 1.35 to 1.37 marshal to when empty.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from kohort.api.apply import fields as sets
from kohort.api.apply.fields import Fields, Path
from kohort.api.kind import Object

_STATUS: Final[Path] = ("f:status",)
_SPEC: Final[Path] = ("f:spec",)
_META: Final[Path] = ("f:metadata",)
_STATUS_ENDPOINT: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    ("", "Pod"): (_SPEC, (*_META, "f:deletionTimestamp"), (*_META, "f:ownerReferences")),
    ("apps", "Deployment"): (_SPEC, (*_META, "f:labels")),
}
# Their status endpoints write neither spec nor metadata; those of older kinds of Kubernetes do write metadata.
_STRICT_GROUPS: Final = frozenset({"scheduling.k8s.io", "resource.k8s.io"})
_STRICT_KINDS: Final = frozenset({"PodCertificateRequest", "ServiceCIDR"})


@cache
def reset_fields(group: str, kind: str, subresource: str = "", *, status: bool = True, custom: bool = False) -> Fields:
    """`status`: the kind has a status endpoint; `custom`: it comes from a CRD."""
    if not status:
        return {}
    if subresource in {"", "finalize", "ephemeralcontainers", "resize"}:
        return sets.of(_STATUS)
    if subresource != "status":
        return {}
    if (group, kind) in _STATUS_ENDPOINT:
        return sets.of(*_STATUS_ENDPOINT[group, kind])
    if custom or group in _STRICT_GROUPS or kind in _STRICT_KINDS:
        return sets.of(_SPEC, _META)
    return sets.of(_SPEC)


@cache
def _zeroes() -> dict[str, Any]:
    loaded: dict[str, Any] = msgspec.json.decode(files("kohort.api.apply").joinpath("zero.json").read_bytes())
    return loaded


def zero(api_version: str, kind: str) -> Object:
    """Not yours to change. Kinds of CRDs have no members that are always there."""
    found: Object = _zeroes().get(f"{api_version} {kind}", {})
    return found
