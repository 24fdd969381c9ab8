"""Names that stand for somebody, or for all of somebodies."""

from __future__ import annotations

from typing import Any, Final

from kohort.kube.wire import User

MASTERS: Final = "system:masters"  # what they ask for is not checked
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
NODES: Final = "system:nodes"
SERVICE_ACCOUNTS: Final = "system:serviceaccounts"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"

ANONYMOUS: Final = User("system:anonymous", groups=(UNAUTHENTICATED,))
VIEWERS: Final = "kohort:viewers"
ADMIN: Final = User("kohort:admin", uid="kohort:admin", groups=(MASTERS,))
VIEWER: Final = User("kohort:viewer", uid="kohort:viewer", groups=(VIEWERS,))


def service_account_name(namespace: str, name: str) -> str:
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def as_service_account(user: str) -> tuple[str, str] | None:
    """Namespace and name, if the user is a service account."""
    if not user.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, colon, name = user[len(_SERVICE_ACCOUNT) :].partition(":")
    return (namespace, name) if colon and namespace and name and ":" not in name else None


def authenticated(user: User) -> User:
    """With the group of all who showed a credential that counts."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


def info(user: User) -> dict[str, Any]:
    """authentication.k8s.io UserInfo: without what is empty."""
    found: dict[str, Any] = {"username": user.name}
    if user.uid:
        found["uid"] = user.uid
    if user.groups:
        found["groups"] = list(user.groups)
    if user.extra:
        found["extra"] = {key: list(values) for key, values in user.extra.items()}
    return found
