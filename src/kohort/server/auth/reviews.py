"""Questions to the server about users and permissions: the kinds of authorization.k8s.io and authentication.k8s.io
that are answered and not kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import FieldError, invalid
from kohort.apimachinery.times import seconds
from kohort.kube.wire import User
from kohort.server import status
from kohort.server.auth import rules, users
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.auth.jwt import TokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kohort.api.kind import Object
    from kohort.server.auth.authenticator import Authenticator
    from kohort.server.auth.rbac import Authorizer

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
_ATTRIBUTES: Final = ("verb", "group", "resource", "subresource", "namespace", "name", "version")


class Reviews:
    """The answers, from those who know."""

    def __init__(
        self,
        authorizer: Authorizer,
        authenticator: Authenticator,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._authorizer, self._authenticator, self._now = authorizer, authenticator, now

    async def review(self, kind: str, obj: Object, user: User, namespace: str = "") -> Object:
        """The object of a POST with its status. ApiError where the question is malformed."""
        answer: dict[str, Callable[[Object, User, str], Object]] = {
            "SubjectAccessReview": self._subject,
            "LocalSubjectAccessReview": self._local,
            "SelfSubjectAccessReview": self._self,
            "SelfSubjectRulesReview": self._rules,
            "SelfSubjectReview": self._who,
            "TokenReview": self._token,
        }
        group = AUTHENTICATION if kind in {"TokenReview", "SelfSubjectReview"} else AUTHORIZATION
        body = answer[kind](obj, user, namespace)
        meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
        return {"kind": kind, "apiVersion": f"{group}/v1", "metadata": meta, **body}

    # ---- authorization

    def _subject(self, obj: Object, _: User, __: str) -> Object:
        spec = obj.get("spec") or {}
        problems = [*_asked(spec), *_somebody(spec), *_nameless(obj.get("metadata") or {})]
        _check(problems)
        return {"spec": spec, "status": self._decide(_user(spec), spec)}

    def _local(self, obj: Object, _: User, namespace: str) -> Object:
        spec, meta = obj.get("spec") or {}, obj.setdefault("metadata", {})
        given = meta.setdefault("namespace", namespace)
        problems = [*_asked(spec), *_somebody(spec), *_nameless({**meta, "namespace": ""})]
        if spec.get("resourceAttributes") and spec["resourceAttributes"].get("namespace", "") != given:
            found = spec["resourceAttributes"].get("namespace", "")
            problems.append(invalid("spec.resourceAttributes.namespace", found, "must match metadata.namespace"))
        if spec.get("nonResourceAttributes"):
            text = "disallowed on this kind of request"
            problems.append(invalid("spec.nonResourceAttributes", _shown(spec["nonResourceAttributes"]), text))
        _check(problems)
        return {"spec": spec, "status": self._decide(_user(spec), spec)}

    def _self(self, obj: Object, user: User, _: str) -> Object:
        spec = obj.get("spec") or {}
        _check([*_asked(spec), *_nameless(obj.get("metadata") or {})])
        return {"spec": spec, "status": self._decide(user, spec)}

    def _decide(self, user: User, spec: Mapping[str, Any]) -> dict[str, Any]:
        allowed, reason = self._authorizer.allows(user, _authorizer_attributes(spec))
        return {"allowed": allowed, **({"reason": reason} if reason else {})}

    def _rules(self, obj: Object, user: User, _: str) -> Object:
        namespace = (obj.get("spec") or {}).get("namespace")
        if not namespace:
            raise status.bad_request("no namespace on request")
        granted = self._authorizer.granted(user, namespace)
        written = [rules.write(rule) for rule in granted.rules()]
        found: dict[str, Any] = {
            "resourceRules": [rule for rule in written if "resources" in rule],
            "nonResourceRules": [rule for rule in written if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        if granted.missing:
            found["evaluationError"] = granted.error
        return {"spec": {}, "status": found}

    # ---- authentication

    def _who(self, obj: Object, user: User, _: str) -> Object:
        meta = obj.get("metadata") or {}
        stamp = seconds(self._now())
        return {"metadata": {**meta, "creationTimestamp": stamp}, "status": {"userInfo": users.info(user)}}

    def _token(self, obj: Object, _: User, __: str) -> Object:
        spec = obj.get("spec") or {}
        if not spec.get("token"):
            raise status.bad_request("token is required for TokenReview in authentication")
        try:
            user, audiences = self._authenticator.token(spec["token"], spec.get("audiences") or ())
        except TokenError as error:
            return {"spec": spec, "status": {"user": {}, "error": str(error)}}
        found: dict[str, Any] = {"authenticated": True, "user": users.info(user)}
        if audiences:
            found["audiences"] = list(audiences)
        return {"spec": spec, "status": found}


def _authorizer_attributes(spec: Mapping[str, Any]) -> AuthorizerAttributes:
    asked = spec.get("resourceAttributes")
    if asked:
        return AuthorizerAttributes(
            **{name: asked[name] for name in _ATTRIBUTES if asked.get(name)} | {"verb": asked.get("verb", "")}
        )
    asked = spec["nonResourceAttributes"]
    return AuthorizerAttributes(asked.get("verb", ""), path=asked.get("path", ""))


def _user(spec: Mapping[str, Any]) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


# ---- what is asked well


def _check(problems: list[FieldError]) -> None:
    if problems:
        raise status.invalid(AUTHORIZATION, "", "", problems)


def _asked(spec: Mapping[str, Any]) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec", _shown(path), text)]
    found = []
    for member in ("labelSelector", "fieldSelector"):
        selector = (resource or {}).get(member) or {}
        if selector.get("rawSelector") and selector.get("requirements"):
            where = f"spec.resourceAttributes.{member}.rawSelector"
            found.append(invalid(where, selector["rawSelector"], "may not specified at the same time as requirements"))
    return found


def _somebody(spec: Mapping[str, Any]) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", spec.get("user", ""), "at least one of user or group must be specified")]


def _nameless(meta: Mapping[str, Any]) -> list[FieldError]:
    given = {key: value for key, value in meta.items() if value and key not in {"managedFields", "creationTimestamp"}}
    return [invalid("metadata", given, "must be empty")] if given else []


def _shown(attributes: Mapping[str, Any] | None) -> Any:
    if attributes is None:
        return None
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}
