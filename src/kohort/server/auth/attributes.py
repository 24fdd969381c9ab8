"""What somebody wants to do, in the words that rules are written in, and the refusal if they may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kohort.server.status import ApiError, failure

if TYPE_CHECKING:
    from kohort.kube.wire import User


class AuthorizerAttributes(NamedTuple):
    """One request. A `path` is set for what is not a resource: health, discovery, metrics."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    version: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def refusal(user: User, attributes: AuthorizerAttributes, reason: str = "") -> str:
    """What a server says after `is forbidden: `."""
    if attributes.path:
        text = f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
    else:
        where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
        resource = f'resource "{attributes.full_resource}" in API group "{attributes.group}"'
        text = f'User "{user.name}" cannot {attributes.verb} {resource} {where}'
    return f"{text}: {reason}" if reason else text


def forbidden(user: User, attributes: AuthorizerAttributes, reason: str = "") -> ApiError:
    """403 of the authorizer."""
    text = refusal(user, attributes, reason)
    if attributes.path:
        status = failure(403, "Forbidden", f"forbidden: {text}")
        status["details"] = {}
        return ApiError(status)
    full = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    named = f'{full} "{attributes.name}"' if attributes.name else full
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ApiError(failure(403, "Forbidden", f"{named} is forbidden: {text}", details))
