"""Writes of whole objects: what a request needs to know is in the object."""

from __future__ import annotations

from typing import Any, Literal

from kohort.api.kind import Object
from kohort.api.objects import name_of, namespace_of, uid_of
from kohort.controllers.parts import IN_PART
from kohort.controllers.reconcile import Verb, Write


def _to(verb: Verb, obj: Object, **more: Any) -> Write:
    return Write(
        verb=verb,
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=namespace_of(obj),
        name=name_of(obj),
        **more,
    )


def create(obj: Object) -> Write:
    return _to("create", obj, body=obj)


def apply(obj: Object) -> Write:
    return _to("apply", obj, body=obj)


def patch(obj: Object, body: Any, subresource: str = "") -> Write:
    """A merge patch of a stored object."""
    return _to("patch", obj, body=body, subresource=subresource)


def update(obj: Object, subresource: str = "") -> Write:
    """The whole object, as it was read whole."""
    if (obj["apiVersion"], obj["kind"]) in IN_PART:
        raise ValueError(f"{obj['kind']} {name_of(obj)}: only parts of it were read (controllers/parts.py): patch it")
    return _to("update", obj, body=obj, subresource=subresource)


def delete(obj: Object, propagation: Literal["Background", "Foreground", "Orphan"] = "Background") -> Write:
    """Of this very object, not of another one of its name."""
    return _to("delete", obj, uid=uid_of(obj), propagation=propagation)
