"""Which webhooks a write concerns. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.apimachinery.labels import matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.resources import Resource

GROUP: Final = "admissionregistration.k8s.io"
ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration, with its defaults."""

    configuration: str
    name: str
    spec: Mapping[str, Any]

    @property
    def timeout(self) -> int:
        return int(self.spec.get("timeoutSeconds") or 10)

    @property
    def ignores_failure(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def again(self) -> bool:
        return self.spec.get("reinvocationPolicy") == "IfNeeded"

    @property
    def dry(self) -> bool:
        """Whether it may be asked about what will not happen."""
        return self.spec.get("sideEffects") in {"None", "NoneOnDryRun"}


def hooks(configurations: Iterable[Object]) -> list[Hook]:
    """In the order in which they are called: configurations by name."""
    ordered = sorted(configurations, key=lambda one: str(one["metadata"]["name"]))
    return [
        Hook(str(one["metadata"]["name"]), str(spec.get("name")), spec)
        for one in ordered
        for spec in one.get("webhooks") or ()
    ]


def target(hook: Hook, attrs: AdmissionAttributes, versions: Sequence[Resource]) -> Resource | None:
    """The version of the resource in which the webhook wants to see the object; None if it does not want to.

    `versions`: all versions of the resource. With matchPolicy Equivalent one of them is enough.
    """
    return matched(hook.spec.get("rules") or (), hook.spec.get("matchPolicy") == "Exact", attrs, versions)


def matched(
    rules: Sequence[Mapping[str, Any]], exact: bool, attrs: AdmissionAttributes, versions: Sequence[Resource]
) -> Resource | None:
    """The version of the resource that the rules are about: the request's own, if it is."""
    if any(_rule_fits(rule, attrs, attrs.resource) for rule in rules):
        return attrs.resource
    if exact:
        return None
    others = [one for one in versions if one is not attrs.resource]
    return next((one for rule in rules for one in others if _rule_fits(rule, attrs, one)), None)


def _rule_fits(rule: Mapping[str, Any], attrs: AdmissionAttributes, resource: Resource) -> bool:
    scope, names = rule.get("scope") or ALL, rule.get("resourceNames")
    if names and attrs.name not in names:
        return False
    return (
        _among(attrs.operation, rule.get("operations"))
        and _among(resource.group, rule.get("apiGroups"))
        and _among(resource.version, rule.get("apiVersions"))
        and scope in (ALL, "Namespaced" if resource.namespaced else "Cluster")
        and any(_resource_fits(one, resource.plural, attrs.subresource) for one in rule.get("resources") or ())
    )


def _among(value: str, accepted: Sequence[str] | None) -> bool:
    return value in (accepted or ()) or ALL in (accepted or ())


def _resource_fits(wanted: str, plural: str, subresource: str) -> bool:
    """`pods`, `pods/log`, `pods/*`, `*/log`, `*` (without subresources), `*/*` (with)."""
    resource, _, sub = wanted.partition("/")
    return resource in (ALL, plural) and sub in ((ALL, subresource) if "/" in wanted else (subresource,))


def selected(spec: Mapping[str, Any], attrs: AdmissionAttributes, namespace: Object | None) -> bool:
    """The selectors: labels of the namespace (of a Namespace itself), and of the object as it was or will be."""
    wanted = spec.get("namespaceSelector")
    if wanted and (attrs.resource.namespaced or is_namespace(attrs)):
        holder = (attrs.object or attrs.old) if is_namespace(attrs) else namespace
        if not matches(wanted, _labels(holder)):
            return False
    wanted = spec.get("objectSelector")
    return not wanted or any(matches(wanted, _labels(one)) for one in (attrs.object, attrs.old) if one)


def is_namespace(attrs: AdmissionAttributes) -> bool:
    return (attrs.resource.group, attrs.resource.plural) == ("", "namespaces")


def _labels(obj: Object | None) -> Mapping[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def exempt(attrs: AdmissionAttributes) -> bool:
    """Nobody can lock themselves out by a webhook that refuses its own removal."""
    return attrs.resource.group == GROUP
