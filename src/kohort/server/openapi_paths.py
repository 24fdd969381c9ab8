"""The paths of an OpenAPI v3 document: which operations a resource has, with which parameters and media types.

kubectl decides by them: apply sends a strategic merge patch where one is listed among a kind's patches and asks for
field validation where there is such a parameter. Which of a kind's paths it looks at is up to chance, so those of
subresources say the same as those of objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import definitions
from kohort.server import codec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from kohort.server.resources import Resource, Subresource

Document = dict[str, Any]

_SCHEMAS: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_ANSWERS: Final = (codec.JSON, codec.YAML)
_BODIES: Final = ("*/*",)
_CUSTOM_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_PATCHES: Final = (*_CUSTOM_PATCHES, "application/strategic-merge-patch+json")
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_LIST: Final = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES: Final = {"limit": "integer", "timeoutSeconds": "integer", "gracePeriodSeconds": "integer", "watch": "boolean"}
_METHODS: Final = (("get", "get"), ("update", "put"), ("patch", "patch"), ("create", "post"))


def group_version_path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}/" if group else f"/api/{version}/"


def of(minor: str, one: Resource, definition: str | None, every: Collection[str]) -> Iterator[tuple[str, Document]]:
    """`definition`: the name of its schema; `every`: the names of all."""
    base = group_version_path(one.group, one.version)
    spot = f"{base}namespaces/{{namespace}}/{one.plural}" if one.namespaced else f"{base}{one.plural}"
    listed = f"{definition}List" if definition and f"{definition}List" in every else definition
    places = _places(one.namespaced, named=False)
    yield spot, _collection(one, definition, listed) | ({"parameters": places} if places else {})
    if single := _single(one, definition):
        yield f"{spot}/{{name}}", single | {"parameters": _places(one.namespaced, named=True)}
    if one.namespaced and "list" in one.verbs:
        yield f"{base}{one.plural}", {"get": _operation(one, "list", _LIST, listed)}
    for sub in one.subresources.values():
        inner = _subresource(one, sub, _definition(minor, one, sub, definition))
        yield f"{spot}/{{name}}/{sub.name}", inner | {"parameters": _places(one.namespaced, named=True)}


def subresource_definitions(minor: str, one: Resource) -> list[str]:
    """Names of the schemas that only subresources refer to (Scale, Eviction, ...)."""
    found = (_definition(minor, one, sub, None) for sub in one.subresources.values())
    return [name for name in found if name]


def _definition(minor: str, one: Resource, sub: Subresource, own: str | None) -> str | None:
    group, version, kind = _identity(one, sub)
    if (group, version, kind) == (one.group, one.version, one.kind):
        return own
    return definitions.of_kind(minor, group, version, kind)


def _identity(one: Resource, sub: Subresource) -> tuple[str, str, str]:
    """A subresource that names no version has that of its resource."""
    return (sub.group, sub.version, sub.kind) if sub.version else (one.group, one.version, sub.kind)


def _collection(one: Resource, definition: str | None, listed: str | None) -> Document:
    found: Document = {}
    if "list" in one.verbs:
        found["get"] = _operation(one, "list", _LIST, listed)
    if "create" in one.verbs:
        found["post"] = _operation(one, "post", _WRITE, definition, body=definition)
    if "deletecollection" in one.verbs:
        found["delete"] = _operation(
            one, "deletecollection", (*_DELETE, *_LIST), _META + "Status", body=_META + "DeleteOptions"
        )
    return found


def _single(one: Resource, definition: str | None) -> Document:
    found: Document = {}
    if "get" in one.verbs:
        found["get"] = _operation(one, "get", (), definition)
    if "update" in one.verbs:
        found["put"] = _operation(one, "put", _WRITE, definition, body=definition)
    if "patch" in one.verbs:
        found["patch"] = _patch(one, definition)
    if "delete" in one.verbs:
        found["delete"] = _operation(one, "delete", _DELETE, _META + "Status", body=_META + "DeleteOptions")
    return found


def _subresource(one: Resource, sub: Subresource, definition: str | None) -> Document:
    identity = _identity(one, sub) if one.native else None
    found: Document = {}
    for verb, method in _METHODS:
        if verb not in sub.verbs:
            continue
        if verb == "patch":
            found[method] = _patch(one, definition, identity)
        else:
            body = definition if verb in ("update", "create") else None
            query = _WRITE if body else ()
            found[method] = _operation(one, method, query, definition, body=body, identity=identity)
    return found


def _patch(one: Resource, definition: str | None, identity: tuple[str, str, str] | None = None) -> Document:
    kinds = _PATCHES if one.native else _CUSTOM_PATCHES
    query = (*_WRITE, "force")
    return _operation(one, "patch", query, definition, body=_META + "Patch", kinds=kinds, identity=identity)


def _places(namespaced: bool, named: bool) -> list[Document]:
    names = [*(["namespace"] if namespaced else []), *(["name"] if named else [])]
    return [_parameter(name, "path") for name in names]


def _parameter(name: str, where: str) -> Document:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    found: Document = {"name": name, "in": where, "schema": schema}
    return found | ({"required": True} if where == "path" else {})


def _operation(
    one: Resource,
    action: str,
    query: tuple[str, ...],
    answer: str | None,
    *,
    body: str | None = None,
    kinds: tuple[str, ...] = _BODIES,
    identity: tuple[str, str, str] | None = None,
) -> Document:
    """`identity`: the kind that it is about, where that is not the resource's own."""
    group, version, kind = identity or (one.group, one.version, one.kind)
    content = {media: {"schema": {"$ref": _SCHEMAS + answer}} for media in _ANSWERS} if answer else {}
    found: Document = {
        "parameters": [_parameter(name, "query") for name in query],
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }
    if body is not None:
        found["requestBody"] = {"content": {media: {"schema": {"$ref": _SCHEMAS + body}} for media in kinds}}
    return found
