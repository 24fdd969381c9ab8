"""Impersonate-User and its companions: asking as somebody else, for those who may."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from kohort.kube.wire import User
from kohort.server import status
from kohort.server.auth import users
from kohort.server.auth.attributes import AuthorizerAttributes, forbidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Allows = Callable[[User, AuthorizerAttributes], tuple[bool, str]]

_USER, _GROUP, _UID = "impersonate-user", "impersonate-group", "impersonate-uid"
_EXTRA: Final = "impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"


@dataclass(slots=True)
class _Impersonation:
    user: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.user or self.uid or self.groups or self.extra)


def apply(user: User, headers: Mapping[str, str], allows: Allows) -> User:
    """Who the request is from in the end; ApiError if `user` may not be that one.

    Several headers of one name come as one value with a line for each.
    """
    if not any(name.startswith("impersonate-") for name in headers):
        return user
    wanted_user = _impersonation(headers)
    if not wanted_user:
        return user
    if not wanted_user.user:
        text = "found Impersonate-Group, -Uid or -Extra headers without impersonating a user name (Impersonate-User)"
        raise status.bad_request(text)
    for question in _questions(wanted_user):
        allowed, reason = allows(user, question)
        if not allowed:
            raise forbidden(user, question, reason)
    return _become(wanted_user)


def _impersonation(headers: Mapping[str, str]) -> _Impersonation:
    wanted_user = _Impersonation(headers.get(_USER, ""), headers.get(_UID, ""), _lines(headers.get(_GROUP)))
    for name, value in headers.items():
        if name.startswith(_EXTRA):
            key = unquote(name[len(_EXTRA) :]).lower()
            wanted_user.extra.setdefault(key, []).extend(_lines(value))
    return wanted_user


def _lines(value: str | None) -> list[str]:
    return [line for line in (value or "").split("\n") if line]


def _questions(wanted_user: _Impersonation) -> Iterator[AuthorizerAttributes]:
    account = users.as_service_account(wanted_user.user)
    if account is not None:
        yield AuthorizerAttributes(
            "impersonate", "", "serviceaccounts", namespace=account[0], name=account[1], version="v1"
        )
    else:
        yield AuthorizerAttributes("impersonate", "", "users", name=wanted_user.user, version="v1")
    for group in wanted_user.groups:
        yield AuthorizerAttributes("impersonate", "", "groups", name=group, version="v1")
    for key, values in wanted_user.extra.items():
        for value in values:
            yield AuthorizerAttributes("impersonate", _AUTHENTICATION, "userextras", key, name=value, version="v1")
    if wanted_user.uid:
        yield AuthorizerAttributes("impersonate", _AUTHENTICATION, "uids", name=wanted_user.uid, version="v1")


def _become(wanted_user: _Impersonation) -> User:
    groups = list(wanted_user.groups)
    account = users.as_service_account(wanted_user.user)
    if account is not None and not groups:
        groups = [*users.service_account_groups(account[0])]
    extra = {key: tuple(values) for key, values in wanted_user.extra.items()}
    if wanted_user.user == users.ANONYMOUS.name:
        if users.UNAUTHENTICATED not in groups:
            groups.append(users.UNAUTHENTICATED)
        return User(wanted_user.user, wanted_user.uid, tuple(groups), extra)
    return users.authenticated(User(wanted_user.user, wanted_user.uid, tuple(groups), extra))
