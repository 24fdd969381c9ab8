"""Nodes as OpenAPI: each sort of node, the rules as CEL, and types of Kubernetes written out."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api import cel, formats, registry
from kohort.api.definitions import document
from kohort.api.expansion import QUANTITY, expanded
from kohort.api.kind import Kind
from kohort.api.openapi import openapi_definition, structural
from kohort.api.schema import (
    EMPTY,
    Anything,
    Arr,
    Bool,
    Cel,
    Duration,
    Int,
    IntOrStr,
    Map,
    Node,
    Obj,
    Ref,
    Str,
    Time,
    Update,
)

POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
ITEM = Obj(fields={"name": Str(required=True), "fixed": Str(update=Update.FROZEN)})


def kind(node: Node, **more: Any) -> Kind:
    return Kind(
        group="example.org", version="v1", kind="Thing", plural="things", schema=Obj(fields={"x": node}), **more
    )


def written(node: Node) -> dict[str, Any]:
    """The schema of a member."""
    found: dict[str, Any] = structural(kind(node))["properties"]["x"]
    return found


@pytest.mark.parametrize(
    ("node", "schema"),
    [
        (Str(), {"type": "string"}),
        (Str(enum=("a", "b"), default="a"), {"type": "string", "enum": ["a", "b"], "default": "a"}),
        (
            Str(pattern="^a", min_length=1, max_bytes=9),
            {"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 9},
        ),
        (
            Str(format=formats.label),
            {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        ),
        (Int(minimum=1), {"type": "integer", "format": "int32", "minimum": 1}),
        (Int(bits=64, maximum=5), {"type": "integer", "format": "int64", "maximum": 5}),
        (Bool(nullable=True), {"type": "boolean", "nullable": True}),
        (Bool(default=True, gate="SomeGate"), {"type": "boolean"}),
        (IntOrStr(), {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
        (Time(), {"type": "string", "format": "date-time"}),
        (Duration(description="how long"), {"type": "string", "description": "how long"}),
        (Anything(), {"x-kubernetes-preserve-unknown-fields": True}),
        (EMPTY, {"type": "object"}),
        (Obj(preserve_unknown=True), {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Map(value=Int()), {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}}),
        (
            Arr(item=Str(), max_items=3, min_items=1),
            {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 3,
                "minItems": 1,
                "x-kubernetes-list-type": "atomic",
            },
        ),
        (
            Arr(item=Str(), unique=True),
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        ),
        (
            Obj(fields={"a": Str(required=True), "b": Str()}),
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]},
        ),
    ],
)
def test_each_sort_of_node(node: Node, schema: dict[str, Any]) -> None:
    assert written(node) == schema


def test_whole_object_has_the_members_of_every_object() -> None:
    schema = structural(kind(Str(required=True)))
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "x"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["required"] == ["x"]


@pytest.mark.parametrize(
    ("node", "is_map"),
    [
        (Arr(key=("name",), item=ITEM), True),
        (Arr(key=("name",), item=Obj(fields={"name": Str(default="")})), True),
        (Arr(key=("name",), item=Obj(fields={"name": Str()})), False),  # a CRD's key must always be there
        (Arr(key=("name",), item=ITEM, distinct=False), False),  # repeats are reported by a rule of the kind
        (Arr(key=("type",), item=Ref(definition="io.k8s.apimachinery.pkg.apis.meta.v1.Condition")), True),
    ],
)
def test_lists_by_key(node: Arr, is_map: bool) -> None:
    found = written(node)
    assert found.get("x-kubernetes-list-type") == ("map" if is_map else None)
    assert found.get("x-kubernetes-list-map-keys") == (list(node.key) if is_map else None)


def rules_of(schema: dict[str, Any]) -> list[str]:
    return [found["rule"] for found in schema.get("x-kubernetes-validations", [])]


def test_unions_become_rules_and_empty_lists_count_as_unset() -> None:
    fields = {"a": EMPTY, "list": Arr(item=Str())}
    exactly = written(Obj(fields=fields, union=("a", "list")))
    at_most = written(Obj(fields=fields, union=("a", "list"), union_optional=True))
    terms = "(has(self.a) ? 1 : 0) + (has(self.list) && size(self.list) > 0 ? 1 : 0)"
    assert rules_of(exactly) == [f"{terms} == 1"]
    assert rules_of(at_most) == [f"{terms} <= 1"]
    assert exactly["x-kubernetes-validations"][0]["message"] == "must specify exactly one of: a, list"


def test_frozen_members_neither_change_nor_come_nor_go() -> None:
    found = written(Obj(fields={"a": Str(update=Update.FROZEN), "b": Str(update=Update.FROZEN, required=True)}))
    assert rules_of(found) == ["has(self.a) == has(oldSelf.a)"]
    assert rules_of(found["properties"]["a"]) == rules_of(found["properties"]["b"]) == ["self == oldSelf"]


def test_variants_may_change_but_not_come_or_go() -> None:
    found = written(Obj(fields={"a": Obj(update=Update.VARIANT, fields={"n": Int()})}))
    assert rules_of(found) == ["has(self.a) == has(oldSelf.a)"]
    assert rules_of(found["properties"]["a"]) == []


def test_keysets_of_few_items() -> None:
    few = written(Arr(item=ITEM, key=("name",), max_items=8, update=Update.KEYSET))
    assert rules_of(few) == ["self.size() == oldSelf.size() && self.all(x, oldSelf.exists(y, x.name == y.name))"]
    assert rules_of(written(Arr(item=ITEM, key=("name",), max_items=500, update=Update.KEYSET))) == []


@pytest.mark.parametrize(
    ("node", "kept"),
    [
        (Arr(item=ITEM, key=("name",), max_items=8), True),
        (Arr(item=ITEM, key=("name",)), False),  # no bound: the cost would be too high
        (Arr(item=ITEM, key=("name",), max_items=5000), False),
        (Arr(item=ITEM, max_items=8), False),  # no key: the stored item cannot be found
        (Arr(item=ITEM, key=("name",), max_items=8, distinct=False), False),
    ],
)
def test_comparing_rules_stand_only_where_a_server_takes_them(node: Arr, kept: bool) -> None:
    items = written(node)["items"]
    assert bool(rules_of(items)) is bool(rules_of(items["properties"]["fixed"])) is kept


def test_cheap_rules_stand_in_one_list_without_a_bound() -> None:
    ruled = Obj(fields={"a": Str()}, rules=(Cel("has(self.a)", "a is needed"),))
    once = written(Arr(item=ruled))["items"]
    twice = written(Arr(item=Arr(item=ruled)))["items"]["items"]
    assert rules_of(once) == ["has(self.a)"]
    assert rules_of(twice) == []


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("a", "a"),
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("in", "__in__"),
    ],
)
def test_names_in_cel(name: str, seen: str) -> None:
    assert cel.escaped(name) == seen


# ---- types of Kubernetes


def test_pod_template_is_written_out() -> None:
    schema = expanded(POD_TEMPLATE)
    spec = schema["properties"]["spec"]["properties"]
    assert spec["schedulingGroup"]["properties"] == {"podGroupName": {"type": "string"}}
    assert schema["properties"]["spec"]["required"] == ["containers"]
    assert spec["containers"]["x-kubernetes-list-map-keys"] == ["name"]
    limits = spec["containers"]["items"]["properties"]["resources"]["properties"]["limits"]["additionalProperties"]
    assert limits["pattern"] == QUANTITY
    assert limits["x-kubernetes-int-or-string"] is True


def test_metadata_of_a_template_survives_pruning() -> None:
    meta = expanded(POD_TEMPLATE)["properties"]["metadata"]["properties"]
    assert {"name", "labels", "annotations", "finalizers"} <= set(meta)
    assert meta["labels"] == {"type": "object", "additionalProperties": {"type": "string"}}


def test_keys_of_lists_have_a_default_or_are_required() -> None:
    spec = expanded(POD_TEMPLATE)["properties"]["spec"]["properties"]
    ports = spec["containers"]["items"]["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["items"]["properties"]["protocol"]["default"] == "TCP"
    assert spec["imagePullSecrets"]["x-kubernetes-list-map-keys"] == ["name"]
    assert spec["imagePullSecrets"]["items"]["properties"]["name"]["default"] == ""


def test_expansions_are_ones_own() -> None:
    expanded(POD_TEMPLATE)["properties"].clear()
    assert expanded(POD_TEMPLATE)["properties"]


def test_types_within_themselves_end_in_anything() -> None:
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    properties = expanded(name)["properties"]
    assert properties["not"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert properties["items"] == {"x-kubernetes-preserve-unknown-fields": True}


def test_own_types_within_themselves_end_in_anything() -> None:
    fields: dict[str, Node] = {}
    node = Obj(fields=fields)
    fields["child"] = node
    assert written(node)["properties"]["child"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


# ---- native kinds

NATIVE = [found for found in registry.every_kind() if found.native]


@pytest.mark.parametrize("found", NATIVE, ids=lambda found: f"{found.api_version}-{found.kind}")
def test_native_kinds_refer_to_the_types_of_kubernetes(found: Kind) -> None:
    schema = openapi_definition(found)
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": found.group, "kind": found.kind, "version": found.version}
    ]
    known = document("1.37")["definitions"]
    assert schema["properties"]["metadata"] == {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    assert [name for name in references(schema) if name not in known] == []


def references(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["$ref"].removeprefix("#/definitions/")] if isinstance(schema.get("$ref"), str) else []
        return own + [name for item in schema.values() for name in references(item)]
    return [name for item in schema for name in references(item)] if isinstance(schema, list) else []


@pytest.mark.parametrize("name", ["Workload", "PodGroup"])
def test_native_kinds_have_the_members_that_a_real_server_documents(name: str) -> None:
    found = registry.find("scheduling.k8s.io/v1beta1", name)
    assert found is not None
    real = document("1.37")["definitions"][f"io.k8s.api.scheduling.v1beta1.{name}Spec"]
    assert set(openapi_definition(found)["properties"]["spec"]["properties"]) == set(real["properties"])
