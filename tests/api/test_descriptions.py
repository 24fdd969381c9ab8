"""What `kubectl explain` says: every gang field has words, and no words are about a field that does not exist."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files

import pytest

from kohort.api import definitions, registry
from kohort.api.descriptions import described, of_definition, of_kind
from kohort.api.openapi import structural

TABLES = tomllib.loads(files("kohort.api").joinpath("data/descriptions.toml").read_text("utf-8"))
MINORS = ("1.35", "1.36", "1.37")
KINDS = {found.kind: found for found in registry.every_kind() if not found.native}


def paths(schema: dict, path: str = "") -> Iterator[str]:
    yield path
    schema = schema.get("items", schema) if schema.get("type") == "array" else schema
    for name, one in schema.get("properties", {}).items():
        yield from paths(one, f"{path}.{name}" if path else name)


def served(table: str) -> set[str]:
    """Members of a type in all versions and releases."""
    return {
        member
        for minor in MINORS
        for name, one in definitions.document(minor)["definitions"].items()
        if name.startswith("io.k8s.api.")
        if f"{name.split('.')[3]}.{name.split('.')[-1]}" == table
        for member in (*one.get("properties", {}), "")
    }


@pytest.mark.parametrize("table", TABLES)
def test_words_are_about_fields_that_exist(table: str) -> None:
    known = served(table) if "." in table else set(paths(structural(KINDS[table])))
    assert set(TABLES[table]) - known == set()


@pytest.mark.parametrize("minor", MINORS)
def test_every_member_of_the_group_kinds_has_words(minor: str) -> None:
    head = {"apiVersion", "kind", "metadata"}
    silent = [
        f"{name}.{member}"
        for name, one in definitions.document(minor)["definitions"].items()
        if name.startswith("io.k8s.api.scheduling.v1") and not name.endswith("List")
        for member in set(one.get("properties", {})) - head - set(of_definition(name))
    ]
    assert silent == []


@pytest.mark.parametrize("kind", ["JobSet", "LeaderWorkerSet"])
def test_every_field_of_a_spec_has_words(kind: str) -> None:
    def silent(schema: dict, path: str) -> Iterator[str]:
        if "description" not in schema:
            yield path
        schema = schema.get("items", schema) if schema.get("type") == "array" else schema
        for name, one in schema.get("properties", {}).items():
            if name not in ("template", "templates", "volumeClaimTemplates", "leaderTemplate", "workerTemplate"):
                yield from silent(one, f"{path}.{name}")

    assert list(silent(structural(KINDS[kind])["properties"]["spec"], "spec")) == []


def test_a_schema_keeps_its_own_words() -> None:
    schema: dict = {
        "properties": {"a": {"description": "mine"}, "b": {"items": {"properties": {"c": {"type": "string"}}}}}
    }
    found = described(schema, {"": "whole", "a": "yours", "b.c": "deep"})
    assert found["description"] == "whole"
    assert found["properties"]["a"]["description"] == "mine"
    assert found["properties"]["b"]["items"]["properties"]["c"]["description"] == "deep"
    assert "description" not in schema["properties"]["b"]["items"]["properties"]["c"]


def test_a_kind_without_words_has_none() -> None:
    assert of_kind("Unheard") == {}
    assert of_definition("io.k8s.apimachinery.pkg.apis.meta.v1.Status") == {}
