"""What a definition cannot say about an object: the rules of its kind, and those that look at other objects. Pure.

There is no rule here. They are those that the embedded server has (`Kind.validate`, `Kind.validate_update` and
`kohort.gang.admission`, found through the bundles); an API server asks for them once the definition is satisfied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kohort.api import admit, meta, result
from kohort.api.bundle import bundles, derived
from kohort.api.errors import ErrorKind, FieldError
from kohort.api.kind import Kind, Object
from kohort.api.registry import find, kinds
from kohort.gang import admission
from kohort.gang.compile import CompileContext
from kohort.webhook.review import ALLOWED, Answer, Question


@derived
def checked() -> dict[str, tuple[Kind, ...]]:
    """Kinds that have such rules, by the name of their controllers."""
    return {
        one.controllers[0].name: tuple(kind for group in one.groups for kind in kinds(group) if _has_rules(kind))
        for one in bundles()
        if one.controllers and not one.native
    }


def _has_rules(kind: Kind) -> bool:
    own = any("kohort.api.kind" not in (check.__module__ or "") for check in (kind.validate, kind.validate_update))
    return own or admission.of(kind.group, kind.kind) is not None


def webhook_rules(controllers: Collection[str]) -> list[Object]:
    """`rules` of a ValidatingWebhookConfiguration."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in sorted(controllers):
        for kind in checked()[name]:
            found.setdefault((kind.group, kind.version), []).append(kind.plural)
    return [
        {"apiGroups": [group], "apiVersions": [version], "resources": names, "operations": ["CREATE", "UPDATE"]}
        for (group, version), names in found.items()
    ]


def check(asked: Question, ctx: CompileContext, controllers: Collection[str]) -> Answer:
    """`controllers`: those whose kinds are looked at. Kinds of others are theirs to judge."""
    kind, new, old = find(asked.api_version, asked.kind.kind), asked.object, asked.old_object
    if kind is None or not isinstance(new, dict) or asked.sub_resource or asked.operation not in {"CREATE", "UPDATE"}:
        return ALLOWED
    if not any(kind in checked().get(name, ()) for name in controllers):
        return ALLOWED
    if (new.get("metadata") or {}).get("deletionTimestamp"):
        return ALLOWED  # whoever takes a finalizer away is not to be stopped by anything
    if asked.operation == "CREATE" or not isinstance(old, dict):
        found = _findings(kind, new, None, ctx)
    else:
        found = _findings(kind, new, old, ctx)
        if found.errors:
            found = _fresh(found, _findings(kind, old, old, ctx))
    return _answer(kind, meta.name_of(new), found)


def _findings(kind: Kind, new: Object, old: Object | None, ctx: CompileContext) -> admission.Findings:
    """Of the kind itself; then, if it has nothing to say, what others have."""
    whole = admit.defaulted(new, kind, ctx)
    before = admit.defaulted(old, kind, ctx) if old is not None else None
    errors = kind.validate(whole, ctx) if before is None else kind.validate_update(whole, before, ctx)
    if errors:
        return admission.Findings(tuple(errors))
    rules = admission.of(kind.group, kind.kind)
    between = rules.validate(whole, before, ctx) if rules is not None else admission.NOTHING
    return admission.Findings(between.errors, (*between.warnings, *kind.warn(whole, ctx)))


def _fresh(found: admission.Findings, known: admission.Findings) -> admission.Findings:
    """What was wrong before is no reason to refuse a change: the webhook was away when it came."""
    before = {_told(error) for error in known.errors}
    errors = tuple(error for error in found.errors if _told(error) not in before)
    return admission.Findings(errors, (*found.warnings, *(f"{one}" for one in found.errors if _told(one) in before)))


def _told(error: FieldError) -> tuple[Any, ...]:
    return error.kind, error.field, error.message


def _answer(kind: Kind, name: str, found: admission.Findings) -> Answer:
    if not found.errors:
        return Answer(warnings=_short(found.warnings))
    denied = [error for error in found.errors if error.kind is ErrorKind.DENIED]
    refusal = result.forbidden(kind, name, denied[0].detail) if denied else result.invalid(kind, name, found.errors)
    return Answer(refusal.status(), _short(found.warnings))


def _short(warnings: Iterable[str]) -> tuple[str, ...]:
    """An API server cuts what is longer, and more than that it does not show."""
    return tuple(text if len(text) <= 256 else f"{text[:255]}…" for text in list(warnings)[:16])
