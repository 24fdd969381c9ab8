"""Types of Kubernetes inside the schema of a CRD: written out from the shipped definitions, as CRDs know no `$ref`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from kohort.api import definitions
from kohort.api.copying import copied
from kohort.api.releases import NEWEST

Schema = dict[str, Any]

QUANTITY: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_RUNTIME: Final = "io.k8s.apimachinery.pkg."


def anything() -> Schema:
    return {"x-kubernetes-preserve-unknown-fields": True}


def any_object() -> Schema:
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def int_or_string() -> Schema:
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def _quantity() -> Schema:
    return {**int_or_string(), "pattern": QUANTITY}


def _strings() -> Schema:
    return {"type": "object", "additionalProperties": {"type": "string"}}


def embedded_meta() -> Schema:
    """The metadata of a template. What is not named here, a server would prune."""
    properties = {
        "annotations": _strings(),
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "generateName": {"type": "string"},
        "labels": _strings(),
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    }
    return {"type": "object", "properties": properties}


# Types whose JSON is not what their definition says, or says too little of.
_SPECIAL: Final[dict[str, Callable[[], Schema]]] = {
    f"{_META}ObjectMeta": embedded_meta,
    f"{_META}FieldsV1": any_object,
    f"{_META}Patch": any_object,
    f"{_RUNTIME}runtime.RawExtension": any_object,
    f"{_RUNTIME}util.intstr.IntOrString": int_or_string,
    f"{_RUNTIME}api.resource.Quantity": _quantity,
}
_TEXT: Final[Schema] = {"type": "string"}
# What only an older minor has. One definition serves all minors, and a template must reach their pods whole.
_OLDER: Final[dict[str, dict[str, Schema]]] = {
    "io.k8s.api.core.v1.PodSpec": {
        "workloadRef": {
            "type": "object",
            "properties": {"name": _TEXT, "podGroup": _TEXT, "podGroupReplicaKey": _TEXT},
            "required": ["name", "podGroup"],
        }
    }
}
# A key of a list must be required or have a default; this one has a default in Kubernetes that the document lacks.
_KEY_DEFAULTS: Final = {"protocol": "TCP"}
# As upstream's definitions have it: keys of lists of such references.
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {"io.k8s.api.core.v1.LocalObjectReference": {"name": ""}}


def expanded(definition: str) -> Schema:
    """A definition of the newest minor, written out. Yours to change."""
    return copied(_expanded(definition))


@cache
def _expanded(definition: str) -> Schema:
    return _named(definition, ())


def _named(name: str, above: tuple[str, ...]) -> Schema:
    special = _SPECIAL.get(name)
    if special is not None:
        return special()
    if name in above:  # a type within itself: no finite schema
        return any_object()
    found = _structural(definitions.definition(NEWEST, name), (*above, name))
    found.get("properties", {}).update(_OLDER.get(name, {}))
    for member, value in _DEFAULTS.get(name, {}).items():
        found["properties"][member]["default"] = value
    return found


def _structural(schema: Schema, above: tuple[str, ...]) -> Schema:
    name = definitions.target(schema)
    if name is not None:
        return _named(name, above)
    kind = schema.get("type")
    if kind is None:
        return anything()
    if kind == "array":
        return _list(schema, above)
    if kind == "object":
        return _object(schema, above)
    return {"type": kind} | ({"format": schema["format"]} if "format" in schema else {})


def _object(schema: Schema, above: tuple[str, ...]) -> Schema:
    found: Schema = {"type": "object"}
    if "properties" in schema:
        found["properties"] = {name: _structural(item, above) for name, item in schema["properties"].items()}
    elif isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = _structural(schema["additionalProperties"], above)
    for member in ("required", "x-kubernetes-map-type"):
        if member in schema:
            found[member] = copied(schema[member])
    return found


def _list(schema: Schema, above: tuple[str, ...]) -> Schema:
    items = _structural(schema["items"], above)
    found: Schema = {"type": "array", "items": items}
    sort, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    if sort == "map" and _keyed(items, keys):
        found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    elif sort in {"atomic", "set"}:
        found["x-kubernetes-list-type"] = sort
    return found


def _keyed(items: Schema, keys: list[str]) -> bool:
    """Whether all keys are always there, which a CRD demands; known defaults are filled in."""
    properties, always = items.get("properties") or {}, items.get("required") or []
    missing = [key for key in keys if key not in always and "default" not in properties[key]]
    if any(key not in _KEY_DEFAULTS for key in missing):
        return False
    for key in missing:
        properties[key]["default"] = _KEY_DEFAULTS[key]
    return True
