"""Impersonation, as recorded from Kubernetes 1.37 (its older, unconstrained form)."""

import pytest

from kohort.kube.wire import User
from kohort.server.auth import impersonate, users
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.status import ApiError

ALICE = User("alice", groups=("system:authenticated",))


def anybody(_: User, __: AuthorizerAttributes) -> tuple[bool, str]:
    return True, ""


def only_users(_: User, wish: AuthorizerAttributes) -> tuple[bool, str]:
    return (wish.verb, wish.resource) == ("impersonate", "users"), ""


def headers(**given: str) -> dict[str, str]:
    return {f"impersonate-{name.replace('_', '-')}": value for name, value in given.items()}


ALLOWED = [
    ({}, ALICE),
    (headers(user="x"), User("x", groups=("system:authenticated",))),
    (
        headers(user="system:serviceaccount:d:sa"),
        User(
            "system:serviceaccount:d:sa",
            groups=("system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated"),
        ),
    ),
    (headers(user="system:anonymous"), users.ANONYMOUS),
    (headers(user="x", group="g\nh"), User("x", groups=("g", "h", "system:authenticated"))),
    (headers(user="x", group="system:unauthenticated"), User("x", groups=("system:unauthenticated",))),
    (
        {**headers(user="x", uid="7"), "impersonate-extra-foo%2fbar": "v1\nv2"},
        User("x", "7", ("system:authenticated",), {"foo/bar": ("v1", "v2")}),
    ),
]


@pytest.mark.parametrize(("given", "who"), ALLOWED)
def test_who_it_is_in_the_end(given: dict[str, str], who: User) -> None:
    assert impersonate.apply(ALICE, given, anybody) == who


REFUSED = [
    (headers(group="g"), 400, "without impersonating a user name"),
    (headers(uid="g"), 400, "without impersonating a user name"),
    (
        headers(user="x", group="g"),
        403,
        (
            'groups "g" is forbidden: User "alice" cannot impersonate resource "groups" in API group "" '
            "at the cluster scope"
        ),
    ),
    (
        headers(user="x", uid="7"),
        403,
        (
            'uids.authentication.k8s.io "7" is forbidden: User "alice" cannot impersonate resource "uids" in API group '
            '"authentication.k8s.io" at the cluster scope'
        ),
    ),
    (
        headers(user="x", extra_foo="v1"),
        403,
        (
            'userextras.authentication.k8s.io "v1" is forbidden: User "alice" cannot impersonate resource '
            '"userextras/foo" in API group "authentication.k8s.io" at the cluster scope'
        ),
    ),
    (
        headers(user="system:serviceaccount:d:sa"),
        403,
        (
            'serviceaccounts "sa" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" in '
            'API group "" in the namespace "d"'
        ),
    ),
]


@pytest.mark.parametrize(("given", "code", "message"), REFUSED)
def test_who_may_not_is_told_what_is_missing(given: dict[str, str], code: int, message: str) -> None:
    with pytest.raises(ApiError) as error:
        impersonate.apply(ALICE, given, only_users)
    assert error.value.code == code
    assert message in error.value.status["message"]
