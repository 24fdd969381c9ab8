"""A write as the API server takes it: decode, defaults, mutating admission, gates, rules, validating admission.

Pure: what exists is given, randomness is given, nothing is stored. An accepted object comes back as it would be kept,
without what only a store knows (uid, creationTimestamp, resourceVersion).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from kohort.api import decode, defaults, definitions, meta, result, storage_form
from kohort.api import patch as patches
from kohort.api.errors import ErrorKind, FieldError, invalid
from kohort.api.registry import find
from kohort.api.result import WriteResult
from kohort.api.scheduling import admission
from kohort.api.update_strategy import reset_fields, set_or_remove
from kohort.api.validation import (
    RejectedError,
    check_admitted,
    check_identity,
    check_resource_version,
    check_valid,
    set_namespace,
    validate_create,
    validate_update,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kohort.api.kind import Context, Kind, Object

FieldValidation = Literal["Strict", "Warn", "Ignore"]
encode: Final = msgspec.json.Encoder().encode


def create(
    obj: Object,
    ctx: Context,
    *,
    priority_classes: Sequence[Object] = (),
    existing: Iterable[Object] = (),
    namespace: str | None = None,
    suffix: Callable[[], str] | None = None,
    field_validation: FieldValidation = "Warn",
    kind: Kind | None = None,
) -> WriteResult:
    """A POST. `existing`: what else is in the namespace; `suffix`: the random end of a generated name."""
    read = decode_create(obj, ctx, namespace=namespace, suffix=suffix, field_validation=field_validation, kind=kind)
    if read.object is None:
        return read
    return complete_create(
        read.object,
        ctx,
        kind=kind or _kind(obj),
        priority_classes=priority_classes,
        existing=existing,
        warnings=read.warnings,
    )


def decode_create(
    obj: Object,
    ctx: Context,
    *,
    namespace: str | None = None,
    suffix: Callable[[], str] | None = None,
    field_validation: FieldValidation = "Warn",
    kind: Kind | None = None,
) -> WriteResult:
    """The first half of `create`: decoded, with defaults and a name, as mutating admission sees it."""
    warnings: list[str] = []  # of the body, whatever becomes of it
    try:
        kind = _served(kind or _kind(obj), ctx)
        warnings = _decoded(kind, obj, ctx, field_validation)
        new = defaulted(obj, kind, ctx)
        set_namespace(kind, new, namespace)
        meta.prepare_create(new, suffix)
    except RejectedError as rejected:
        return rejected.with_warnings(warnings)
    return WriteResult(200, object=new, warnings=tuple(warnings))


def complete_create(
    new: Object,
    ctx: Context,
    *,
    kind: Kind | None,
    priority_classes: Sequence[Object] = (),
    existing: Iterable[Object] = (),
    warnings: Sequence[str] = (),
) -> WriteResult:
    """The second half: defaulted, admitted and validated in place, as it will be stored."""
    try:
        kind = _served(kind, ctx)
        check_admitted(kind, new, admission.mutate(kind, new, ctx, priority_classes))
        _prepare(kind, new, None, ctx)
        check_valid(kind, new, validate_create(kind, new, ctx))
        _storable(kind, new, list(existing), priority_classes)
        meta.count(kind, new)
    except RejectedError as rejected:
        return rejected.with_warnings(warnings)
    return WriteResult(201, object=_read(kind, new, ctx), warnings=(*warnings, *kind.warn(new, ctx)))


def update(
    new: Object,
    old: Object,
    ctx: Context,
    *,
    subresource: str = "",
    field_validation: FieldValidation = "Warn",
    kind: Kind | None = None,
    named: bool = True,
) -> WriteResult:
    """A PUT of `new` over the stored `old`, on the object itself or on its "status".

    `named`: a uid in the body says which object is meant; if not, it is a change to be validated as any other.
    """
    read = decode_update(
        new, old, ctx, subresource=subresource, field_validation=field_validation, kind=kind, named=named
    )
    if read.object is None:
        return read
    return complete_update(
        read.object, old, ctx, kind=kind or _kind(new), subresource=subresource, warnings=read.warnings
    )


def decode_update(
    new: Object,
    old: Object,
    ctx: Context,
    *,
    subresource: str = "",
    field_validation: FieldValidation = "Warn",
    kind: Kind | None = None,
    named: bool = True,
    prior: Object | None = None,
    by_patch: bool = False,
) -> WriteResult:
    """The first half of `update`: decoded, with defaults, for this object and its version.

    `prior`: `old` with its defaults, where the caller has it already; what `new` shares with it needs no look.
    `by_patch`: a patch made it, which is to blame if it cannot be decoded.
    """
    warnings: list[str] = []
    try:
        kind = _served(kind or _kind(new), ctx, subresource)
        warnings = _decoded(kind, new, ctx, field_validation, prior, by_patch=by_patch)
        old = defaulted(old, kind, ctx) if prior is None else prior
        new = defaulted(new, kind, ctx, prior)
        check_identity(kind, new, old, named)
        check_resource_version(kind, new, old)
        reset_fields(kind, new, old, subresource)
        meta.prepare_update(new, old)
    except RejectedError as rejected:
        return rejected.with_warnings(warnings)
    return WriteResult(200, object=new, warnings=tuple(warnings))


def complete_update(
    new: Object,
    old: Object,
    ctx: Context,
    *,
    kind: Kind | None,
    subresource: str = "",
    warnings: Sequence[str] = (),
    prior: Object | None = None,
) -> WriteResult:
    """The second half: admitted and validated in place, as it will be stored.

    `prior`: `old` with its defaults, if that is known.
    """
    try:
        kind = _served(kind, ctx, subresource)
        old = defaulted(old, kind, ctx) if prior is None else prior
        check_admitted(kind, new, admission.mutate(kind, new, ctx, (), old))
        _prepare(kind, new, old, ctx)
        check_valid(kind, new, validate_update(kind, new, old, ctx, subresource))
        meta.count(kind, new, old, subresource)
    except RejectedError as rejected:
        return rejected.with_warnings(warnings)
    # A pod has its warnings once, and whoever writes a status is not who can mend the rest.
    remarks = () if kind.kind == "Pod" or subresource == "status" else kind.warn(new, ctx)
    return WriteResult(200, object=_read(kind, new, ctx), warnings=(*warnings, *remarks))


def patch(
    change: Any,
    old: Object,
    ctx: Context,
    *,
    content_type: str,
    subresource: str = "",
    field_validation: FieldValidation = "Warn",
    kind: Kind | None = None,
) -> WriteResult:
    """A PATCH of the stored `old` by a merge, JSON or strategic merge patch (not server-side apply)."""
    kind = kind or _kind(old)
    prior = defaulted(old, kind, ctx) if kind is not None else None
    read = apply_patch(change, old, ctx, content_type=content_type, kind=kind, prior=prior)
    if read.object is None:
        return read
    put = decode_update(
        read.object,
        old,
        ctx,
        subresource=subresource,
        field_validation=field_validation,
        kind=kind,
        named=False,
        prior=prior,
        by_patch=True,
    )
    if put.object is None:
        return put
    return complete_update(put.object, old, ctx, kind=kind, subresource=subresource, warnings=put.warnings, prior=prior)


def apply_patch(
    change: Any,
    old: Object,
    ctx: Context,
    *,
    content_type: str,
    kind: Kind | None = None,
    prior: Object | None = None,
) -> WriteResult:
    """The first third of `patch`: what the patch makes of the object. `decode_update` says whether it can be decoded.

    `prior`: `old` with its defaults, where the caller has it already. Members that the patch leaves alone are shared.
    """
    try:
        kind = _served(kind or _kind(old), ctx)
        prior = defaulted(old, kind, ctx) if prior is None else prior
        new = _patched(kind, change, prior, ctx, content_type)
    except RejectedError as rejected:
        return rejected.result
    return WriteResult(200, object=new)


def check(obj: Object, ctx: Context, kind: Kind | None = None) -> list[FieldError]:
    """Everything that is wrong with a document: shape, unknown fields, metadata, declared and hand-written rules."""
    kind = kind or _kind(obj)
    if kind is None:
        return [FieldError(ErrorKind.INVALID, "kind", "not a kind that is known here", obj.get("kind"))]
    found = decode.decode(kind.schema, obj, ctx.release.minor)
    if any(error.kind is ErrorKind.DECODE for error in found):
        return found
    new = defaulted(obj, kind, ctx)
    meta.prepare_create(new)
    _prepare(kind, new, None, ctx)
    return [*found, *validate_create(kind, new, ctx).every]


def defaulted(obj: Object, kind: Kind, ctx: Context, prior: Object | None = None) -> Object:
    """A copy of a decodable object with its defaults, in the form in which it would be kept (as `prior` is already)."""
    new = storage_form.to_storage(kind, obj, ctx.release.minor, prior)
    defaults.apply(kind.schema, new, ctx)
    kind.default(new, ctx)
    return new


def stored_with_defaults(stored: Object, kind: Kind, ctx: Context) -> Object:
    """A copy of a stored object with its defaults. It is in form already, but for a status, which may hold nulls."""
    if storage_form.writes_nulls(kind) or not (kind.native or find(kind.api_version, kind.kind) is kind):
        return defaulted(stored, kind, ctx)
    settled = {name: value for name, value in stored.items() if name != "status"}
    return defaulted(stored, kind, ctx, settled)


def sharing(new: Object, prior: Object) -> Object:
    """`new`, with the members of `prior` where they are the same to the letter: most of what an update sends back."""
    return {name: _shared(value, prior.get(name)) for name, value in new.items()}


def _shared(value: Any, stored: Any) -> Any:
    alike = isinstance(value, dict) and value == stored and encode(value) == encode(stored)
    return stored if alike else value


def _read(kind: Kind, obj: Object, ctx: Context) -> Object:
    """What is kept is decoded when it is read: defaults come back for what the gates took."""
    defaults.apply(kind.schema, obj, ctx)
    kind.default(obj, ctx)
    return obj


# ---- the steps, each of which may end the write


def _kind(obj: Object) -> Kind | None:
    version, name = obj.get("apiVersion"), obj.get("kind")
    return find(version, name) if isinstance(version, str) and isinstance(name, str) else None


def _served(kind: Kind | None, ctx: Context, subresource: str = "") -> Kind:
    if kind is None or not kind.served(ctx) or (subresource == "status" and not kind.status):
        raise RejectedError(result.not_served())
    return kind


def _fresh(obj: Any, prior: Object | None) -> Any:
    """What is not, as it is, in the stored object: that was looked at when it came."""
    if prior is None or not isinstance(obj, dict):
        return obj
    return {name: value for name, value in obj.items() if value is not prior.get(name)}


def _decoded(
    kind: Kind, obj: Any, ctx: Context, mode: FieldValidation, prior: Object | None = None, *, by_patch: bool = False
) -> list[str]:
    """The warnings about a body that fits."""
    fresh = _fresh(obj, prior)
    found = decode.decode(kind.schema, fresh, ctx.release.minor)
    if by_patch:
        _fitting(found, fresh, mode)
    for member, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = obj.get(member) if isinstance(obj, dict) else None
        if given and given != wanted:
            raise RejectedError(
                result.bad_request(f"the {member} in the data ({given}) does not match the expected {wanted}")
            )
    wrong = [error for error in found if error.kind is ErrorKind.DECODE]
    replaced = [error for error in found if error.kind is ErrorKind.FORBIDDEN]
    unknown = [f'unknown field "{error.field}"' for error in found if error.kind is not ErrorKind.DECODE]
    lead = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    if wrong:
        raise RejectedError(result.bad_request(lead + "; ".join(map(str, wrong))))
    if unknown and mode == "Strict":
        hints = [f"; {error.field}: {error.message}" for error in replaced]
        raise RejectedError(result.bad_request(lead + "strict decoding error: " + ", ".join(unknown) + "".join(hints)))
    if replaced:
        raise RejectedError(result.invalid(kind, meta.name_of(obj), replaced))
    return unknown if mode == "Warn" else []


def unknown_fields(kind: Kind, obj: Any, ctx: Context) -> list[str]:
    """What a body has that its kind does not, in the words of a strict server."""
    found = decode.decode(kind.schema, obj, ctx.release.minor)
    return [f'unknown field "{error.field}"' for error in found if error.kind is not ErrorKind.DECODE]


def _patched(kind: Kind, change: Any, prior: Object, ctx: Context, content_type: str) -> Object:
    target, minor = storage_form.to_response(kind, prior), ctx.release.minor
    definition = definitions.of_kind(minor, kind.group, kind.version, kind.kind)
    try:
        if content_type == patches.JSON:
            new = patches.json_patch(target, change)
        elif content_type == patches.STRATEGIC and definition is not None:
            new = patches.strategic(target, change, definition, minor)
        elif content_type == patches.MERGE:
            new = patches.merge(target, _mapping(change))
        else:
            text = "the body of the request was in an unknown format"
            raise RejectedError(WriteResult(415, "UnsupportedMediaType", message=text))
        return _mapping(new)
    except patches.PatchError as error:
        if error.malformed:
            raise RejectedError(result.bad_request(f"error decoding patch: {error}")) from None
        if error.too_large:
            text = f"Request entity too large: {error}"
            raise RejectedError(WriteResult(413, "RequestEntityTooLarge", message=text)) from None
        text = "the server rejected our request due to an error in our request"
        raise RejectedError(WriteResult(422, "Invalid", message=text)) from None


def _mapping(value: Any) -> Object:
    if not isinstance(value, dict):
        raise patches.PatchError("expected an object", malformed=True)
    return value


def _fitting(found: list[FieldError], new: Object, mode: FieldValidation) -> None:
    """What a patch makes of the object has to decode; the blame is on the patch."""
    refusing = {ErrorKind.DECODE, ErrorKind.UNKNOWN} if mode == "Strict" else {ErrorKind.DECODE}
    wrong = [error for error in found if error.kind in refusing]
    if wrong:
        cause = invalid("patch", meta.name_of(new), "; ".join(map(str, wrong)))
        raise RejectedError(WriteResult(422, "Invalid", (cause,), message=f' "" is invalid: {cause}'))


def _storable(kind: Kind, new: Object, existing: list[Object], priority_classes: Sequence[Object]) -> None:
    if new["metadata"].get("resourceVersion"):
        raise RejectedError(WriteResult(500, message="resourceVersion should not be set on objects to be created"))
    check_admitted(kind, new, admission.validate(kind, new, existing, priority_classes))
    if any(_same_object(kind, one, meta.name_of(new)) for one in existing):
        raise RejectedError(result.already_exists(kind, meta.name_of(new)))


def _same_object(kind: Kind, other: Object, name: str) -> bool:
    group = str(other.get("apiVersion") or "").rpartition("/")[0]
    return (group, other.get("kind"), meta.name_of(other)) == (kind.group, kind.kind, name)


def _prepare(kind: Kind, new: Object, old: Object | None, ctx: Context) -> None:
    if old is None and kind.status:
        set_or_remove(new, "status", kind.first_status(new) or ({} if kind.native else None))
    defaults.drop_gated(kind.schema, new, old, ctx)
