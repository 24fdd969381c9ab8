"""Rules that need other objects: a TrainJob's runtime, the claims of a JobSet, names of another PodCliqueSet's gangs.

What they are is said beside the kinds (`kohort.gang.admission`); here is what they look things up in, and what becomes
of what they find. Upstream they are webhooks of the operators, and for Jobs a plugin of the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api import answer, meta, registry
from kohort.api.errors import ErrorKind
from kohort.gang import admission
from kohort.gang.compile import CompileContext, Lookup
from kohort.server import ages, status

if TYPE_CHECKING:
    from kohort.api.answer import Answer
    from kohort.api.kind import Context, Kind, Object
    from kohort.gang.admission import Beside, Findings
    from kohort.server.auth.objects import Objects
    from kohort.server.call import Call
    from kohort.server.resources import Resource, Resources


class Stored(Lookup):
    """What is in the store, by kind. Of kinds that several groups have, the one that this project knows is meant."""

    def __init__(self, objects: Objects, resources: Resources) -> None:
        super().__init__()
        self._stored, self._resources = objects, resources

    def _resource(self, kind: str) -> Resource | None:
        found = [one for one in self._resources.every() if one.kind == kind and one.stored]
        return next((one for one in found if one.group in registry.groups()), found[0] if found else None)

    def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        resource = self._resource(kind)
        return self._stored.get(resource.group, resource.plural, namespace or "", name) if resource else None

    def every(self, kind: str, namespace: str | None = None) -> list[Object]:
        resource = self._resource(kind)
        return list(self._stored.list(resource.group, resource.plural, namespace)) if resource else []


class BesideRules:
    def __init__(self, objects: Objects, resources: Resources, ctx: Context) -> None:
        self._ctx = CompileContext(ctx.generation, ctx.gates, ctx.options, Stored(objects, resources))

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
