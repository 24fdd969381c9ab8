"""CustomResourceDefinitions of the kinds that no server has of its own.

Made from the same declarations as everything else, so that a real API server checks what the embedded one checks, as
far as a schema can. Without the descriptions of Kubernetes' own types they stay small enough for `kubectl apply`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kohort.api.kind import Column, Kind, Object
from kohort.api.openapi import structural
from kohort.api.registry import every_kind


def crd(kinds: Sequence[Kind]) -> Object:
    """The definition of one resource from its kinds, one for each version."""
    first = kinds[0]
    if any((kind.group, kind.kind, kind.plural) != (first.group, first.kind, first.plural) for kind in kinds):
        raise ValueError(f"expected versions of {first.kind}.{first.group}, found {', '.join(map(_full, kinds))}")
    stored = [kind.version for kind in kinds if kind.storage]
    if len(stored) != 1:
        raise ValueError(
            f"{first.kind}.{first.group}: exactly one version is stored, found {', '.join(stored) or 'none'}"
        )
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{first.plural}.{first.group}"},
        "spec": {
            "group": first.group,
            "names": _names(first),
            "scope": "Namespaced" if first.namespaced else "Cluster",
            "versions": [_version(kind) for kind in kinds],
        },
    }


def crds() -> tuple[Object, ...]:
    """Those of all kinds that are not native, in the order of the registry."""
    found: dict[tuple[str, str], list[Kind]] = {}
    for kind in every_kind():
        if not kind.native:
            found.setdefault((kind.group, kind.kind), []).append(kind)
    return tuple(crd(kinds) for kinds in found.values())


def _full(kind: Kind) -> str:
    return f"{kind.kind}.{kind.version}.{kind.group}"


def _names(kind: Kind) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular or kind.kind.lower(),
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _version(kind: Kind) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": kind.storage,
        "schema": {"openAPIV3Schema": structural(kind)},
    }
    subresources = _subresources(kind)
    if subresources:
        version["subresources"] = subresources
    columns = [_column(column) for column in kind.columns if column.path]
    if columns:
        version["additionalPrinterColumns"] = columns
    return version


def _subresources(kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = {"status": {}} if kind.status else {}
    if kind.scale is not None:
        found["scale"] = {
            "specReplicasPath": kind.scale.spec_replicas,
            "statusReplicasPath": kind.scale.status_replicas,
        }
        if kind.scale.selector:
            found["scale"]["labelSelectorPath"] = kind.scale.selector
    return found


def _column(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.priority:
        found["priority"] = column.priority
    if column.description:
        found["description"] = column.description
    return found
