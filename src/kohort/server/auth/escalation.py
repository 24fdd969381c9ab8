"""Nobody gives away what they do not have: the check on writes of roles and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.server import status
from kohort.server.auth import rules, users
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.auth.rbac import GROUP
from kohort.server.auth.rules import EVERYTHING, Rule, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kohort.api.kind import Object
    from kohort.kube.wire import User
    from kohort.server.auth.rbac import Authorizer

_LISTED = 100  # rules of a refusal
_COLLECTED = ("ownerReferences", "finalizers")  # the garbage collector may always write these


def check(authorizer: Authorizer, user: User, resource: str, new: Object, old: Object | None = None) -> None:
    """ApiError if `user` may not write this role or binding."""
    if users.MASTERS in user.groups or (old is not None and _only_collected(new, old)):
        return
    if resource.endswith("bindings"):
        _check_binding(authorizer, user, resource, new)
    else:
        _check_role(authorizer, user, resource, new, old)


def _check_role(authorizer: Authorizer, user: User, resource: str, new: Object, old: Object | None) -> None:
    name, namespace = _name(new), new["metadata"].get("namespace") or ""
    if old is not None and _given(new) == _given(old):
        return
    known = name if old is not None else ""  # as upstream: at a create, a rule about one name does not help
    attributes = AuthorizerAttributes("escalate", GROUP, resource, namespace=namespace, name=known, version="*")
    if authorizer.allows(user, attributes)[0]:
        return
    _confirm(authorizer, user, resource, name, namespace, map(rules.read, new.get("rules") or ()))
    gathers = new.get("aggregationRule") or (old or {}).get("aggregationRule")
    if gathers and rules.uncovered(authorizer.granted(user, "").rules(), EVERYTHING):
        raise status.forbidden(GROUP, resource, name, "must have cluster-admin privileges to use the aggregationRule")


def _check_binding(authorizer: Authorizer, user: User, resource: str, new: Object) -> None:
    namespace, reference = new["metadata"].get("namespace") or "", new.get("roleRef") or {}
    plural, role = str(reference.get("kind", "")).lower() + "s", reference.get("name", "")
    attributes = AuthorizerAttributes("bind", GROUP, plural, namespace=namespace, name=role, version="*")
    if authorizer.allows(user, attributes)[0]:
        return
    found = authorizer.index.role_rules(reference, namespace)
    if found is None:
        raise status.not_found(GROUP, resource, role)
    _confirm(authorizer, user, resource, _name(new), namespace, found)


def _confirm(
    authorizer: Authorizer, user: User, resource: str, name: str, namespace: str, wanted: Iterable[Rule]
) -> None:
    granted = authorizer.granted(user, namespace)
    try:
        missing = rules.uncovered(granted.rules(), wanted)
    except rules.TooManyError:
        why = f'the rules stand for too many permissions to compare them with those of user "{user.name}"'
        raise status.forbidden(GROUP, resource, name, f"{why}; write them as several roles, or with stars") from None
    if missing:
        more = [f"(and {len(missing) - _LISTED} more)"] if len(missing) > _LISTED else []
        listed = "\n".join([*map(str, missing[:_LISTED]), *more])
        errors = f"; resolution errors: {granted.error}" if granted.missing else ""
        why = (
            f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions '
            f"not currently held:\n{listed}{errors}"
        )
        raise status.forbidden(GROUP, resource, name, why)


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name") or "")


def _given(role: Object) -> tuple[Any, Any]:
    return role.get("rules") or [], role.get("aggregationRule")


def _only_collected(new: Object, old: Object) -> bool:
    return _apart(new) == _apart(old)


def _apart(obj: Mapping[str, Any]) -> dict[str, Any]:
    changing = (*_COLLECTED, "managedFields", "resourceVersion", "generation")
    meta = {key: value for key, value in obj["metadata"].items() if key not in changing}
    return {**obj, "metadata": meta}
