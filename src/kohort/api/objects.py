"""Reading any object: its name, owner, labels, whether it is going. Nothing here depends on a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kohort.api.kind import Object


def meta_of(obj: Object) -> dict[str, Any]:
    found: dict[str, Any] = obj.get("metadata") or {}
    return found


def status_of(obj: Object) -> dict[str, Any]:
    found: dict[str, Any] = obj.get("status") or {}
    return found


def name_of(obj: Object) -> str:
    return str(meta_of(obj).get("name") or "")


def namespace_of(obj: Object) -> str:
    """As it is stored; empty for what belongs to no namespace."""
    return str(meta_of(obj).get("namespace") or "")


def namespace_or_default(obj: Object) -> str:
    """Where an object of a file goes that names no namespace, too."""
    return namespace_of(obj) or "default"


def uid_of(obj: Object) -> str:
    return str(meta_of(obj).get("uid") or "")


def label(obj: Object, key: str) -> str:
    return str((meta_of(obj).get("labels") or {}).get(key) or "")


_MANY: Final = 100  # owners


class _Last:
    """The many owners that were looked through last."""

    owners: Sequence[Any] = ()
    count = 0
    controller: dict[str, Any] | None = None


def annotation(obj: Object, key: str) -> str | None:
    """None: it has no such annotation; an empty one is a value."""
    return (meta_of(obj).get("annotations") or {}).get(key)


def number(text: str, default: int = -1) -> int:
    """A number from 0 on that stands in a label or annotation."""
    return int(text) if text.isascii() and text.isdigit() else default


def is_deleting(obj: Object) -> bool:
    return bool(meta_of(obj).get("deletionTimestamp"))


def controller_of(obj: Object) -> dict[str, Any] | None:
    """The owner reference of what controls the object; None: nothing does."""
    meta = obj.get("metadata")
    owners = (meta.get("ownerReferences") if meta else None) or ()
    if len(owners) <= _MANY:
        if _Last.count:
            _Last.controller, _Last.owners, _Last.count = None, (), 0
        for owner in owners:  # twenty ask for each change of a pod
            if isinstance(owner, dict) and owner.get("controller"):
                return owner
        return None
    if _Last.owners is not owners or _Last.count != len(owners):  # all who hear of a change ask, one after the other
        _Last.controller, _Last.owners, _Last.count = _controller(owners), owners, len(owners)
    return _Last.controller


def _controller(owners: Sequence[Any]) -> dict[str, Any] | None:
    return next((owner for owner in owners if isinstance(owner, dict) and owner.get("controller")), None)


def controller_uid(obj: Object) -> str:
    """The uid of the owner that controls it; empty: nobody does."""
    return str((controller_of(obj) or {}).get("uid") or "")


def is_controlled_by(obj: Object | None, owner: Object) -> bool:
    """By this very object, not by one of the same name before it."""
    return obj is not None and bool(uid_of(owner)) and controller_uid(obj) == uid_of(owner)


def owner_reference(obj: Object) -> dict[str, Any]:
    """Of the controller of what is made for `obj`."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": name_of(obj),
        "uid": uid_of(obj),
        "controller": True,
        "blockOwnerDeletion": True,
    }
