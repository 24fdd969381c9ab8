"""Validation of a write: is it for this object, for its stored version, within the rules?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.api import meta, result, rules
from kohort.api.errors import ErrorKind, FieldError, invalid
from kohort.api.result import WriteResult
from kohort.api.rules import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Context, Kind, Object

_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


class RejectedError(Exception):
    """The write ends here with this result."""

    def __init__(self, result: WriteResult) -> None:
        self.result = result

    def with_warnings(self, warnings: Sequence[str]) -> WriteResult:
        """With the warnings about the body."""
        return replace(self.result, warnings=(*warnings, *self.result.warnings))


def set_namespace(kind: Kind, new: Object, namespace: str | None) -> None:
    if namespace is not None and kind.namespaced:
        _same_namespace(new["metadata"].setdefault("namespace", namespace), namespace)


def _same_namespace(given: str, wanted: str | None) -> None:
    if given != wanted:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise RejectedError(result.bad_request(text))


def check_identity(kind: Kind, new: Object, old: Object, named: bool) -> None:
    """Is this update for that object?"""
    given, before = new["metadata"], old["metadata"]
    if given.get("name") != before.get("name"):
        raise RejectedError(result.bad_request("the name of the object does not match the name on the URL"))
    if given.get("namespace"):
        _same_namespace(given["namespace"], before.get("namespace"))
    if named and given.get("uid") and before.get("uid") and given["uid"] != before["uid"]:
        text = f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {before['uid']}"
        raise RejectedError(result.conflict(kind, meta.name_of(old), text))


def check_resource_version(kind: Kind, new: Object, old: Object) -> None:
    """Is it for the version that is stored?"""
    version, stored = new["metadata"].get("resourceVersion"), old["metadata"].get("resourceVersion")
    if version in (None, "", "0"):
        if kind.needs_version or not kind.native:
            cause = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise RejectedError(result.version_required(kind, meta.name_of(old), [cause]))
    elif not version.isdecimal():
        raise RejectedError(WriteResult(500, message=f'resourceVersion "{version}" is not a number'))
    elif stored and version != stored:
        raise RejectedError(result.conflict(kind, meta.name_of(old), _MODIFIED))


def check_admitted(kind: Kind, new: Object, why: str | None) -> None:
    if why is not None:
        raise RejectedError(result.forbidden(kind, meta.name_of(new), why))


def _check_no_errors(kind: Kind, new: Object, found: list[FieldError]) -> None:
    if found:
        raise RejectedError(result.invalid(kind, meta.name_of(new), found))


def check_valid(kind: Kind, new: Object, found: ValidationErrors) -> None:
    """The rules. In front of a CRD, handwritten rules are a webhook's, which is called once the schema is satisfied."""
    if not kind.webhook:
        _check_no_errors(kind, new, found.every)
        return
    _check_no_errors(kind, new, found.from_schema)
    if found.every:
        raise RejectedError(result.denied_by_webhook(kind, found.every))


class ValidationErrors(NamedTuple):
    """What the rules say, by who says it."""

    metadata: list[FieldError]
    handwritten: list[FieldError]
    declared: list[FieldError]

    @property
    def every(self) -> list[FieldError]:
        return [*self.metadata, *self.handwritten, *self.declared]

    @property
    def from_schema(self) -> list[FieldError]:
        """What a CRD's schema finds: also a wrong type deep in a pod template, which our schemas leave to the hand."""
        typed = [error for error in self.handwritten if error.kind is ErrorKind.TYPE_INVALID]
        return [*self.metadata, *typed, *self.declared]


def validate_create(kind: Kind, new: Object, ctx: Context) -> ValidationErrors:
    declared = rules.check_schema(kind.schema, new, None, Operation(ctx, update=False, native=kind.native))
    return ValidationErrors(meta.check_create(kind, new), kind.validate(new, ctx), declared)


def validate_update(kind: Kind, new: Object, old: Object, ctx: Context, subresource: str) -> ValidationErrors:
    handwritten = kind.validate_status if subresource == "status" else kind.validate_update
    if subresource in kind.subresources:
        handwritten = kind.subresources[subresource].validate
    declared = rules.check_schema(kind.schema, new, old, Operation(ctx, update=True, native=kind.native))
    return ValidationErrors(meta.check_update(new, old, kind), handwritten(new, old, ctx), declared)
