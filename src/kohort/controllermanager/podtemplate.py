"""A pod from a template, as every controller of pods makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import name_of, namespace_of, owner_reference


def new_pod(owner: Object, template: Mapping[str, Any], name: str = "") -> Object:
    """`name`: without one the server makes it from the prefix."""
    given = template.get("metadata") or {}
    meta: dict[str, Any] = {"generateName": f"{name_of(owner)}-", "namespace": namespace_of(owner)}
    if name:
        meta["name"] = name
    for member in ("labels", "annotations", "finalizers"):
        if given.get(member):
            meta[member] = copied(given[member])
    meta["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": copied(template.get("spec") or {})}
