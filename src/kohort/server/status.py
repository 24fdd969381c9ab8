"""Refusals: `ApiError`, and the Status objects that an API server answers with, in upstream's reasons and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.errors import FieldError
    from kohort.api.result import WriteResult

Status = dict[str, Any]


class ApiError(Exception):
    """A request ends with this Status. `headers` go with it; `warnings` become Warning headers."""

    def __init__(self, status: Status, *, headers: dict[str, str] | None = None, warnings: Sequence[str] = ()) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers or {}
        self.warnings = tuple(warnings)

    @property
    def code(self) -> int:
        return int(self.status["code"])


def failure(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> Status:
    body: Status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        body["reason"] = reason
    kept = {name: value for name, value in (details or {}).items() if value not in ("", None, [])}
    if kept:
        body["details"] = kept
    return body | {"code": code}


def success(details: dict[str, Any] | None = None) -> Status:
    body: Status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body | ({"details": details} if details else {})


def from_result(answer: WriteResult) -> ApiError:
    """What the rules of the kinds refused."""
    return ApiError(answer.status(), warnings=answer.warnings)


def _full(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def _about(group: str, kind: str, name: str) -> dict[str, Any]:
    return {"name": name, "group": group, "kind": kind}


class NestingError(ApiError):
    """A body that is nested too deep to be read."""

    def __init__(self, most: int) -> None:
        super().__init__(failure(400, "BadRequest", f"the body is nested deeper than {most} levels"))


def bad_request(message: str) -> ApiError:
    return ApiError(failure(400, "BadRequest", message))


def unauthorized() -> ApiError:
    return ApiError(failure(401, "Unauthorized", "Unauthorized"))


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    message = f'{_full(group, plural)} "{name}" is forbidden: {why}' if plural else f"forbidden: {why}"
    return ApiError(failure(403, "Forbidden", message, _about(group, plural, name)))


def not_found(group: str, plural: str, name: str) -> ApiError:
    message = f'{_full(group, plural)} "{name}" not found'
    return ApiError(failure(404, "NotFound", message, _about(group, plural, name)))


def no_such_path() -> ApiError:
    return ApiError(failure(404, "NotFound", "the server could not find the requested resource"))


def method_not_allowed(verb: str = "") -> ApiError:
    message = f"{verb} is not supported on resources of this kind" if verb else ""
    text = message or "the server does not allow this method on the requested resource"
    return ApiError(failure(405, "MethodNotAllowed", text))


def already_exists(group: str, plural: str, name: str) -> ApiError:
    message = f'{_full(group, plural)} "{name}" already exists'
    return ApiError(failure(409, "AlreadyExists", message, _about(group, plural, name)))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {_full(group, plural)} "{name}": {why}'
    return ApiError(failure(409, "Conflict", message, _about(group, plural, name)))


def expired(message: str, continue_token: str = "") -> ApiError:
    status = failure(410, "Expired", message)
    if continue_token:
        status["metadata"] = {"continue": continue_token}
    return ApiError(status)


def too_large(limit: int) -> ApiError:
    return entity_too_large(f"limit is {limit}")


def entity_too_large(why: str) -> ApiError:
    return ApiError(failure(413, "RequestEntityTooLarge", f"Request entity too large: {why}"))


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(failure(415, "UnsupportedMediaType", message))


def invalid(group: str, kind: str, name: str, causes: Sequence[FieldError], warnings: Sequence[str] = ()) -> ApiError:
    texts = list(dict.fromkeys(map(str, causes)))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _about(group, kind, name) | {
        "causes": [{"reason": str(cause.kind), "message": cause.message, "field": cause.field} for cause in causes]
    }
    message = f'{_full(group, kind)} "{name}" is invalid: {listed}'
    return ApiError(failure(422, "Invalid", message, details), warnings=warnings)


def too_many_requests(message: str, *, seconds: int = 0, causes: Sequence[dict[str, str]] = ()) -> ApiError:
    details: dict[str, Any] = {"causes": list(causes), "retryAfterSeconds": seconds or None}
    headers = {"retry-after": str(seconds)} if seconds else {}
    return ApiError(failure(429, "TooManyRequests", message, details), headers=headers)


def internal(message: str) -> ApiError:
    causes = [{"message": message}]
    return ApiError(failure(500, "InternalError", f"Internal error occurred: {message}", {"causes": causes}))


def unavailable(message: str, *, seconds: int = 0) -> ApiError:
    headers = {"retry-after": str(seconds)} if seconds else {}
    return ApiError(
        failure(503, "ServiceUnavailable", message, {"retryAfterSeconds": seconds or None}), headers=headers
    )


def version_too_large(asked: int, newest: int) -> ApiError:
    message = f"Too large resource version: {asked}, current: {newest}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    details = {"causes": causes, "retryAfterSeconds": 1}
    return ApiError(failure(504, "Timeout", f"Timeout: {message}", details), headers={"retry-after": "1"})
