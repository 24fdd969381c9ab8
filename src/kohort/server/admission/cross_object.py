"""Cross-object admission: a TrainJob's runtime, the claims of a JobSet, names of another PodCliqueSet's gangs.

The rules are in each kind's `admission.py` (`kohort.gang.admission` finds them); here is the lookup that they use, and
what becomes of their findings. Upstream they are webhooks of the operators, and for Jobs a plugin of the API server.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kohort.api import meta, registry, result
from kohort.api.errors import ErrorKind
from kohort.server import status, timestamps

if TYPE_CHECKING:
    from kohort.api.kind import Context, Kind
    from kohort.api.result import WriteResult
    from kohort.gang.admission import CrossObjectRules, Findings
    from kohort.gang.compile import CompileContext
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.auth.lister import Lister
    from kohort.server.resources import Resources


class CrossObjectAdmission:
    repeatable = True

    def __init__(self, lister: Lister, resources: Resources, ctx: Context) -> None:
        self._lister, self._resources, self._given = lister, resources, ctx

    @cached_property
    def _ctx(self) -> CompileContext:
        from kohort.gang.compile import CompileContext
        from kohort.server.admission.store_lookup import StoreLookup

        given = self._given
        return CompileContext(given.release, given.gates, given.options, StoreLookup(self._lister, self._resources))

    async def admit(self, attrs: AdmissionAttributes) -> None:
        rules = _concerned(attrs)
        if rules is not None and rules.complete is not None and attrs.object is not None:
            rules.complete(attrs.object, attrs.old, timestamps.stamp())

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return attrs.subresource != "status"

    async def validate(self, attrs: AdmissionAttributes) -> None:
        rules = _concerned(attrs)
        if rules is None or attrs.object is None:
            return
        found = rules.validate(attrs.object, attrs.old, self._ctx)
        attrs.warnings += found.warnings
        if found.errors:
            raise status.from_result(_refusal(attrs.resource.rules, meta.name_of(attrs.object), found))


def _concerned(attrs: AdmissionAttributes) -> CrossObjectRules | None:
    """Objects of our own rules only: somebody else's definition of the same kind may mean something else."""
    from kohort.gang import admission

    kind = attrs.resource.rules
    if attrs.object is None or attrs.subresource == "status" or attrs.object["metadata"].get("deletionTimestamp"):
        return None
    rules = admission.of(kind.group, kind.kind)
    own = rules is not None and any(kind is one for one in registry.kinds(kind.group))
    return rules if own else None


def _refusal(kind: Kind, name: str, found: Findings) -> WriteResult:
    denied = [error for error in found.errors if error.kind is ErrorKind.DENIED]
    if denied:
        return result.forbidden(kind, name, denied[0].detail)
    if kind.webhook:
        return result.denied_by_webhook(kind, found.errors, found.warnings)
    return result.invalid(kind, name, found.errors, found.warnings)
