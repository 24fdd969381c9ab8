"""Types of Kubernetes itself, from the OpenAPI documents of real servers that ship as data."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


@cache
def document(minor: str) -> dict[str, Any]:
    """The OpenAPI v2 document (definitions and paths) of a minor such as "1.37"."""
    packed = files("kohort.api").joinpath(f"data/openapi-v2-{minor}.json.gz").read_bytes()
    loaded: dict[str, Any] = msgspec.json.decode(gzip.decompress(packed))
    return loaded


def version(minor: str) -> str:
    """The patch release of a minor that the definitions are of, such as 1.37.1."""
    return str(document(minor)["info"]["version"]).removeprefix("v")


@cache
def discovery(minor: str) -> dict[str, Any]:
    """The aggregated discovery documents of /api and /apis."""
    packed = files("kohort.api").joinpath(f"data/discovery-{minor}.json.gz").read_bytes()
    loaded: dict[str, Any] = msgspec.json.decode(gzip.decompress(packed))
    return loaded


def definition(minor: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = document(minor)["definitions"][name]
    return found


def target(schema: dict[str, Any]) -> str | None:
    """The definition that a `$ref` names."""
    reference = schema.get("$ref")
    return reference.removeprefix("#/definitions/") if reference else None


def of_kind(minor: str, group: str, version: str, kind: str) -> str | None:
    """The name of a kind's definition."""
    return _by_kind(minor).get((group, version, kind))


@cache
def _by_kind(minor: str) -> dict[tuple[str, str, str], str]:
    """Some are about many kinds (DeleteOptions); the first that names a kind is its own."""
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in document(minor)["definitions"].items():
        for one in schema.get("x-kubernetes-group-version-kind", ()):
            found.setdefault((one["group"], one["version"], one["kind"]), name)
    return found
