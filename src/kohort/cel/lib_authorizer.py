"""authorizer: what the user of a request, or a service account, may do. A variable of admission policies only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from kohort.api import formats
from kohort.cel.functions import define, defined
from kohort.cel.types import AUTHORIZATION
from kohort.cel.values import CelError

# Whether a user may do something, and why. The question: verb; group, resource, subresource, namespace, name; or path.
Ask = Callable[[Any, dict[str, str]], tuple[bool, str]]


@dataclass(frozen=True, slots=True)
class AuthorizerValue:
    """`user` is what `ask` wants to be told; `account` makes such a user of a namespace and a name."""

    user: Any
    ask: Ask
    account: Callable[[str, str], Any]
    kind: ClassVar[str] = AUTHORIZATION["Authorizer"].kind


@dataclass(frozen=True, slots=True)
class _Question:
    of: AuthorizerValue
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    def check(self, verb: str) -> Decision:
        members = ("group", "resource", "subresource", "namespace", "name", "path")
        allowed, reason = self.of.ask(self.of.user, {"verb": verb, **{one: getattr(self, one) for one in members}})
        return Decision(allowed, reason)


class PathCheck(_Question):
    kind = AUTHORIZATION["PathCheck"].kind


class GroupCheck(_Question):
    kind = AUTHORIZATION["GroupCheck"].kind


class ResourceCheck(_Question):
    kind = AUTHORIZATION["ResourceCheck"].kind


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str
    kind: ClassVar[str] = AUTHORIZATION["Decision"].kind


@defined("path", "Authorizer.(string) PathCheck")
def _path(of: AuthorizerValue, path: str) -> PathCheck:
    if not path.strip():
        raise CelError("path must not be empty")
    return PathCheck(of, path=path)


@defined("serviceAccount", "Authorizer.(string, string) Authorizer")
def _service_account(of: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    if formats.subdomain(name):
        raise CelError("Invalid service account name")
    if formats.label(namespace):
        raise CelError("Invalid service account namespace")
    return replace(of, user=of.account(namespace, name))


@defined("resource", "GroupCheck.(string) ResourceCheck")
def _resource(group: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise CelError("resource must not be empty")
    return ResourceCheck(group.of, group.group, resource)


define("group", "Authorizer.(string) GroupCheck", run=GroupCheck)
for _member in ("subresource", "namespace", "name"):
    define(
        _member,
        "ResourceCheck.(string) ResourceCheck",
        run=lambda check, value, member=_member: replace(check, **{member: value}),
    )
_SELECTORS: Final = ("fieldSelector", "labelSelector")  # roles do not look at them
for _member in _SELECTORS:
    define(_member, "ResourceCheck.(string) ResourceCheck", run=lambda check, _: check)
define("check", "PathCheck.(string) Decision", "ResourceCheck.(string) Decision", run=lambda one, verb: one.check(verb))
define("allowed", "Decision.() bool", run=lambda one: one.allowed)
define("reason", "Decision.() string", run=lambda one: one.reason)
define("errored", "Decision.() bool", run=lambda _: False)
define("error", "Decision.() string", run=lambda _: "")
define("jsonpatch.escapeKey", "(string) string", run=lambda key: key.replace("~", "~0").replace("/", "~1"))
