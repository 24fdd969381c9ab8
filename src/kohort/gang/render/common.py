"""What the renderers share: metadata, owners, policies and claims look alike in every version that has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.api.kind import Object
from kohort.api.releases import SCHEDULING_GROUP
from kohort.gang.stand_in import stand_in
from kohort.gang.tree import Claim, Controller, Group, Owner, Plan, Template

Uids = Mapping[tuple[str, str], str]  # (kind, name) -> uid of objects that exist already


class Metadata:
    """Writes the metadata of a plan's objects. Owners are worked out once: a plan may have thousands of groups."""

    def __init__(self, plan: Plan, workload_version: str, uids: Uids) -> None:
        self._plan = plan
        self._version = workload_version
        self._uids = uids
        self._known: dict[Owner, Object] = {}

    def of(self, named: Plan | Group) -> Object:
        meta: Object = {"name": named.workload if isinstance(named, Plan) else named.name}
        if self._plan.namespace:
            meta["namespace"] = self._plan.namespace
        if named.labels:
            meta["labels"] = dict(named.labels)
        if named.annotations:
            meta["annotations"] = dict(named.annotations)
        if named.owners:
            meta["ownerReferences"] = [self._reference(owner).copy() for owner in named.owners]
        return meta

    def _reference(self, owner: Owner) -> Object:
        found = self._known.get(owner)
        if found is None:
            found = self._known[owner] = self._written(owner)
        return found

    def _written(self, owner: Owner) -> Object:
        version = self._version if is_own_workload(owner, self._plan) else owner.api_version
        reference: Object = {"apiVersion": version, "kind": owner.kind, "name": owner.name, "uid": self._uid(owner)}
        if owner.controller:
            reference["controller"] = True
        if owner.block_deletion:
            reference["blockOwnerDeletion"] = True
        return reference

    def _uid(self, owner: Owner) -> str:
        known = owner.uid or self._uids.get((owner.kind, owner.name))
        return known or stand_in(owner.api_version, owner.kind, {"namespace": self._plan.namespace, "name": owner.name})


def is_own_workload(owner: Owner, plan: Plan) -> bool:
    """Whether the owner is the Workload of the same plan, whose version is the rendered one."""
    return (
        owner.kind == "Workload"
        and owner.name == plan.workload
        and owner.api_version.rpartition("/")[0] == SCHEDULING_GROUP
    )


def controller_reference(controller: Controller | None) -> Object:
    """Members of a spec: `controllerRef`, where there is one; the core group goes without saying."""
    if controller is None:
        return {}
    reference = {"apiGroup": controller.api_group} if controller.api_group else {}
    return {"controllerRef": {**reference, "kind": controller.kind, "name": controller.name}}


def policy(minimum: int | None, counter: str) -> Object:
    return {"basic": {}} if minimum is None else {"gang": {counter: minimum}}


def constraints(template: Template) -> Object:
    return {"schedulingConstraints": {"topology": [{"key": template.topology}]}} if template.topology else {}


def claims(template: Template) -> Object:
    return {"resourceClaims": [_claim(claim) for claim in template.claims]} if template.claims else {}


def _claim(claim: Claim) -> Object:
    found = {"name": claim.name}
    if claim.claim is not None:
        found["resourceClaimName"] = claim.claim
    if claim.template is not None:
        found["resourceClaimTemplateName"] = claim.template
    return found


def priority(template: Template, group: Group | None = None) -> Object:
    members: Object = {}
    name = (group.priority_class if group else None) or template.priority_class
    if name:
        members["priorityClassName"] = name
    if template.priority is not None:
        members["priority"] = template.priority
    return members


def by_name(plan: Plan) -> dict[str, Template]:
    return {template.name: template for template in plan.walk()}


# ---- reading


def read_minimum(value: Any, counter: str) -> int | None:
    gang = (value or {}).get("gang")
    return int(gang[counter]) if gang is not None else None


def read_controller(spec: Object) -> Controller | None:
    found = spec.get("controllerRef")
    if not found:
        return None
    return Controller(api_group=found.get("apiGroup") or "", kind=found["kind"], name=found["name"])


def read_owners(obj: Object) -> tuple[Owner, ...]:
    return tuple(
        Owner(
            api_version=found["apiVersion"],
            kind=found["kind"],
            name=found["name"],
            uid=found.get("uid") or "",
            controller=bool(found.get("controller")),
            block_deletion=bool(found.get("blockOwnerDeletion")),
        )
        for found in obj["metadata"].get("ownerReferences") or ()
    )


def read_priority(block: Object) -> dict[str, Any]:
    return {"priority_class": block.get("priorityClassName") or None, "priority": block.get("priority")}
