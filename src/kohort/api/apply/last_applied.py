"""From `kubectl apply` to `kubectl apply --server-side`: the annotation says which conflicts are kubectl's own."""

from __future__ import annotations

import json
from typing import Final

from kohort.api.apply import fields as sets
from kohort.api.apply.compare import compare
from kohort.api.apply.errors import Conflict
from kohort.api.apply.structure import Structure
from kohort.api.apply.values import field_set, problems
from kohort.api.kind import Object

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_BYTES: Final = 256 * 1024  # of all annotations


def remaining(conflicts: list[Conflict], live: Object, api_version: str, structure: Structure) -> list[Conflict]:
    """Conflicts about fields that kubectl did not apply before, or that changed since."""
    last = _last(live)
    if last is None or last.get("apiVersion") != api_version or problems(last, structure):
        return conflicts
    change = compare(last, live, structure)
    own = field_set(last, structure)
    for changed in (change.modified, change.added, change.removed):
        own = sets.difference(own, changed)
    return [conflict for conflict in conflicts if not sets.has(own, conflict.path)]


def follow(merged: Object, applied: Object) -> None:
    """Write what was applied into the annotation, if the object has one."""
    annotations = _annotations(merged)
    if not annotations.get(ANNOTATION):
        return
    own = json.loads(json.dumps(applied))
    _annotations(own).pop(ANNOTATION, None)
    if (own.get("metadata") or {}).get("annotations") == {}:
        del own["metadata"]["annotations"]
    annotations[ANNOTATION] = json.dumps(own, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    if sum(len(name.encode()) + len(str(text).encode()) for name, text in annotations.items()) > _MOST_BYTES:
        del annotations[ANNOTATION]


def _last(live: Object) -> Object | None:
    try:
        last = json.loads(_annotations(live).get(ANNOTATION) or "null")
    except ValueError:
        return None
    return last if isinstance(last, dict) else None


def _annotations(one: Object) -> dict[str, str]:
    return (one.get("metadata") or {}).get("annotations") or {}
