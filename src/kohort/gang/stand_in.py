"""Identities of objects that exist only on paper.

Some names carry a hash of a uid that only a server gives. For a manifest without one, a stand-in is computed from
what the manifest says, so that the same manifest always compiles to the same names.
"""

from __future__ import annotations

from uuid import UUID, uuid5

from kohort.api.kind import Object

_SPACE = UUID("6f0b1f5e-5d0c-5b53-9d0d-5b1c2a0e7a11")


def uid_of(obj: Object) -> str:
    """The object's uid, or its stand-in."""
    meta = obj.get("metadata") or {}
    return str(meta.get("uid") or stand_in(obj.get("apiVersion", ""), obj.get("kind", ""), meta))


def has_uid(obj: Object) -> bool:
    return bool((obj.get("metadata") or {}).get("uid"))


def stand_in(api_version: str, kind: str, meta: dict[str, str]) -> str:
    group = api_version.rpartition("/")[0]
    return str(uuid5(_SPACE, "/".join((group, kind, meta.get("namespace") or "default", meta.get("name") or ""))))
