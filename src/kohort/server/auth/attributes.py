"""What somebody wants to do, in the words that rules are written in, and the refusal if they may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kohort.server.status import ApiError, failure

if TYPE_CHECKING:
    from kohort.server.wire import User


class Attributes(NamedTuple):
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


def refusal(user: User, wish: Attributes, reason: str = "") -> str:
    """What a server says after `is forbidden: `."""
    if wish.path:
        text = f'User "{user.name}" cannot {wish.verb} path "{wish.path}"'
    else:
        where = f'in the namespace "{wish.namespace}"' if wish.namespace else "at the cluster scope"
        text = (
            f'User "{user.name}" cannot {wish.verb} resource "{wish.full_resource}" in API group "{wish.group}" {where}'
        )
    return f"{text}: {reason}" if reason else text


def forbidden(user: User, wish: Attributes, reason: str = "") -> ApiError:
    """403 of the authorizer."""
    text = refusal(user, wish, reason)
    if wish.path:
        status = failure(403, "Forbidden", f"forbidden: {text}")
        status["details"] = {}
        return ApiError(status)
    full = f"{wish.resource}.{wish.group}" if wish.group else wish.resource
    named = f'{full} "{wish.name}"' if wish.name else full
    details = {"name": wish.name, "group": wish.group, "kind": wish.resource}
    return ApiError(failure(403, "Forbidden", f"{named} is forbidden: {text}", details))
