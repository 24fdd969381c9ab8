"""Rules of ResourceQuota, in the words of Kubernetes 1.37."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.core.resources import well_formed
from kohort.api.errors import FieldError, invalid, required
from kohort.api.rules import same
from kohort.apimachinery.quantity import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kohort.api.kind import Context, Object

_COUNTED: Final = frozenset(
    {
        "configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets",
        "services", "services.loadbalancers", "services.nodeports",
    }
)  # fmt: skip
_COMPUTE: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "pods"})
_STANDARD: Final = _COUNTED | _COMPUTE | {
    "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.storage",
}  # fmt: skip
_POD_SCOPES: Final = (
    "Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity",
)  # fmt: skip
_CLAIMS: Final = frozenset({"persistentvolumeclaims", "requests.storage"})
_FIT: Final = dict.fromkeys((*_POD_SCOPES, "PriorityClass"), _COMPUTE) | {
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": _CLAIMS,
}
_OPPOSITES: Final = ({"Terminating", "NotTerminating"}, {"BestEffort", "NotBestEffort"})
_EXPRESSIONS: Final = "spec.scopeSelector.matchExpressions"
_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def quota(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    hard = spec.get("hard") or {}
    found = [error for name, value in hard.items() for error in _entry(name, value)]
    scopes = spec.get("scopes") or []
    found += _scopes(scopes, hard, "spec.scopes", scopes)
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    for one in expressions:
        found += _expression(one)
    named = [one.get("scopeName") for one in expressions if one.get("scopeName") in _FIT]
    return [*found, *_scopes(named, hard, "spec.scopeSelector", spec.get("scopeSelector"))]


def quota_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    scopes = (new.get("spec") or {}).get("scopes") or []
    changed = not same(sorted(scopes), sorted((old.get("spec") or {}).get("scopes") or []))
    return [*quota(new, ctx), *([invalid("spec.scopes", scopes, "field is immutable")] if changed else [])]


def _entry(name: str, value: Any) -> Iterator[FieldError]:
    path = f"spec.hard[{name}]"
    if "/" not in name and name not in _STANDARD and "hugepages-" not in name:
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    if not well_formed(value):
        yield invalid(path, value, "must be a quantity")
    elif parse(value).value < 0:
        yield invalid(path, str(value), "must be greater than or equal to 0")
    elif (name in _COUNTED or name.startswith("count/")) and not parse(value).whole:
        yield invalid(path, str(value), "must be an integer")


def _scopes(scopes: Sequence[Any], hard: Object, path: str, shown: Any) -> Iterator[FieldError]:
    plain = {name for name in hard if "/" not in name}
    unfit = {scope for scope, names in _FIT.items() if not plain <= names}
    for scope in scopes:
        if scope not in _FIT:
            yield invalid(path, shown, "unsupported scope")
        elif scope in unfit:
            yield invalid(path, shown, "unsupported scope applied to resource")
    if any(pair <= set(map(str, scopes)) for pair in _OPPOSITES):
        yield invalid(path, shown, "conflicting scopes")


def _expression(one: dict[str, Any]) -> Iterator[FieldError]:
    scope, operator, values = one.get("scopeName"), one.get("operator"), one.get("values") or []
    if scope not in _FIT:
        yield invalid(f"{_EXPRESSIONS}.scopeName", scope, "unsupported scope")
    if scope in _POD_SCOPES and operator != "Exists":
        yield invalid(f"{_EXPRESSIONS}.operator", operator, _EXISTS)
    elif operator in {"In", "NotIn"}:
        if not values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{_EXPRESSIONS}.values", text)
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(f"{_EXPRESSIONS}.values", values, text)
    else:
        yield invalid(f"{_EXPRESSIONS}.operator", operator, "not a valid selector operator")
