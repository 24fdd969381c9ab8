"""What can go wrong between us and an API server: it refuses, it cannot be reached, or nobody said where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

EXPIRED = ("Expired", "Gone")
_TOO_LARGE = "ResourceVersionTooLarge"
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class KubeError(Exception):
    """Every error of this package."""


class ConfigError(KubeError):
    """No usable configuration. The message names the file, the field, what was found, what is accepted."""


class TransportError(KubeError):
    """No answer: refused, cut, timed out, not trusted. Whether the server acted on the request is not known."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One of the reasons behind a refusal."""

    reason: str
    message: str
    field: str


class ApiError(KubeError):
    """The server answered with something else than success; `status` is the metav1.Status it sent."""

    def __init__(self, code: int, status: dict[str, Any], *, retry_after: float | None = None) -> None:
        self.code = code
        self.status = status
        self.retry_after = retry_after
        super().__init__(f"{code} {self.reason}: {self.message}")

    @classmethod
    def read(cls, code: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
        """Any body: a Status, a proxy's page, or nothing."""
        try:
            status = msgspec.json.decode(body)
        except msgspec.DecodeError:
            status = None
        if not isinstance(status, dict) or status.get("kind") != "Status":
            text = body[:1000].decode(errors="replace").strip() or "the answer has no body"
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": text}
        return cls(code, status, retry_after=retry_after)

    @property
    def reason(self) -> str:
        return str(self.status.get("reason") or _REASONS.get(self.code, "Unknown"))

    @property
    def message(self) -> str:
        return str(self.status.get("message") or "")

    @property
    def details(self) -> dict[str, Any]:
        details = self.status.get("details")
        return details if isinstance(details, dict) else {}

    @property
    def causes(self) -> list[Cause]:
        found = self.details.get("causes")
        return [
            Cause(str(one.get("reason", "")), str(one.get("message", "")), str(one.get("field", "")))
            for one in (found if isinstance(found, list) else ())
            if isinstance(one, dict)
        ]

    @property
    def not_found(self) -> bool:
        return self.code == 404

    @property
    def already_exists(self) -> bool:
        return self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        """Somebody else wrote first (not: the name is taken)."""
        return self.code == 409 and not self.already_exists

    @property
    def expired(self) -> bool:
        """The resource version or continue token is too old: list again."""
        return self.code == 410 or self.reason in EXPIRED

    @property
    def version_too_large(self) -> bool:
        """The resource version is ahead of the server: it was restored, or is behind its peers."""
        return any(cause.reason == _TOO_LARGE for cause in self.causes) or "Too large resource version" in self.message
