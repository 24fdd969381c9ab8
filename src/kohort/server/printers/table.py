"""Lists and objects as tables, the way `kubectl get` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.kind import Column
from kohort.server import jsonpath, printers, timestamps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kohort.api.kind import Object
    from kohort.server.resources import Resource

_NAME: Final = Column(
    "Name",
    cell=lambda obj: (obj.get("metadata") or {}).get("name", ""),
    description="Name must be unique within a namespace.",
    format="name",
)


def of(resource: Resource) -> tuple[Column, ...]:
    """The columns of a resource: the name first, if it has no other place."""
    found = printers.of(resource.group, resource.kind) or resource.rules.columns or printers.PLAIN
    return found if any(one.name == "Name" for one in found) else (_NAME, *found)


def table(resource: Resource, *, meta: dict[str, Any], version: str = "v1") -> Object:
    """Without its rows."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": [_definition(resource, one) for one in of(resource)],
    }


def of_objects(
    resource: Resource, objects: Iterable[Object], *, meta: dict[str, Any], include: str = "", version: str = "v1"
) -> Object:
    row = row_printer(resource, include, version)
    return {**table(resource, meta=meta, version=version), "rows": [row(obj) for obj in objects]}


def row_printer(resource: Resource, include: str = "", version: str = "v1") -> Callable[[Object], dict[str, Any]]:
    """`include`: None, Metadata (the default) or Object: what each row carries beside its cells."""
    shown = of(resource)
    return lambda obj: _row(shown, obj, include or "Metadata", version)


def _definition(resource: Resource, one: Column) -> dict[str, Any]:
    # A native server prints ages itself; for a CRD's date column the client does.
    kind = "string" if resource.native and one.type == "date" and one.cell is None else one.type
    return {
        "name": one.name,
        "type": kind,
        "format": one.format,
        "description": one.description or one.name,
        "priority": one.priority,
    }


def _row(shown: tuple[Column, ...], obj: Object, include: str, version: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [_cell(one, obj) for one in shown]}
    if include == "Object":
        row["object"] = obj
    elif include == "None":
        row["object"] = None
    else:
        row["object"] = partial(obj, version)
    return row


def _cell(one: Column, obj: Object) -> Any:
    if one.cell is not None:
        return one.cell(obj)
    value = _look(obj, one.path)
    return timestamps.age(value) if one.type == "date" else value


def _look(obj: Any, path: str) -> Any:
    """What a path of a CRD leads to; nothing where the path is not understood."""
    try:
        return jsonpath.first(obj, path)
    except jsonpath.JsonPathError:
        return None


def partial(obj: Object, version: str = "v1") -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj.get("metadata") or {},
    }
