"""Priority, DefaultTolerationSeconds and PodGroupProtection, ahead of the webhooks.

The rules are those of `kohort.api.scheduling.admission`, which every write passes anyway when it is judged. Here they
are applied once before, so that webhooks see what upstream's would see; a second time changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.api import answer, meta
from kohort.api.scheduling import admission
from kohort.server import status
from kohort.server.call import CREATE

if TYPE_CHECKING:
    from kohort.api.kind import Context
    from kohort.server.auth.objects import Objects
    from kohort.server.call import Call

_KINDS: Final = {("", "Pod"), ("scheduling.k8s.io", "PodGroup"), ("scheduling.k8s.io", "CompositePodGroup")}


class Scheduling:
    def __init__(self, objects: Objects, ctx: Context) -> None:
        self._objects, self._ctx = objects, ctx

    async def admit(self, call: Call) -> None:
        if call.object is None or call.subresource or (call.resource.group, call.resource.kind) not in _KINDS:
            return
        classes = self._objects.list("scheduling.k8s.io", "priorityclasses") if call.operation == CREATE else ()
        why = admission.mutate(call.resource.rules, call.object, self._ctx, classes, call.old)
        if why is not None:
            raise status.from_answer(answer.denied(call.resource.rules, meta.name_of(call.object), why))
