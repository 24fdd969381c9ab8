"""Rules of a ClusterTopologyBinding (spec grove 1.5)."""

from __future__ import annotations

from kohort.api.errors import FieldError, duplicate, invalid
from kohort.api.kind import Context, Object
from kohort.kinds.grove.api import options


def validate(obj: Object, ctx: Context) -> list[FieldError]:
    found: list[FieldError] = []
    spec = obj.get("spec") or {}
    for member in ("domain", "key"):
        seen: set[str] = set()
        for index, level in enumerate(spec.get("levels") or []):
            value = level.get(member)
            if value in seen:
                found.append(duplicate(f"spec.levels[{index}].{member}", value))
            seen.add(str(value))
    for index, item in enumerate(spec.get("schedulerTopologyBindings") or []):
        name = item.get("schedulerName") or ""
        path = f"spec.schedulerTopologyBindings[{index}].schedulerName"
        if not options.enabled(name, ctx):
            found.append(invalid(path, name, "scheduler backend is not enabled"))
        elif name not in options.TOPOLOGY_AWARE:
            found.append(invalid(path, name, "scheduler backend has no topology object of its own to bind"))
    return found
