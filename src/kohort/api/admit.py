"""A write as the API server takes it: decode, defaults, mutating admission, gates, rules, validating admission.

Pure: what exists is given, randomness is given, nothing is stored. An accepted object comes back as it would be kept,
without what only a store knows (uid, creationTimestamp, resourceVersion).
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

from kohort.api import answer, decode, defaults, meta, rules, shape
from kohort.api.answer import Answer
from kohort.api.errors import ErrorKind, FieldError, invalid
from kohort.api.registry import find
from kohort.api.rules import Look
from kohort.api.scheduling import admission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kohort.api.kind import Context, Kind, Object

FieldValidation = Literal["Strict", "Warn", "Ignore"]
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


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
) -> Answer:
    """A POST. `existing`: what else is in the namespace; `suffix`: the random end of a generated name."""
    kind = kind or _kind(obj)
    if kind is None or not kind.served(ctx):
        return answer.unserved()
    broken, warnings = _decoded(kind, obj, ctx, field_validation)
    if broken is not None:
        return broken
    new = defaulted(obj, kind, ctx)
    if namespace is not None and kind.namespaced:
        if new["metadata"].setdefault("namespace", namespace) != namespace:
            return answer.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
    meta.prepare_create(new, suffix)
    name = meta.name_of(new)
    others = list(existing)
    why = admission.mutate(kind, new, ctx, priority_classes)
    if why is not None:
        return answer.denied(kind, name, why)
    _prepare(kind, new, None, ctx)
    found = _judge(kind, new, ctx)
    if found:
        return answer.refused(kind, name, found, warnings)
    if new["metadata"].get("resourceVersion"):
        return Answer(500, message="resourceVersion should not be set on objects to be created")
    why = admission.validate(kind, new, ctx, others, priority_classes)
    if why is not None:
        return answer.denied(kind, name, why)
    if any(_same_object(kind, one, name) for one in others):
        return answer.exists(kind, name)
    defaults.apply(kind.schema, new, ctx)
    kind.default(new, ctx)
    return Answer(201, object=new, warnings=(*warnings, *kind.warn(new, ctx)))


def update(
    new: Object,
    old: Object,
    ctx: Context,
    *,
    subresource: str = "",
    field_validation: FieldValidation = "Warn",
    kind: Kind | None = None,
) -> Answer:
    """A PUT of `new` over the stored `old`, on the object itself or on its "status"."""
    kind = kind or _kind(new)
    if kind is None or not kind.served(ctx) or (subresource == "status" and not kind.status):
        return answer.unserved()
    broken, warnings = _decoded(kind, new, ctx, field_validation)
    if broken is not None:
        return broken
    new, old = defaulted(new, kind, ctx), defaulted(old, kind, ctx)
    before = old["metadata"]
    name = str(before.get("name") or "")
    clash = _addressed(kind, new, old, name)
    if clash is not None:
        return clash
    _keep(kind, new, old, subresource)
    meta.prepare_update(new, old)
    why = admission.mutate(kind, new, ctx, (), old)
    if why is not None:
        return answer.denied(kind, name, why)
    _prepare(kind, new, old, ctx)
    found = _judge_update(kind, new, old, ctx, subresource)
    if found:
        return answer.refused(kind, name, found, warnings)
    defaults.apply(kind.schema, new, ctx)
    kind.default(new, ctx)
    return Answer(200, object=new, warnings=(*warnings, *kind.warn(new, ctx)))


def check(obj: Object, ctx: Context, kind: Kind | None = None) -> list[FieldError]:
    """Everything that is wrong with a document: shape, unknown fields, metadata, declared and hand-written rules."""
    kind = kind or _kind(obj)
    if kind is None:
        return [FieldError(ErrorKind.INVALID, "kind", "not a kind that is known here", obj.get("kind"))]
    found = decode.decode(kind.schema, obj, ctx.generation.minor)
    if any(error.kind is ErrorKind.DECODE for error in found):
        return found
    new = defaulted(obj, kind, ctx)
    meta.prepare_create(new)
    _prepare(kind, new, None, ctx)
    return [*found, *_judge(kind, new, ctx)]


def defaulted(obj: Object, kind: Kind, ctx: Context) -> Object:
    """A copy of a decodable object with its defaults, in the form in which it would be kept."""
    new = shape.stored(kind, deepcopy(obj), ctx.generation.minor)
    defaults.apply(kind.schema, new, ctx)
    kind.default(new, ctx)
    return new


def _kind(obj: Object) -> Kind | None:
    version, name = obj.get("apiVersion"), obj.get("kind")
    return find(version, name) if isinstance(version, str) and isinstance(name, str) else None


def _same_object(kind: Kind, other: Object, name: str) -> bool:
    group = str(other.get("apiVersion") or "").rpartition("/")[0]
    return (group, other.get("kind"), meta.name_of(other)) == (kind.group, kind.kind, name)


def _decoded(kind: Kind, obj: Any, ctx: Context, mode: FieldValidation) -> tuple[Answer | None, list[str]]:
    """The refusal of a body that does not fit, or the warnings about one that does."""
    found = decode.decode(kind.schema, obj, ctx.generation.minor)
    wrong = [error for error in found if error.kind is ErrorKind.DECODE]
    unknown = [f'unknown field "{error.field}"' for error in found if error.kind is ErrorKind.UNKNOWN]
    lead = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    if wrong:
        return answer.bad_request(lead + "; ".join(map(str, wrong))), []
    if unknown and mode == "Strict":
        return answer.bad_request(lead + "strict decoding error: " + ", ".join(unknown)), []
    return None, unknown if mode == "Warn" else []


def _addressed(kind: Kind, new: Object, old: Object, name: str) -> Answer | None:
    """Is this update for that object, and for the version of it that is stored?"""
    given, before = new["metadata"], old["metadata"]
    if (given.get("name") or "") != name:
        return answer.bad_request("the name of the object does not match the name on the URL")
    if given.get("namespace") and given["namespace"] != before.get("namespace"):
        return answer.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if given.get("uid") and before.get("uid") and given["uid"] != before["uid"]:
        return answer.conflict(
            kind, name, f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {before['uid']}"
        )
    version = given.get("resourceVersion") or ""
    if version in ("", "0"):
        if kind.needs_version or not kind.native:
            return answer.unversioned(
                kind, name, [invalid("metadata.resourceVersion", 0, "must be specified for an update")]
            )
    elif before.get("resourceVersion") and version != before["resourceVersion"]:
        return answer.conflict(kind, name, _MODIFIED)
    return None


def _keep(kind: Kind, new: Object, old: Object, subresource: str) -> None:
    """The endpoint decides what an update may touch: the main one not the status, that of the status nothing else."""
    if subresource == "status":
        for member in kind.schema.fields:
            if member != "status":
                _put(new, member, old.get(member))
        version = new["metadata"].get("resourceVersion")
        new["metadata"] = deepcopy(old["metadata"])
        if version:
            new["metadata"]["resourceVersion"] = version
    elif kind.status:
        _put(new, "status", old.get("status"))


def _put(obj: Object, member: str, value: Any) -> None:
    if value is None:
        obj.pop(member, None)
    else:
        obj[member] = deepcopy(value)


def _prepare(kind: Kind, new: Object, old: Object | None, ctx: Context) -> None:
    if old is None and kind.status and "status" in kind.schema.fields:
        new["status"] = {}
    defaults.drop_gated(kind.schema, new, old, ctx)


def _judge(kind: Kind, new: Object, ctx: Context) -> list[FieldError]:
    declared = rules.check_schema(kind.schema, new, None, Look(ctx, update=False, native=kind.native))
    return [*meta.check_create(kind, new), *kind.validate(new, ctx), *declared]


def _judge_update(kind: Kind, new: Object, old: Object, ctx: Context, subresource: str) -> list[FieldError]:
    by_hand = kind.validate_status if subresource == "status" else kind.validate_update
    declared = rules.check_schema(kind.schema, new, old, Look(ctx, update=True, native=kind.native))
    return [*meta.check_update(new, old), *by_hand(new, old, ctx), *declared]
