"""A write on its way through admission: what plugins see and may change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.resources import Resource
    from kohort.server.wire import User

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


@dataclass(slots=True)
class Call:
    """`object` is None for a deletion, `old` for a creation. Mutating plugins change `object` in place or replace it.

    Objects are in the version of the request. `warnings` reach the client as Warning headers.
    """

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    object: Object | None
    old: Object | None
    user: User | None
    dry_run: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class Plugin(Protocol):
    """Raises ApiError to refuse. A plugin without one of the two methods does nothing there."""

    async def admit(self, call: Call) -> None: ...

    async def validate(self, call: Call) -> None: ...
