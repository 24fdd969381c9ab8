"""Expressions of a ValidatingAdmissionPolicy against the schemas of what it matches: warnings for its status.

They change nothing of what the policy does. Kinds are found from rules without wildcards, at most ten.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kohort.api import definitions
from kohort.cel import declare
from kohort.cel.types import DYN, Type
from kohort.server.admission.policies.environment import Environment

if TYPE_CHECKING:
    from kohort.server.auth.lister import Lister
    from kohort.server.resources import Resource, Resources

_MOST_KINDS: Final = 10
_ANY: Final = {"x-kubernetes-int-or-string": True}
_OPEN: Final = (
    "resource.Quantity",
    "intstr.IntOrString",
    "runtime.RawExtension",
    "FieldsV1",
    "JSON",
    "JSONSchemaProps",
)
_COMPILATION: Final = "compilation failed: "


class TypeChecker:
    def __init__(self, lister: Lister, resources: Resources, minor: str) -> None:
        self._lister, self._resources, self._minor = lister, resources, minor

    def warnings(self, spec: Mapping[str, Any]) -> list[dict[str, str]]:
        """ExpressionWarnings of a policy's spec."""
        kinds = [(one, self._type(one)) for one in self._matched(spec)]
        found: list[dict[str, str]] = []
        for place, rule in enumerate(spec.get("validations") or ()):
            for member in ("expression", "messageExpression"):
                text = rule.get(member)
                wrong = [self._checked(spec, text, *kind) for kind in kinds] if text else []
                told = "\n".join(one for one in wrong if one)
                if told:
                    found.append({"fieldRef": f"spec.validations[{place}].{member}", "warning": told})
        return found

    def _checked(self, spec: Mapping[str, Any], text: str, resource: Resource, kind: Type) -> str:
        params = spec.get("paramKind")
        environment = Environment(params is not None, kind, self._params(params), composed=True)
        for one in spec.get("variables") or ():
            environment.declare(one["name"], one["expression"])
        wrong = environment.compiled(text).wrong
        shown = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        for name in ("Timestamp", "Duration"):  # types of a schema are called otherwise than those of the language
            wrong = wrong.replace(f"google.protobuf.{name}", name.lower())
        return f"{shown}: {wrong.removeprefix(_COMPILATION)}\n" if wrong else ""

    def _matched(self, spec: Mapping[str, Any]) -> list[Resource]:
        found: dict[tuple[str, str, str], Resource] = {}
        for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
            groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
            if any("*" in one for one in (*groups, *versions)):
                continue
            plurals = [one for one in rule.get("resources") or () if not set(one) & {"*", "/"}]
            for one in self._resources.every():
                if one.group in groups and one.version in versions and one.plural in plurals:
                    found[one.group, one.version, one.kind] = one
        return [found[key] for key in sorted(found)][:_MOST_KINDS]

    def _params(self, kind: Mapping[str, Any] | None) -> Type:
        if kind is None:
            return DYN
        wanted = (kind.get("apiVersion"), kind.get("kind"))
        one = next((one for one in self._resources.every() if (one.api_version, one.kind) == wanted), None)
        return DYN if one is None else self._type(one)

    def _type(self, resource: Resource) -> Type:
        if resource.native:
            name = definitions.of_kind(self._minor, resource.group, resource.version, resource.kind)
            return DYN if name is None else _native(self._minor, name)
        schema = self._custom(resource)
        if schema is None:
            return DYN
        head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _metadata(self._minor)}
        whole = {**schema, "type": "object", "properties": {**(schema.get("properties") or {}), **head}}
        return declare.declared(whole, path=resource.kind) or DYN

    def _custom(self, resource: Resource) -> Mapping[str, Any] | None:
        name = f"{resource.plural}.{resource.group}"
        definition = self._lister.get("apiextensions.k8s.io", "customresourcedefinitions", "", name) or {}
        for version in (definition.get("spec") or {}).get("versions") or ():
            if version.get("name") == resource.version:
                found: Mapping[str, Any] | None = (version.get("schema") or {}).get("openAPIV3Schema")
                return found
        return None


@lru_cache(maxsize=64)
def _native(minor: str, name: str) -> Type:
    return declare.declared(_written(minor, name, ()), path=name.rpartition(".")[2]) or DYN


@lru_cache(maxsize=4)
def _metadata(minor: str) -> Mapping[str, Any]:
    return _written(minor, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", ())


def _written(minor: str, name: str, above: tuple[str, ...]) -> Mapping[str, Any]:
    """A definition without references. What is within itself, or is JSON of any shape, has no type."""
    if name in above or name.endswith(_OPEN):
        return _ANY
    return _structural(minor, definitions.definition(minor, name), (*above, name))


def _structural(minor: str, schema: Mapping[str, Any], above: tuple[str, ...]) -> Mapping[str, Any]:
    name = definitions.target(dict(schema))
    if name is not None:
        return _written(minor, name, above)
    found = dict(schema)
    if "properties" in schema:
        found["properties"] = {one: _structural(minor, inner, above) for one, inner in schema["properties"].items()}
    for member in ("items", "additionalProperties"):
        if isinstance(schema.get(member), Mapping):
            found[member] = _structural(minor, schema[member], above)
    return found if found.get("type") else _ANY
