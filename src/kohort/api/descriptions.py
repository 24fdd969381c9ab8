"""Words about fields, for `kubectl explain`: added to schemas that have none of their own (data/descriptions.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

Schema = dict[str, Any]
Words = Mapping[str, str]


@cache
def _tables() -> Mapping[str, Words]:
    text = files("kohort.api").joinpath("data/descriptions.toml").read_text("utf-8")
    found: Mapping[str, Words] = tomllib.loads(text)
    return found


def of_kind(kind: str) -> Words:
    """Words about the fields of a workload kind, by path below the object."""
    return _tables().get(kind, {})


def of_definition(name: str) -> Words:
    """Words about the members of a type of Kubernetes, by its definition: io.k8s.api.batch.v1.JobSpec."""
    parts = name.split(".")
    return _tables().get(f"{parts[3]}.{parts[-1]}", {}) if name.startswith("io.k8s.api.") else {}


def described(schema: Schema, words: Words, path: str = "") -> Schema:
    """The schema, with words where it says nothing itself. Members of a list's items stand below the list's path."""
    found = dict(schema)
    if path in words:
        found.setdefault("description", words[path])
    below = f"{path}." if path else ""
    if "properties" in found:
        found["properties"] = {name: described(one, words, below + name) for name, one in found["properties"].items()}
    if isinstance(found.get("items"), dict):
        found["items"] = _items(found["items"], words, below)
    return found


def _items(schema: Schema, words: Words, below: str) -> Schema:
    if "properties" not in schema:
        return schema
    members = {name: described(one, words, below + name) for name, one in schema["properties"].items()}
    return {**schema, "properties": members}
