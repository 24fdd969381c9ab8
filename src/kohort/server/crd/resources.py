"""A version of a definition as a Resource, so that custom resources take the way of all others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kohort.api import registry
from kohort.server import jsonpath, openapi_descriptions, selectable_fields
from kohort.server.crd.definition import spec_of, versions
from kohort.server.resources import Resource, Subresource, WebhookConversion, unchanged

if TYPE_CHECKING:
    from kohort.api.apply import Structure
    from kohort.api.kind import Kind, Object
    from kohort.server.crd.shipped import Shipped
    from kohort.server.selectors import Getter

_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_ENDING: Final = tuple(verb for verb in _VERBS if verb != "create")  # finalizers must still be removed
_LIST_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"


def resources_of(crd: Object, shipped: Shipped | None = None, *, own_rules: bool = True) -> list[Resource]:
    """The served versions, the one that clients should prefer first.

    `shipped`: the definition is this one of ours, letter by letter. Then `crd` may lack its schemas, and our rules,
    which say more than a schema can, are loaded when an object of the kind is first looked at. `own_rules`: they are
    also used for a definition of somebody else with the same schema.
    """
    served = [one for one in versions(crd) if one.get("served")]
    found = [_resource(crd, one, shipped, own_rules) for one in sorted(served, key=lambda one: priority(one["name"]))]
    return _converting(crd, found, shipped, own_rules)


def _converting(crd: Object, found: list[Resource], shipped: Shipped | None, own_rules: bool) -> list[Resource]:
    """With a webhook for those that are not the stored one, if the definition has one."""
    given = spec_of(crd).get("conversion") or {}
    stored = next((one for one in versions(crd) if one.get("storage")), None)
    if given.get("strategy") != "Webhook" or stored is None or shipped is not None:
        return found
    hub = next((one for one in found if one.version == stored["name"]), None)
    if hub is None:
        hub = _resource(crd, stored, shipped, own_rules)
    mark = str(crd["metadata"].get("uid")) + "/" + str(crd["metadata"].get("generation"))
    conversion = WebhookConversion(hub, given.get("webhook") or {}, mark)
    return [one if one is hub else replace(one, conversion=conversion) for one in found]


def _resource(crd: Object, version: Mapping[str, Any], shipped: Shipped | None, own_rules: bool) -> Resource:
    spec, name = spec_of(crd), version["name"]
    names = (crd.get("status") or {}).get("acceptedNames") or spec.get("names") or {}
    group, plural, kind, namespaced = spec["group"], names["plural"], names["kind"], spec.get("scope") == "Namespaced"
    selectable: dict[str, Getter] = {
        one["jsonPath"].removeprefix("."): _getter(one["jsonPath"]) for one in version.get("selectableFields") or ()
    }
    make_rules, make_structure, read = (
        _from_schema(crd, version, own_rules) if shipped is None else _ours(shipped, group, name, kind)
    )
    return Resource(
        group=group,
        version=name,
        plural=plural,
        kind=kind,
        make_rules=make_rules,
        deprecation=_deprecation(group, version, kind),
        singular=names.get("singular") or kind.lower(),
        namespaced=namespaced,
        native=False,
        verbs=_ENDING if (crd.get("metadata") or {}).get("deletionTimestamp") else _VERBS,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=_subresources(version, kind),
        table=f"{group}/{plural}",
        fields={**selectable_fields.of(group, plural, namespaced), **selectable},
        make_structure=make_structure,
        read=read,
    )


def _deprecation(group: str, version: Mapping[str, Any], kind: str) -> str:
    if not version.get("deprecated"):
        return ""
    return str(version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated")


def _subresources(version: Mapping[str, Any], kind: str) -> dict[str, Subresource]:
    given, found = version.get("subresources") or {}, {}
    if given.get("status") is not None:
        found["status"] = Subresource("status", kind)
    if given.get("scale"):
        found["scale"] = Subresource("scale", "Scale", "autoscaling", "v1")
    return found


_Parts = tuple["Callable[[], Kind]", "Callable[[], Structure | None]", "Callable[[Object], Object]"]


def _ours(shipped: Shipped, group: str, version: str, kind: str) -> _Parts:
    return partial(_own, group, version, kind), partial(_shipped, shipped, version), unchanged


def _from_schema(crd: Object, version: Mapping[str, Any], own_rules: bool) -> _Parts:
    from kohort.server.crd import custom_kind

    whole = _schema(version)
    rules = custom_kind.kind_of(crd, version, own_rules=own_rules)
    return lambda: rules, partial(_structure, whole), custom_kind.default_on_read(rules, whole) or unchanged


def _own(group: str, version: str, kind: str) -> Kind:
    found = registry.find(f"{group}/{version}", kind)
    if found is None:
        raise LookupError(f"{kind}.{version}.{group}: shipped as a definition, but not a kind of ours")
    return found


def _structure(whole: Mapping[str, Any]) -> Structure:
    from kohort.api import apply

    return apply.custom(whole)


def _shipped(shipped: Shipped, version: str) -> Structure:
    return _structure(shipped.schema(version))


def _schema(version: Mapping[str, Any]) -> Mapping[str, Any]:
    whole: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return whole


def _getter(path: str) -> Getter:
    def get(obj: Object) -> str:
        value = jsonpath.first(obj, path)
        if isinstance(value, bool):
            return str(value).lower()
        return "" if value is None else str(value)

    return get


def priority(version: str) -> tuple[int, int, int, str]:
    """v2 before v1 before v1beta2 before v1beta1 before v1alpha1; anything else last, by the alphabet."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return 3, 0, 0, version
    rank = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return rank, -int(match[1]), -int(match[3] or 0), version


# ---- documents


def openapi(crd: Object) -> dict[str, dict[str, Any]]:
    """Definitions for the server's OpenAPI document, by name."""
    found: dict[str, dict[str, Any]] = {}
    spec = spec_of(crd)
    names = (crd.get("status") or {}).get("acceptedNames") or spec.get("names") or {}
    for version in sorted(versions(crd), key=lambda one: priority(one["name"])):
        if not version.get("served"):
            continue
        whole = _schema(version)
        identity = {"group": spec["group"], "kind": names["kind"], "version": version["name"]}
        name = ".".join([*reversed(spec["group"].split(".")), version["name"], names["kind"]])
        head = {
            "apiVersion": {"type": "string", "description": openapi_descriptions.HEAD["apiVersion"]},
            "kind": {"type": "string", "description": openapi_descriptions.HEAD["kind"]},
            "metadata": {
                "$ref": f"#/definitions/{openapi_descriptions.OBJECT_META}",
                "description": openapi_descriptions.HEAD["metadata"],
            },
        }
        found[name] = {
            **whole,
            "type": "object",
            "properties": {**(whole.get("properties") or {}), **head},
            "x-kubernetes-group-version-kind": [identity],
        }
        found[f"{name}List"] = {
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"$ref": f"#/definitions/{_LIST_META}"},
                "items": {"type": "array", "items": {"$ref": f"#/definitions/{name}"}},
            },
            "x-kubernetes-group-version-kind": [{**identity, "kind": f"{names['kind']}List"}],
        }
    return found


def with_rules(resource: Resource, **rules_: Any) -> Resource:
    """The resource with other functions in its kind."""
    return replace(resource, make_rules=lambda: replace(resource.rules, **rules_))
