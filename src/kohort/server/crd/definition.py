"""The CustomResourceDefinition itself: its defaults and what may be in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, forbidden, invalid, not_supported, required
from kohort.api.kind import Context, Object

if TYPE_CHECKING:
    from kohort.server.resources import Resource

GROUP: Final = "apiextensions.k8s.io"
PLURAL: Final = "customresourcedefinitions"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SCOPES: Final = ("Cluster", "Namespaced")
_APPROVED: Final = (".k8s.io", ".kubernetes.io")
_APPROVAL: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_PROTECTED: Final = f'protected groups must have approval annotation "{_APPROVAL}"'
_ONLY_V1: Final = "spec.conversion.webhook.conversionReviewVersions: this server asks in v1 only"


def spec_of(crd: Object) -> dict[str, Any]:
    spec = crd.get("spec")
    return spec if isinstance(spec, dict) else {}


def versions(crd: Object) -> list[dict[str, Any]]:
    return [one for one in spec_of(crd).get("versions") or [] if isinstance(one, dict)]


def default(crd: Object, _: Context) -> None:
    spec = spec_of(crd)
    names = spec.setdefault("names", {}) if spec else {}
    kind = names.get("kind") or ""
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    if spec:
        spec["conversion"] = spec.get("conversion") or {"strategy": "None"}
    stored = [one["name"] for one in versions(crd) if one.get("storage") and one.get("name")][:1]
    status = crd.get("status")
    if isinstance(status, dict):
        kept = list(status.get("storedVersions") or [])
        status["storedVersions"] = kept + [name for name in stored if name not in kept]
        status.setdefault("conditions", None)
        status.setdefault("acceptedNames", {"plural": "", "kind": ""})


def first_status(crd: Object) -> Object:
    stored = [one["name"] for one in versions(crd) if one.get("storage") and one.get("name")][:1]
    return {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def warn(crd: Object, _: Context) -> list[str]:
    """A webhook that may not understand what it is asked."""
    given = spec_of(crd).get("conversion") or {}
    if given.get("strategy") != "Webhook":
        return []
    return [] if "v1" in ((given.get("webhook") or {}).get("conversionReviewVersions") or ()) else [_ONLY_V1]


# ---- rules


def validate(crd: Object, _: Context) -> list[FieldError]:
    spec, meta = spec_of(crd), crd.get("metadata") or {}
    names = spec.get("names") or {}
    found: list[FieldError] = []
    wanted = f"{names.get('plural') or ''}.{spec.get('group') or ''}"
    if meta.get("name") and meta["name"] != wanted:
        found.append(invalid("metadata.name", meta["name"], 'must be spec.names.plural+"."+spec.group'))
    found += [*_group(spec), *_versions(crd), *_names(names, "spec.names", needed=True)]
    found += [*_approval(crd), *_conversion(spec)]
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(invalid("spec.preserveUnknownFields", True, text))
    return found


@dataclass(frozen=True, slots=True)
class Native:
    """What the server has itself, and a definition may not take the place of: group and version, group and plural."""

    versions: frozenset[tuple[str, str]]
    plurals: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> Native:
        found = [one for one in resources if one.native]
        return cls(frozenset((one.group, one.version) for one in found), frozenset((o.group, o.plural) for o in found))

    def has(self, one: Resource) -> bool:
        return (one.group, one.version) in self.versions or (one.group, one.plural) in self.plurals

    def errors(self, crd: Object) -> list[FieldError]:
        spec = spec_of(crd)
        group, plural = str(spec.get("group") or ""), str((spec.get("names") or {}).get("plural") or "")
        if not group:
            return []  # it is missing, which is said elsewhere; the core group has no name that one could ask for
        if (group, plural) in self.plurals:
            return [forbidden("spec.names.plural", f"{plural}.{group} is served by the API server itself")]
        return [
            forbidden(f"spec.versions[{place}].name", f"{group}/{one.get('name')} is served by the API server itself")
            for place, one in enumerate(versions(crd))
            if (group, one.get("name")) in self.versions
        ]


def validate_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    found = validate(new, ctx)
    spec, before = spec_of(new), spec_of(old)
    names, old_names = spec.get("names") or {}, before.get("names") or {}
    frozen = [("spec.group", spec.get("group"), before.get("group"))]
    frozen.append(("spec.names.plural", names.get("plural"), old_names.get("plural")))
    if is_true(old, "Established"):
        frozen.append(("spec.scope", spec.get("scope"), before.get("scope")))
        frozen.append(("spec.names.kind", names.get("kind"), old_names.get("kind")))
    found += [invalid(path, value, "field is immutable") for path, value, other in frozen if value != other]
    known = {one.get("name") for one in versions(new)}
    for place, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in known:
            until = "until a storage migration ensures no data remains persisted in"
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions {until} {name} and removes {name} from status.storedVersions"
            )
            found.append(invalid(f"status.storedVersions[{place}]", name, text))
    return found


def condition(crd: Object, sort: str) -> dict[str, Any] | None:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == sort), None)


def is_true(crd: Object, sort: str) -> bool:
    return (condition(crd, sort) or {}).get("status") == "True"


def _said(path: str, value: Any, form: formats.Format, lead: str = "") -> Iterator[FieldError]:
    wrong = form(value) if isinstance(value, str) else "must be a string"
    if wrong:
        yield invalid(path, value, f"{lead}{wrong}")


def _group(spec: dict[str, Any]) -> Iterator[FieldError]:
    group, scope = spec.get("group"), spec.get("scope")
    if not group:
        yield required("spec.group")
    elif formats.subdomain(group):
        yield from _said("spec.group", group, formats.subdomain)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    if not scope:
        yield required("spec.scope")
    elif scope not in _SCOPES:
        yield not_supported("spec.scope", scope, _SCOPES)


def _names(names: dict[str, Any], path: str, *, needed: bool) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind") if needed else ():
        if not names.get(name):
            yield required(f"{path}.{name}")
    for name in ("plural", "singular"):
        if names.get(name):
            yield from _said(f"{path}.{name}", names[name], formats.label_1035)
    for name in ("kind", "listKind"):
        word = names.get(name)
        wrong = formats.label_1035(word.lower()) if isinstance(word, str) and word else None
        if wrong:
            yield invalid(f"{path}.{name}", word, f"may have mixed case, but should otherwise match: {wrong}")
    for name in ("shortNames", "categories"):
        for place, word in enumerate(names.get(name) or ()):
            yield from _said(f"{path}.{name}[{place}]", word, formats.label_1035)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")


def _shared(crd: Object, member: str) -> bool:
    """What all versions say alike, upstream validates (and names) as if it stood at the top."""
    said = [one.get(member) for one in versions(crd)]
    return bool(said) and all(one == said[0] for one in said) and said[0] is not None


def _places(crd: Object, member: str, top: str) -> Iterator[tuple[dict[str, Any], Any, str]]:
    """Each version with what it says, and the path; once if all say the same."""
    if _shared(crd, member):
        first = versions(crd)[0]
        yield first, first[member], f"spec.{top}"
        return
    for place, one in enumerate(versions(crd)):
        if one.get(member) is not None:
            yield one, one[member], f"spec.versions[{place}].{member}"


def _schemas(crd: Object) -> Iterator[tuple[dict[str, Any], str]]:
    for _, schema, path in _places(crd, "schema", "validation"):
        whole = schema.get("openAPIV3Schema") if isinstance(schema, dict) else None
        if isinstance(whole, dict):
            yield whole, f"{path}.openAPIV3Schema"


def _versions(crd: Object) -> Iterator[FieldError]:
    from kohort.server.crd import structural

    every = versions(crd)
    for place, one in enumerate(every):
        yield from _said(f"spec.versions[{place}].name", one.get("name") or "", formats.label_1035)
        schema = one.get("schema")
        if not isinstance(schema, dict) or not isinstance(schema.get("openAPIV3Schema"), dict):
            yield required(f"spec.versions[{place}].schema.openAPIV3Schema")
        if one.get("deprecationWarning") is not None and not one.get("deprecated"):
            path = f"spec.versions[{place}].deprecationWarning"
            yield invalid(path, one["deprecationWarning"], "can only be set for deprecated versions")
    names = [one.get("name") for one in every]
    if every:  # upstream keeps the first name in an older place, too, and says so
        yield from _said("spec.version", names[0] or "", formats.label_1035)
    if len(set(names)) != len(names):
        yield invalid("spec.versions", names, "must contain unique version names")
    if sum(one.get("storage") is True for one in every) != 1:
        yield invalid("spec.versions", names, "must have exactly one version marked as storage version")
    if not any(one.get("storage") for one in every):
        yield invalid("status.storedVersions", None, "must have at least one stored version")
    for version, schema, path in _places(crd, "schema", "validation"):
        whole = schema.get("openAPIV3Schema") if isinstance(schema, dict) else None
        if isinstance(whole, dict):
            status = (version.get("subresources") or {}).get("status") is not None
            yield from structural.problems(whole, f"{path}.openAPIV3Schema", status=status)
    for _, subresources, path in _places(crd, "subresources", "subresources"):
        yield from _scale((subresources or {}).get("scale"), f"{path}.scale")
    for _, columns, path in _places(crd, "additionalPrinterColumns", "additionalPrinterColumns"):
        for place, column in enumerate(columns):
            yield from _column(column, f"{path}[{place}]")


def _scale(scale: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(scale, dict):
        return
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        given = scale.get(name)
        if not given:
            yield required(f"{path}.{name}")
        elif not given.startswith("."):
            yield invalid(f"{path}.{name}", given, "must be a simple json path starting with .")
        elif not given.startswith(root):
            yield invalid(f"{path}.{name}", given, f"should be a json path under {root[:-1]}")
    selector = scale.get("labelSelectorPath")
    if selector and not selector.startswith((".spec.", ".status.")):
        text = "should be a json path under either .spec or .status"
        yield invalid(f"{path}.labelSelectorPath", selector, text)


def _column(column: dict[str, Any], path: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    sort, form, where = column.get("type"), column.get("format"), column.get("jsonPath")
    text = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not sort:
        yield required(f"{path}.type", text)
    elif sort not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", sort, text)
    if form and form not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not where:
        yield required(f"{path}.JSONPath")
    elif not where.startswith("."):
        yield invalid(f"{path}.JSONPath", where, "must be a simple json path starting with .")


def _conversion(spec: dict[str, Any]) -> Iterator[FieldError]:
    strategy = (spec.get("conversion") or {}).get("strategy")
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy not in {"None", "Webhook"}:
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif strategy == "Webhook" and not (spec["conversion"].get("webhook") or {}).get("clientConfig"):
        text = "required when strategy is set to Webhook"
        yield required("spec.conversion.webhookClientConfig", text)


def _approval(crd: Object) -> Iterator[FieldError]:
    """Groups of Kubernetes itself need its approval."""
    group = str(spec_of(crd).get("group") or "")
    if not f".{group}".endswith(_APPROVED) or group.endswith(".x-k8s.io"):
        return
    annotations = (crd.get("metadata") or {}).get("annotations") or {}
    given, path = annotations.get(_APPROVAL, ""), f"metadata.annotations[{_APPROVAL}]"
    if not given:
        yield required(path, f"{_PROTECTED}, {_SEE}")
    elif not given.startswith(("http", "unapproved")):
        text = f'{_PROTECTED} with either a URL or a reason starting with "unapproved", {_SEE}'
        yield invalid(path, given, text)
