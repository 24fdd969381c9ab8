"""Every CRD keeps the rules that a server has for them: structural schemas, names, sizes, defaults that fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kohort.api import defaults, registry
from kohort.api.crd import crd, crds
from kohort.api.decode import decode
from kohort.api.kind import Column, Context, Kind, Scale
from kohort.api.schema import Int, Obj

KINDS = [found for found in registry.every_kind() if not found.native]
ALL = {found["metadata"]["name"]: found for found in crds()}
Schema = dict[str, Any]

THING = Kind(
    group="example.org",
    version="v1",
    kind="Thing",
    plural="things",
    schema=Obj(fields={"spec": Obj(fields={"size": Int()})}),
)


def test_every_kind_without_a_server_of_its_own_has_one() -> None:
    assert set(ALL) == {f"{found.plural}.{found.group}" for found in KINDS}
    assert len(ALL) >= 10


def versions(name: str) -> list[tuple[str, Schema]]:
    return [(found["name"], found["schema"]["openAPIV3Schema"]) for found in ALL[name]["spec"]["versions"]]


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema within a schema that is a value of its own (the branches of anyOf are not)."""
    yield path, schema
    for name, item in schema.get("properties", {}).items():
        yield from nodes(item, f"{path}.{name}")
    for member in ("items", "additionalProperties"):
        if isinstance(schema.get(member), dict):
            yield from nodes(schema[member], f"{path}.{member}")


@pytest.mark.parametrize("name", ALL)
def test_schemas_are_structural(name: str) -> None:
    for version, schema in versions(name):
        assert schema["type"] == "object"
        for path, node in nodes(schema):
            where = f"{version}{path}"
            typed = "type" in node or node.get("x-kubernetes-int-or-string")
            assert typed or node == {"x-kubernetes-preserve-unknown-fields": True}, where
            assert not {"$ref", "uniqueItems", "definitions", "oneOf", "not"} & set(node), where
            assert not ("properties" in node and "additionalProperties" in node), where
            assert set(node.get("required", [])) <= set(node.get("properties", {})), where
            if node.get("type") == "array":
                assert "items" in node, where


@pytest.mark.parametrize("name", ALL)
def test_keys_of_lists_are_scalars_that_are_always_there(name: str) -> None:
    for _, schema in versions(name):
        for path, node in nodes(schema):
            sort = node.get("x-kubernetes-list-type")
            if sort == "map":
                items = node["items"]
                for key in node["x-kubernetes-list-map-keys"]:
                    member = items["properties"][key]
                    assert member.get("type") in {"string", "integer", "boolean"}, path
                    assert key in items.get("required", []) or "default" in member, path
            elif sort == "set":
                assert node["items"]["type"] in {"string", "integer"}, path


@pytest.mark.parametrize("name", ALL)
def test_metadata_of_the_object_itself_is_left_to_the_server(name: str) -> None:
    for _, schema in versions(name):
        metadata = schema["properties"]["metadata"]
        assert metadata["type"] == "object"
        assert set(metadata.get("properties", {})) <= {"name", "generateName"}


@pytest.mark.parametrize("name", ALL)
def test_defaults_have_the_type_of_their_field(name: str) -> None:
    types = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}
    for _, schema in versions(name):
        for path, node in nodes(schema):
            if "default" in node:
                accepted = types[node["type"]] if "type" in node else (int, str)  # int-or-string
                assert isinstance(node["default"], accepted), path
                assert node["default"] in node.get("enum", [node["default"]]), path


@pytest.mark.parametrize("found", KINDS, ids=lambda found: found.kind)
def test_defaults_are_valid_in_their_own_schema(found: Kind) -> None:
    obj: dict[str, Any] = {name: {} for name in found.schema.fields}
    defaults.apply(found.schema, obj, Context.of("1.37"))
    assert decode(found.schema, obj, "1.37") == []


@pytest.mark.parametrize("name", ALL)
def test_small_enough_for_client_side_apply(name: str) -> None:
    assert len(json.dumps(ALL[name], separators=(",", ":"))) < 256 * 1024


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_shared_within(name: str) -> None:
    """A YAML writer would turn what is shared into anchors, which kubectl reads but people do not."""
    seen: set[int] = set()

    def unshared(value: Any) -> bool:
        if not isinstance(value, (dict, list)) or not value:
            return True
        if id(value) in seen:
            return False
        seen.add(id(value))
        return all(map(unshared, value.values() if isinstance(value, dict) else value))

    assert unshared(ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_one_version_is_stored(name: str) -> None:
    assert [found["storage"] for found in ALL[name]["spec"]["versions"]].count(True) == 1


@pytest.mark.parametrize("name", ALL)
def test_comparing_rules_stand_where_the_stored_value_can_be_found(name: str) -> None:
    def uncorrelated(schema: Schema, within: bool = False) -> Iterator[str]:
        if within:
            yield from (one["rule"] for one in schema.get("x-kubernetes-validations", []) if "oldSelf" in one["rule"])
        for item in schema.get("properties", {}).values():
            yield from uncorrelated(item, within)
        if isinstance(schema.get("additionalProperties"), dict):
            yield from uncorrelated(schema["additionalProperties"], within)
        if "items" in schema:
            yield from uncorrelated(schema["items"], within or schema.get("x-kubernetes-list-type") != "map")

    assert [rule for _, schema in versions(name) for rule in uncorrelated(schema)] == []


def test_pod_templates_know_the_pod_field_of_1_37() -> None:
    """Upstream's CRD of Grove embeds the PodSpec of 1.35 and prunes it (spec grove 3.10)."""
    ((_, schema),) = versions("podcliquesets.grove.io")
    paths = [path for path, node in nodes(schema) if "containers" in node.get("properties", {})]
    assert paths
    found = [node for path, node in nodes(schema) if path in paths]
    assert all("schedulingGroup" in node["properties"] for node in found)


# ---- what a kind says of itself


def test_names_scope_and_versions() -> None:
    made = crd([replace(THING, short_names=("th",), categories=("all",), namespaced=False)])
    assert made["metadata"] == {"name": "things.example.org"}
    assert made["spec"]["scope"] == "Cluster"
    assert made["spec"]["names"] == {
        "kind": "Thing",
        "listKind": "ThingList",
        "plural": "things",
        "singular": "thing",
        "shortNames": ["th"],
        "categories": ["all"],
    }


def test_columns_and_subresources() -> None:
    columns = (
        Column("Size", "integer", path=".spec.size", priority=1, description="how big"),
        Column("Computed", cell=lambda _: "x"),
        Column("Age", "date", path=".metadata.creationTimestamp"),
    )
    (version,) = crd([replace(THING, columns=columns, scale=Scale(".spec.size", ".status.size", ".status.s"))])["spec"][
        "versions"
    ]
    assert version["additionalPrinterColumns"] == [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "how big"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.size",
            "labelSelectorPath": ".status.s",
        },
    }


def test_several_versions_and_one_that_is_stored() -> None:
    older = replace(THING, version="v1alpha1", storage=False)
    made = crd([older, THING])
    assert [(one["name"], one["storage"]) for one in made["spec"]["versions"]] == [("v1alpha1", False), ("v1", True)]
    with pytest.raises(ValueError, match=r"Thing\.example\.org: exactly one version is stored, found none"):
        crd([older])


def test_kinds_of_different_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected versions of Thing\.example\.org"):
        crd([THING, replace(THING, kind="Other")])
