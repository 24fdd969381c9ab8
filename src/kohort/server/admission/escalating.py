"""The check of roles and bindings against what their writer holds, as a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.server.auth import escalation
from kohort.server.auth.rbac import GROUP

if TYPE_CHECKING:
    from kohort.server.auth.rbac import Authorizer
    from kohort.server.call import Call


class NoEscalation:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def validate(self, call: Call) -> None:
        """A call without a user comes from the server itself."""
        if call.resource.group == GROUP and call.object is not None and call.user is not None:
            escalation.check(self._authorizer, call.user, call.resource.plural, call.object, call.old)
