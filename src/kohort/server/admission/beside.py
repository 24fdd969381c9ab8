"""Rules that need other objects: a TrainJob's runtime, the claims of a JobSet, names of another PodCliqueSet's gangs.

What they are is said beside the kinds (`kohort.gang.admission`); here is what they look things up in, and what becomes
of what they find. Upstream they are webhooks of the operators, and for Jobs a plugin of the API server.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kohort.api import answer, meta, registry
from kohort.api.errors import ErrorKind
from kohort.server import ages, status

if TYPE_CHECKING:
    from kohort.api.answer import Answer
    from kohort.api.kind import Context, Kind
    from kohort.gang.admission import Beside, Findings
    from kohort.gang.compile import CompileContext
    from kohort.server.auth.objects import Objects
    from kohort.server.call import Call
    from kohort.server.resources import Resources


class BesideRules:
    def __init__(self, objects: Objects, resources: Resources, ctx: Context) -> None:
        self._objects, self._resources, self._given = objects, resources, ctx

    @cached_property
    def _ctx(self) -> CompileContext:
        from kohort.gang.compile import CompileContext
        from kohort.server.admission.lookup import Stored

        given = self._given
        return CompileContext(given.release, given.gates, given.options, Stored(self._objects, self._resources))

    async def admit(self, call: Call) -> None:
        rules = _concerned(call)
        if rules is not None and rules.complete is not None and call.object is not None:
            rules.complete(call.object, call.old, ages.stamp())

    async def validate(self, call: Call) -> None:
        rules = _concerned(call)
        if rules is None or call.object is None:
            return
        found = rules.judge(call.object, call.old, self._ctx)
        call.warnings += found.warnings
        if found.errors:
            raise status.from_answer(_refusal(call.resource.rules, meta.name_of(call.object), found))


def _concerned(call: Call) -> Beside | None:
    """Objects of our own rules only: somebody else's definition of the same kind may mean something else."""
    from kohort.gang import admission

    kind = call.resource.rules
    if call.object is None or call.subresource == "status" or call.object["metadata"].get("deletionTimestamp"):
        return None
    rules = admission.of(kind.group, kind.kind)
    own = rules is not None and any(kind is one for one in registry.kinds(kind.group))
    return rules if own else None


def _refusal(kind: Kind, name: str, found: Findings) -> Answer:
    denied = [error for error in found.errors if error.kind is ErrorKind.DENIED]
    if denied:
        return answer.denied(kind, name, denied[0].detail)
    if kind.webhook:
        return answer.hooked(kind, found.errors, found.warnings)
    return answer.refused(kind, name, found.errors, found.warnings)
