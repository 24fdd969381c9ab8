"""What is wrong with a field, in the words and shapes of a Kubernetes API server."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class ErrorKind(StrEnum):
    """The cause reasons of an API Status, and three that never reach one as a cause."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    DUPLICATE = "FieldValueDuplicate"
    TOO_MANY = "FieldValueTooMany"
    TOO_LONG = "FieldValueTooLong"
    NOT_SUPPORTED = "FieldValueNotSupported"
    NOT_FOUND = "FieldValueNotFound"
    FORBIDDEN = "FieldValueForbidden"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"
    DENIED = "Denied"
    DECODE = "Decode"
    UNKNOWN = "UnknownField"


_LEAD = {
    ErrorKind.REQUIRED: "Required value",
    ErrorKind.INVALID: "Invalid value",
    ErrorKind.DUPLICATE: "Duplicate value",
    ErrorKind.TOO_MANY: "Too many",
    ErrorKind.TOO_LONG: "Too long",
    ErrorKind.NOT_SUPPORTED: "Unsupported value",
    ErrorKind.NOT_FOUND: "Not found",
    ErrorKind.FORBIDDEN: "Forbidden",
    ErrorKind.TYPE_INVALID: "Invalid value",
    ErrorKind.INTERNAL: "Internal error",
    ErrorKind.DENIED: "Denied",
    ErrorKind.DECODE: "Cannot decode",
    ErrorKind.UNKNOWN: "Unknown field",
}
_WITH_VALUE = {
    ErrorKind.INVALID,
    ErrorKind.DUPLICATE,
    ErrorKind.TOO_MANY,
    ErrorKind.NOT_SUPPORTED,
    ErrorKind.NOT_FOUND,
    ErrorKind.TYPE_INVALID,
}


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Final = _Omitted()  # as a finding's value: the message leaves it out


@dataclass(frozen=True, slots=True)
class FieldError:
    """One finding: the field, what was found there, what would be accepted."""

    kind: ErrorKind
    field: str
    detail: str = ""
    value: Any = None
    since: str = dataclasses.field(default="", compare=False)  # the minor that knows a field first which this one lacks

    @property
    def message(self) -> str:
        """The text after the field path, as a server writes it."""
        parts = [_LEAD[self.kind]]
        if self.kind in _WITH_VALUE and self.value is not OMITTED:
            parts.append(show(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


_QUOTED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_SHOWN = 200  # letters of a value in a message


def show(value: Any) -> str:
    """A value as an API server prints it in messages: JSON, cut where it would fill the screen."""
    if isinstance(value, str):
        text = '"' + value.translate(_QUOTED) + '"'
    elif value is None:
        text = "null"
    else:
        if isinstance(value, list):
            value = value[:_SHOWN]  # the rest would be cut anyway
        try:
            text = msgspec.json.encode(value).decode()
        except (TypeError, ValueError):
            text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(ErrorKind.REQUIRED, field, detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorKind.INVALID, field, detail, value)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(ErrorKind.DUPLICATE, field, "", value)


def too_many(field: str, found: int, most: int) -> FieldError:
    return FieldError(ErrorKind.TOO_MANY, field, f"must have at most {most} item{'s' if most != 1 else ''}", found)


def too_long(field: str, most: int) -> FieldError:
    return FieldError(ErrorKind.TOO_LONG, field, f"may not be more than {most} bytes")


def not_supported(field: str, value: Any, accepted: Iterable[str]) -> FieldError:
    words = ", ".join(f'"{word}"' for word in accepted)
    return FieldError(ErrorKind.NOT_SUPPORTED, field, f"supported values: {words}", value)


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(ErrorKind.NOT_FOUND, field, "", value)


def forbidden(field: str, detail: str = "") -> FieldError:
    return FieldError(ErrorKind.FORBIDDEN, field, detail)


def denied(detail: str) -> FieldError:
    return FieldError(ErrorKind.DENIED, "", detail)


def at(path: str, name: str) -> str:
    """The path of a member."""
    return f"{path}.{name}" if path else name
