"""Rules of roles and bindings, in the order and words of Kubernetes 1.37."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, invalid, not_supported, required
from kohort.api.rules import same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def role(obj: Object, _: Context) -> list[FieldError]:
    return list(_rules(obj.get("rules") or [], namespaced=True))


def role_update(new: Object, _: Object, ctx: Context) -> list[FieldError]:
    return role(new, ctx)


def cluster_role(obj: Object, _: Context) -> list[FieldError]:
    found = list(_rules(obj.get("rules") or [], namespaced=False))
    gathers = obj.get("aggregationRule")
    if gathers is not None and not gathers.get("clusterRoleSelectors"):
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        found.append(required("aggregationRule.clusterRoleSelectors", text))
    return found


def _rules(rules: list[dict[str, Any]], namespaced: bool) -> Iterator[FieldError]:
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"rules[{index}]", namespaced)
    for index, rule in enumerate(rules):
        if not rule.get("verbs"):
            yield required(f"rules[{index}].verbs")


def _rule(rule: dict[str, Any], path: str, namespaced: bool) -> Iterator[FieldError]:
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            yield invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, text)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def binding(obj: Object, _: Context) -> list[FieldError]:
    return list(_binding(obj))


def binding_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    found = list(_binding(new))
    reference = new.get("roleRef") or {}
    if not same(reference, old.get("roleRef")):
        shown = {name: reference.get(key, "") for name, key in _SHOWN}
        found.append(invalid("roleRef", shown, "field is immutable"))
    return found


_SHOWN: Final = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))


def _binding(obj: Object) -> Iterator[FieldError]:
    reference, namespaced = obj.get("roleRef") or {}, obj.get("kind") == "RoleBinding"
    accepted = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    name = str(reference.get("name") or "")
    if reference.get("apiGroup") != _GROUP:
        yield not_supported("roleRef.apiGroup", reference.get("apiGroup"), (_GROUP,))
    if reference.get("kind") not in accepted:
        yield not_supported("roleRef.kind", reference.get("kind"), accepted)
    if name:
        yield from (invalid("roleRef.name", name, text) for text in formats.problems(formats.path_segment, name))
    subjects = obj.get("subjects") or []
    for index, subject in enumerate(subjects):
        yield from _subject(subject, f"subjects[{index}]", namespaced)
    for index, subject in enumerate(subjects):
        if not subject.get("name"):
            yield required(f"subjects[{index}].name")
    if not name:
        yield required("roleRef.name")


def _subject(subject: dict[str, Any], path: str, namespaced: bool) -> Iterator[FieldError]:
    kind, name, group = subject.get("kind"), str(subject.get("name") or ""), subject.get("apiGroup") or ""
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, _SUBJECTS)
    elif kind == "ServiceAccount":
        if name:
            yield from (invalid(f"{path}.name", name, text) for text in formats.problems(formats.subdomain, name))
        if group:
            yield not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):  # in a RoleBinding it is the binding's
            yield required(f"{path}.namespace")
    elif group != _GROUP:
        yield not_supported(f"{path}.apiGroup", group, (_GROUP,))
