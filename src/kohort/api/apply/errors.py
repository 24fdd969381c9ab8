"""What apply answers when it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kohort.api.apply.fields import Path, shown
from kohort.api.apply.managed import Manager
from kohort.api.kind import Object


class ApplyError(ValueError):
    """The applied object cannot be one (400). Upstream answers some of these with 500; the texts are the same."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that the request would change and another manager owns."""

    manager: Manager
    path: Path

    @property
    def field(self) -> str:
        return shown(self.path)


def conflict_message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].manager}: {conflicts[0].field}"
    lines: list[str] = []
    for manager in sorted({conflict.manager for conflict in conflicts}, key=lambda manager: manager.identity):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {conflict.field}" for conflict in conflicts if conflict.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def conflict_status(conflicts: Sequence[Conflict]) -> Object:
    """The Status object of a refused apply."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {conflict.manager}",
            "field": conflict.field,
        }
        for conflict in conflicts
    ]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": conflict_message(conflicts),
        "reason": "Conflict",
        "details": {"causes": causes},
        "code": 409,
    }
