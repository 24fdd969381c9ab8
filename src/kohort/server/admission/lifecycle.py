"""NamespaceLifecycle: some namespaces stay. (That a namespace must be there, and not on its way out, to hold anything
new, the server checks itself, also for writers that skip admission.)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.server import status
from kohort.server.call import DELETE

if TYPE_CHECKING:
    from kohort.server.call import Call

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    async def admit(self, call: Call) -> None:
        if (
            call.operation == DELETE
            and (call.resource.group, call.resource.plural) == ("", "namespaces")
            and call.name in IMMORTAL
        ):
            raise status.forbidden("", "namespaces", call.name, "this namespace may not be deleted")
