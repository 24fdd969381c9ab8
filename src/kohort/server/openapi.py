"""OpenAPI v2 and v3, from the shipped definitions and from what is served now.

v2 is the whole document of the release, cut to the served groups, with the schemas of CRDs added. v3 has a document
for each group version: paths are written anew from the resources, with the query parameters that kubectl looks for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kohort.api import definitions
from kohort.api.descriptions import described, of_definition
from kohort.server import openapi_descriptions, openapi_paths
from kohort.server.openapi_paths import group_version_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kohort.server.resources import Resource, Resources

Document = dict[str, Any]

_V2: Final = "#/definitions/"
_V3: Final = "#/components/schemas/"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_JUNCTORS: Final = ("allOf", "anyOf", "not", "oneOf")
_PATHS_IN: Final = {"name", "namespace", "path", "logpath"}
_ROOTS: Final = ("", "api", "apis", "version")


# ---- v2


@cache
def _definitions(minor: str) -> Document:
    """With words about the members; a reference says them beside it, as real servers do."""
    every = definitions.document(minor)["definitions"]
    spoken = {name: described(one, words) for name, one in every.items() if (words := of_definition(name))}
    return {
        **every,
        **spoken,
        openapi_descriptions.OBJECT_META: openapi_descriptions.described(every[openapi_descriptions.OBJECT_META]),
    }


def v2(minor: str, resources: Resources, added: dict[str, Document] | None = None) -> Document:
    """`added`: definitions of CRDs, by name."""
    document = definitions.document(minor)
    kept = {group_version_path(one.group, one.version) for one in resources.every()}
    paths = {path: entry for path, entry in document["paths"].items() if _served(path, kept)}
    return {
        "swagger": "2.0",
        "info": document["info"],
        "paths": paths,
        "definitions": {**_definitions(minor), **{name: _whole_v2(one) for name, one in (added or {}).items()}},
        "parameters": _parameters(paths),
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    }


def _whole_v2(schema: Document) -> Document:
    """Of a custom resource. Where anything goes, no member may be named: kubectl would refuse the others."""
    if schema.get(_PRESERVE):
        identity = schema["x-kubernetes-group-version-kind"]
        return {"type": "object", "x-kubernetes-group-version-kind": identity}
    return _to_v2(schema)


def _to_v2(schema: Document) -> Document:
    """Without what version 2 does not have, and what kubectl does not understand there."""
    found = {key: item for key, item in schema.items() if key not in _JUNCTORS}
    properties, extra = found.get("properties") or {}, found.get("additionalProperties")
    dropped = {name for name, one in properties.items() if one.get("nullable")}
    if isinstance(extra, dict) and extra.get("nullable"):
        found.pop("required", None)
    elif dropped and "required" in found:
        found["required"] = [name for name in found["required"] if name not in dropped]
    if found.get("nullable") or found.get(_PRESERVE):
        gone = {"items", "properties"}
        if found.pop("nullable", False) or found.get("type") == "object":
            gone.add("type")
        found = {key: item for key, item in found.items() if key not in gone}
    if found.get("type") == "array" and "items" not in found:
        del found["type"]
    if "properties" in found:
        found["properties"] = {name: _to_v2(one) for name, one in properties.items()}
    for member in ("items", "additionalProperties"):
        if isinstance(found.get(member), dict):
            found[member] = _to_v2(found[member])
    return found


def _served(path: str, kept: set[str]) -> bool:
    parts = path.split("/")
    deep = (parts[1] == "apis" and len(parts) > 4) or (parts[1] == "api" and len(parts) > 3)
    return not deep or any(path.startswith(base) for base in kept)


def _parameters(paths: Document) -> Document:
    """The shared parameters that paths refer to: the data has their names only, and the names say it all."""
    found: Document = {}
    for reference in sorted(set(_references(paths))):
        name = reference.rpartition("/")[2].rpartition("-")[0].rstrip("-") or reference
        name = reference.rpartition("/")[2].split("-")[0]
        if name == "body":
            found[reference.rpartition("/")[2]] = {"in": "body", "name": "body", "schema": {"type": "object"}}
        else:
            where = "path" if name in _PATHS_IN else "query"
            one: Document = {"in": where, "name": name, "type": "string", "uniqueItems": True}
            found[reference.rpartition("/")[2]] = one | ({"required": True} if where == "path" else {})
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/parameters/"):
            yield reference
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


# ---- v3


def v3_index(resources: Resources, hashes: dict[str, str] | None = None) -> Document:
    names = ["api", "apis", "version", *(group_version_path(*pair).strip("/") for pair in _pairs(resources))]
    names += [f"apis/{group}" for group in resources.versions() if group]
    return {
        "paths": {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={(hashes or {}).get(name, resources.changes)}"}
            for name in names
        }
    }


def _pairs(resources: Resources) -> list[tuple[str, str]]:
    return [(group, version) for group, versions in resources.versions().items() for version in versions]


def v3(minor: str, resources: Resources, name: str, added: dict[str, Document] | None = None) -> Document | None:
    """The document of `api/v1`, `apis/batch/v1`, or one of the roots."""
    parts = name.strip("/").split("/")
    group, version = group_of(name), parts[1] if parts[0] == "api" and len(parts) == 2 else ""
    if parts[0] == "apis" and len(parts) == 3:
        version = parts[2]
    found = [one for one in resources.every() if (one.group, one.version) == (group, version)]
    if not found and (len(parts) > 2 or (version and parts[0] == "api")):
        return None
    every = {**_definitions(minor), **(added or {})}
    named = {one: _definition_name(one, added or {}) for one in found}
    paths = {path: entry for one in found for path, entry in openapi_paths.of(minor, one, named[one], every)}
    wanted = [definition for definition in named.values() if definition]
    wanted += [name for one in found for name in openapi_paths.subresource_definitions(minor, one)]
    wanted += [f"{definition}List" for definition in wanted if f"{definition}List" in every]
    schemas = {definition: _to_v3(every[definition]) for definition in _closure(wanted, every)}
    return {
        "openapi": "3.0.0",
        "info": definitions.document(minor)["info"],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    }


def group_of(name: str) -> str:
    """The API group that a document of version 3 is about."""
    parts = name.strip("/").split("/")
    return parts[1] if parts[0] == "apis" and len(parts) == 3 else ""


def _definition_name(one: Resource, added: dict[str, Document]) -> str | None:
    if one.definition is not None:
        return one.definition
    identity = {"group": one.group, "version": one.version, "kind": one.kind}
    return next(
        (name for name, schema in added.items() if identity in schema.get("x-kubernetes-group-version-kind", ())), None
    )


def _closure(wanted: Iterable[str], every: dict[str, Document]) -> list[str]:
    seen: dict[str, None] = {}
    waiting = [name for name in wanted if name in every]
    needed = "io.k8s.apimachinery.pkg.apis.meta.v1."
    waiting += [needed + "DeleteOptions", needed + "Status", needed + "Patch"]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in every:
            continue
        seen[name] = None
        waiting += _targets(every[name])
    return sorted(seen)


def _targets(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        name = definitions.target(value) if isinstance(value.get("$ref"), str) else None
        if name is not None:
            yield name
        for item in value.values():
            yield from _targets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _targets(item)


def _to_v3(value: Any) -> Any:
    """References point elsewhere, and stand in an allOf where something is said beside them."""
    if isinstance(value, list):
        return [_to_v3(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), str):
        reference = {"$ref": value["$ref"].replace(_V2, _V3)}
        rest = {key: _to_v3(item) for key, item in value.items() if key != "$ref"}
        return {**rest, "allOf": [reference]} if rest else reference
    if value.get("format") == "int-or-string":
        return {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}
    return {key: _to_v3(item) for key, item in value.items()}
