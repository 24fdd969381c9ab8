"""The status of a ValidatingAdmissionPolicy: what its expressions say that the schemas of its kinds do not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.server.controllers.controller import Controller
from kohort.server.controllers.writes import change
from kohort.server.store import Change

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.store import Event, Item

_GROUP: Final = "admissionregistration.k8s.io"
_PLURAL: Final = "validatingadmissionpolicies"


class PolicyStatus(Controller[str]):
    name = "validatingadmissionpolicy-status-controller"
    tables = frozenset({f"{_GROUP}/{_PLURAL}"})

    def observe(self, table: str, item: Item, event: Event | None) -> None:
        if table == f"{_GROUP}/{_PLURAL}" and not (event is not None and event.change is Change.DELETE):
            self.enqueue(item.name)

    async def reconcile(self, key: str) -> bool:
        resource = self.api.resources.of_plural(_GROUP, _PLURAL)
        if resource is not None:
            await change(self.core, resource, "", key, self._checked)
        return True

    def _checked(self, policy: Object) -> Object | None:
        generation, status = policy["metadata"].get("generation", 1), policy.get("status") or {}
        if generation <= status.get("observedGeneration", 0):
            return None
        from kohort.server.admission.policies.type_checking import TypeChecker

        found = TypeChecker(self.core.lister, self.api.resources, self.core.ctx.release.minor)
        warnings = found.warnings(policy.get("spec") or {})
        checking = {"expressionWarnings": warnings} if warnings else {}
        return {**policy, "status": {**status, "observedGeneration": generation, "typeChecking": checking}}
