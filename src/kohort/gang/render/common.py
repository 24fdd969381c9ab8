"""What the renderers share: metadata, owners, policies and claims look alike in every version that has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.api.generations import SCHEDULING_GROUP
from kohort.api.kind import Object
from kohort.gang.stand_in import stand_in
from kohort.gang.tree import Claim, Controller, Group, Owner, Plan, Template

Uids = Mapping[tuple[str, str], str]  # (kind, name) -> uid of objects that exist already


def metadata(
    name: str, plan: Plan, labels: Mapping[str, str], annotations: Mapping[str, str], owners: list[Object]
) -> Object:
    meta: Object = {"name": name}
    if plan.namespace:
        meta["namespace"] = plan.namespace
    if labels:
        meta["labels"] = dict(labels)
    if annotations:
        meta["annotations"] = dict(annotations)
    if owners:
        meta["ownerReferences"] = owners
    return meta


def workload(plan: Plan, api_version: str, spec: Object, uids: Uids) -> Object:
    owners = owner_references(plan.owners, plan, api_version, uids)
    meta = metadata(plan.workload, plan, plan.labels, plan.annotations, owners)
    return {"apiVersion": api_version, "kind": "Workload", "metadata": meta, "spec": spec}


def group_metadata(plan: Plan, group: Group, workload_version: str, uids: Uids) -> Object:
    owners = owner_references(group.owners, plan, workload_version, uids)
    return metadata(group.name, plan, group.labels, group.annotations, owners)


def owner_references(owners: tuple[Owner, ...], plan: Plan, workload_version: str, uids: Uids) -> list[Object]:
    return [_owner_reference(owner, plan, workload_version, uids) for owner in owners]


def _owner_reference(owner: Owner, plan: Plan, workload_version: str, uids: Uids) -> Object:
    ours = is_own_workload(owner, plan)
    api_version = workload_version if ours else owner.api_version
    reference: Object = {
        "apiVersion": api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid or uids.get((owner.kind, owner.name)) or _paper_uid(owner, api_version, plan.namespace),
    }
    if owner.controller:
        reference["controller"] = True
    if owner.block_deletion:
        reference["blockOwnerDeletion"] = True
    return reference


def is_own_workload(owner: Owner, plan: Plan) -> bool:
    """Whether the owner is the Workload of the same plan, whose version is the rendered one."""
    group = owner.api_version.rpartition("/")[0]
    return owner.kind == "Workload" and owner.name == plan.workload and group in {"", SCHEDULING_GROUP}


def _paper_uid(owner: Owner, api_version: str, namespace: str) -> str:
    return stand_in(api_version, owner.kind, {"namespace": namespace, "name": owner.name})


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


def priority(template: Template) -> Object:
    members: Object = {}
    if template.priority_class:
        members["priorityClassName"] = template.priority_class
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
