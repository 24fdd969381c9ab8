"""The body of a write: decoding, the check of its kind, warnings about it; and the error for one that is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import admit
from kohort.api.errors import invalid
from kohort.api.sameness import whole
from kohort.server import codec, options, randomness, status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kohort.api.kind import Context, Object
    from kohort.api.result import WriteResult
    from kohort.server.requestinfo import RequestInfo


def decode_body(info: RequestInfo, ctx: Context | None = None) -> Any:
    """The body of a write as a value; repeated keys are warned of, or refused (with what else is not known)."""
    media = codec.media_type(info.content_type) or codec.JSON
    if media not in codec.READ:
        raise status.unsupported_media_type(codec.READ)
    value, warnings = codec.parse(info.request.body, info.resource.kind, media, composed=info.request.composed)
    if value is None:
        return {}
    if not isinstance(value, dict):
        kind = info.resource.kind
        raise status.bad_request(
            f'{kind} in version "{info.resource.version}" cannot be handled as a {kind}: json: cannot unmarshal '
            f"{_go_type(value)} into Go value of type object"
        )
    if not info.resource.native:
        value = whole(value)
    _check_kind(info, value, ctx)
    add_warnings(info, warnings, admit.unknown_fields(info.resource.rules, value, ctx) if warnings and ctx else ())
    return value


def _check_kind(info: RequestInfo, body: Object, ctx: Context | None) -> None:
    """A custom resource has to say what it is; then its kind is a field like others."""
    one, given = info.resource, body.get("kind")
    if one.native:
        return
    if not isinstance(given, str) or not given:
        text = f"the object provided is unrecognized (must be of type {one.kind}): 'kind' is missing, or not a string"
        raise status.bad_request(text)
    if not body.get("apiVersion"):
        text = f"the API version in the data () does not match the expected API version ({one.api_version})"
        raise status.bad_request(text)
    if given == one.kind or body["apiVersion"] != one.api_version:
        return
    if ctx is None or admit.decode_create({**body, "kind": one.kind}, ctx, kind=one.rules).code == 400:
        return  # something else cannot be read
    name = generate_name(body.get("metadata") or {})
    raise status.invalid(one.group, given, name, [invalid("kind", given, f"must be {one.kind}")])


def _go_type(value: Any) -> str:
    return {list: "array", str: "string", bool: "bool", type(None): "null"}.get(type(value), "number")


def add_warnings(info: RequestInfo, warnings: list[str], unknown: Sequence[str] = ()) -> None:
    mode = options.one(info.query, "fieldValidation") or "Warn"
    if warnings and mode == "Strict":
        one = info.resource
        lead = f'{one.kind} in version "{one.version}" cannot be handled as a {one.kind}: strict decoding error: '
        raise status.bad_request(lead + ", ".join([*unknown, *warnings]))
    if mode == "Warn":
        info.warnings += warnings


def refused(answer: WriteResult) -> status.ApiError:
    """What upstream answers with 500 though the client is wrong is 400 here (a listed difference)."""
    if answer.code == 500:
        return status.ApiError(status.failure(400, "BadRequest", answer.message), warnings=answer.warnings)
    return status.from_result(answer)


def check_patch_type(info: RequestInfo, media: str) -> None:
    accepted = [
        "application/json-patch+json",
        "application/merge-patch+json",
        *(["application/strategic-merge-patch+json"] if info.resource.definition else []),
        options.APPLY,
    ]
    if media not in accepted:
        raise status.unsupported_media_type(accepted)


def decode_patch(info: RequestInfo) -> Any:
    try:
        value, _ = codec.parse_json(info.request.body, "", composed=True)
    except status.NestingError:
        raise
    except status.ApiError:
        raise status.bad_request("invalid JSON patch") from None
    return value if info.resource.native else whole(value)


_KEPT: Final = 58  # characters of generateName that are kept


def generate_name(meta: Mapping[str, Any]) -> str:
    """The name of a new object, made up where only generateName is given."""
    beginning = meta.get("generateName")
    return meta.get("name") or (beginning[:_KEPT] + randomness.suffix() if beginning else "")
