"""Rules of the other kinds: nodes, budgets, leases, events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, forbidden, invalid, not_supported, required
from kohort.api.rules import same
from kohort.apimachinery.intstr import PERCENT, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_LIMIT_TYPES: Final = {"Container", "Pod", "PersistentVolumeClaim"}


def node_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    found = []
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        found.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    if before.get("podCIDR") and not same(spec.get("podCIDRs"), before.get("podCIDRs")):
        found.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    for index, taint in enumerate(spec.get("taints") or []):
        path = f"spec.taints[{index}]"
        key = str(taint.get("key") or "")
        found += [invalid(f"{path}.key", key, text) for text in formats.problems(formats.label_key, key)]
        if taint.get("effect") not in {"NoSchedule", "PreferNoSchedule", "NoExecute"}:
            accepted = ("NoExecute", "NoSchedule", "PreferNoSchedule")
            found.append(not_supported(f"{path}.effect", taint.get("effect"), accepted))
    return found


def event(obj: Object, _: Context) -> list[FieldError]:
    """Of the older form; its namespace is that of the object, or default for objects without one."""
    involved = (obj.get("involvedObject") or {}).get("namespace") or ""
    own = obj["metadata"].get("namespace") or ""
    if not involved and own not in {"", "default", "kube-system"}:
        return [invalid("involvedObject.namespace", involved, "does not match event.namespace")]
    if involved and involved != own:
        return [invalid("involvedObject.namespace", involved, "does not match event.namespace")]
    return []


def limit_range(obj: Object, _: Context) -> list[FieldError]:
    seen: set[Any] = set()
    found = []
    for index, limit in enumerate((obj.get("spec") or {}).get("limits") or []):
        path, kind = f"spec.limits[{index}]", limit.get("type")
        if kind not in _LIMIT_TYPES and "/" not in str(kind):
            found.append(invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified"))
        if kind in seen:
            found.append(invalid(f"{path}.type", kind, "is given twice"))
        seen.add(kind)
        if kind == "Pod":
            given = [member for member in ("default", "defaultRequest") if limit.get(member)]
            found += [forbidden(f"{path}.{member}", "may not be specified when `type` is 'Pod'") for member in given]
    return found


def disruption_budget(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    found = []
    if least is not None and most is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        found.append(invalid("spec", {"minAvailable": least, "maxUnavailable": most}, text))
    for member, value in (("minAvailable", least), ("maxUnavailable", most)):
        found += _share(f"spec.{member}", value)
    return found


def _share(path: str, value: Any) -> Iterator[FieldError]:
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")
    elif isinstance(value, str) and not PERCENT.fullmatch(value):
        yield invalid(path, value, "a valid percent string must be a numeric string followed by an ending '%'")
    elif isinstance(value, str) and percent(value) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def autoscaler(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if isinstance(least, int) and least < 1:
        found.append(invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        found.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
    elif isinstance(least, int) and most < least:
        found.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target = spec.get("scaleTargetRef") or {}
    return [*found, *(required(f"spec.scaleTargetRef.{name}") for name in ("kind", "name") if not target.get(name))]


def lease(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = []
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if isinstance(seconds, int) and seconds <= 0:
        found.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if isinstance(transitions, int) and transitions < 0:
        found.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return found


def runtime_class(obj: Object, _: Context) -> list[FieldError]:
    handler = str(obj.get("handler") or "")
    return [invalid("handler", handler, text) for text in formats.problems(formats.label, handler)]


def runtime_class_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    if new.get("handler") != old.get("handler"):
        return [invalid("handler", new.get("handler"), "field is immutable")]
    return runtime_class(new, ctx)


def trust_bundle(obj: Object, _: Context) -> list[FieldError]:
    """One that is linked to a signer has the signer's name in its own."""
    name, spec = str(obj["metadata"].get("name") or ""), obj.get("spec") or {}
    signer, found = str(spec.get("signerName") or ""), []
    prefix = signer.replace("/", ":", 1) + ":"
    if signer and not name.startswith(prefix):
        text = f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        found.append(invalid("metadata.name", name, text))
    elif not signer and ":" in name:
        text = 'ClusterTrustBundle without signer name must not have ":" in its name'
        found.append(invalid("metadata.name", name, text))
    else:
        own = name.removeprefix(prefix) if signer else name
        found += [invalid("metadata.name", name, text) for text in formats.problems(formats.subdomain, own)]
    if signer and "/" not in signer:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        found.append(invalid("spec.signerName", signer, text))
    if "-----BEGIN CERTIFICATE-----" not in str(spec.get("trustBundle") or ""):
        text = "at least one trust anchor must be provided"
        found.append(invalid("spec.trustBundle", "<value omitted>", text))
    return found
