"""The result of a write: the object, or a Status that says why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.errors import FieldError
    from kohort.api.kind import Kind, Object


@dataclass(frozen=True, slots=True)
class WriteResult:
    """`object` is set if and only if the write is accepted. `about`: the details of a Status (group, kind, name)."""

    code: int
    reason: str = ""
    causes: tuple[FieldError, ...] = ()
    object: Object | None = None
    warnings: tuple[str, ...] = ()
    message: str = ""
    about: tuple[tuple[str, str], ...] = ()

    @property
    def accepted(self) -> bool:
        return self.object is not None

    def status(self) -> dict[str, Any]:
        """A refusal as a metav1.Status."""
        details: dict[str, Any] = dict(self.about)
        if self.causes:
            details["causes"] = [
                {"reason": str(cause.kind), "message": cause.message, "field": cause.field} for cause in self.causes
            ]
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        if self.reason:
            body["reason"] = self.reason
        if details:
            body["details"] = details
        return body | {"code": self.code}


def _about(group: str, kind: str, name: str) -> tuple[tuple[str, str], ...]:
    every = (("name", name), ("group", group), ("kind", kind))
    return tuple(pair for pair in every if pair[1])


def _full(group: str, kind: str) -> str:
    return f"{kind}.{group}" if group else kind


def bad_request(message: str, warnings: Sequence[str] = ()) -> WriteResult:
    return WriteResult(400, "BadRequest", message=message, warnings=tuple(warnings))


def invalid(kind: Kind, name: str, causes: Sequence[FieldError], warnings: Sequence[str] = ()) -> WriteResult:
    """422: validation."""
    return _invalid(kind.group, kind.kind, name, causes, warnings)


def version_required(kind: Kind, name: str, causes: Sequence[FieldError]) -> WriteResult:
    """422 for an update that names no version: the store's answer, which speaks of the resource, not of the kind."""
    return _invalid(kind.group, kind.plural, name, causes)


def _invalid(
    group: str, what: str, name: str, causes: Sequence[FieldError], warnings: Sequence[str] = ()
) -> WriteResult:
    message = f'{_full(group, what)} "{name}" is invalid: {_listed(causes)}'
    return WriteResult(422, "Invalid", tuple(causes), None, tuple(warnings), message, _about(group, what, name))


def _listed(causes: Sequence[FieldError]) -> str:
    texts = list(dict.fromkeys(map(str, causes)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def forbidden(kind: Kind, name: str, why: str) -> WriteResult:
    """403: an admission plugin."""
    message = f'{_full(kind.group, kind.plural)} "{name}" is forbidden: {why}'
    return WriteResult(403, "Forbidden", message=message, about=_about(kind.group, kind.plural, name))


def denied_by_webhook(kind: Kind, causes: Sequence[FieldError], warnings: Sequence[str] = ()) -> WriteResult:
    """403: a validating webhook, which writes all of its findings into one message and names no causes."""
    message = f'admission webhook "{kind.webhook}" denied the request: {_listed(causes)}'
    return WriteResult(403, "Forbidden", message=message, warnings=tuple(warnings))


def conflict(kind: Kind, name: str, why: str) -> WriteResult:
    message = f'Operation cannot be fulfilled on {_full(kind.group, kind.plural)} "{name}": {why}'
    return WriteResult(409, "Conflict", message=message, about=_about(kind.group, kind.plural, name))


def already_exists(kind: Kind, name: str) -> WriteResult:
    message = f'{_full(kind.group, kind.plural)} "{name}" already exists'
    return WriteResult(409, "AlreadyExists", message=message, about=_about(kind.group, kind.plural, name))


def not_found(kind: Kind, name: str) -> WriteResult:
    message = f'{_full(kind.group, kind.plural)} "{name}" not found'
    return WriteResult(404, "NotFound", message=message, about=_about(kind.group, kind.plural, name))


def not_served() -> WriteResult:
    return WriteResult(404, "NotFound", message="the server could not find the requested resource")
