"""A pod from a template, as every controller of pods makes it, and hashes of templates in letters, not words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

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


_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_ESCAPED: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_OFFSET: Final = 2166136261
_PRIME: Final = 16777619


def json_text(value: Any) -> str:
    """As Go writes it: keys in order, no blanks, what HTML would read escaped."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPED)


def fnv1(data: bytes, number: int = _OFFSET) -> int:
    """FNV-1, 32 bit."""
    for byte in data:
        number = number * _PRIME & 0xFFFFFFFF ^ byte
    return number


def safe(text: str) -> str:
    return "".join(_ALPHABET[ord(character) % len(_ALPHABET)] for character in text)


def template_hash(template: Any, collisions: int | None) -> str:
    """pod-template-hash. Upstream hashes how Go prints its own types: the letters differ, their use does not."""
    data = json_text(template).encode()
    return safe(str(fnv1(str(collisions).encode(), fnv1(data)) if collisions is not None else fnv1(data)))
