"""Revisions: which content makes a new one, and its key (spec lws 2.8).

The key is a hash of the JSON text that upstream stores in a ControllerRevision, so the text is reproduced to the byte.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery.podresources import in_canonical_form

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_ESCAPED: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def revision_data(obj: Object) -> Object:
    """What a revision holds of a (defaulted) object: templates, size, subgroups, restart policy, network."""
    spec = obj.get("spec") or {}
    members = {name: _replacing(spec.get(name)) for name in ("leaderWorkerTemplate", "networkConfig")}
    return in_canonical_form({"spec": members})  # type: ignore[no-any-return]


def _replacing(value: Any) -> Object:
    kept = value if isinstance(value, dict) else {}
    return {**_without_nulls(kept), "$patch": "replace"}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def revision_key(data: Object) -> str:
    """FNV-1 (32 bit) of the data's text, in letters that spell no words."""
    number = 2166136261
    for byte in _text(data).encode():
        number = number * 16777619 & 0xFFFFFFFF ^ byte
    return safe(number)


def safe(number: int) -> str:
    """The decimal digits of a hash, each replaced by a character of Kubernetes' safe alphabet."""
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def _text(data: Object) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPED)
