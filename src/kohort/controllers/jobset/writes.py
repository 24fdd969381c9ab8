"""Requests of this controller, made from the object that they are about."""

from __future__ import annotations

from typing import Any, Literal

from kohort.api.kind import Object
from kohort.controllers.jobset.children import namespace_of
from kohort.controllers.script import Write


def creation(obj: Object) -> Write:
    return Write(
        verb="create",
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=namespace_of(obj),
        name=str(obj["metadata"]["name"]),
        body=obj,
    )


def deletion(obj: Object, propagation: Literal["Background", "Foreground"] = "Background") -> Write:
    """Of this very object, not of another that has its name by then."""
    return Write(
        verb="delete",
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=namespace_of(obj),
        name=str(obj["metadata"]["name"]),
        uid=str(obj["metadata"].get("uid") or ""),
        propagation=propagation,
    )


def change(obj: Object, body: dict[str, Any], subresource: str = "") -> Write:
    return Write(
        verb="patch",
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=namespace_of(obj),
        name=str(obj["metadata"]["name"]),
        body=body,
        subresource=subresource,
    )
