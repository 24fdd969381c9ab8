"""Fields that an endpoint does not write: whoever sends them there does not come to own them.

The main endpoint of a kind with a status does not write the status; the status endpoint does not write the rest.
Upstream says it kind by kind; this is that list, for kinds of Kubernetes that differ from the rule.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from kohort.api.apply import fields as sets
from kohort.api.apply.fields import Fields, Path

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
