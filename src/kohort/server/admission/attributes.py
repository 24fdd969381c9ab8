"""Admission attributes: a write as plugins see it and may change it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.wire import User
    from kohort.server.resources import Resource

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


@dataclass(slots=True)
class AdmissionAttributes:
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
    """Raises ApiError to refuse. A plugin without one of the two methods does nothing there.

    A mutating plugin with `repeatable = True` does the same to every pod of one template, as long as limit ranges,
    priority classes and mutating webhooks are the same: the pod admission cache may keep what it did.

    A plugin that validates only some sorts of writes may have `concerns`, too. That looks at nothing but resource,
    operation and subresource: it is asked once for each sort.
    """

    async def admit(self, attrs: AdmissionAttributes) -> None: ...

    async def validate(self, attrs: AdmissionAttributes) -> None: ...
