"""The rules of `spec.scheduling` (spec lws 4.4): what cannot be scheduled as written is refused, never half obeyed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, at, forbidden, invalid
from kohort.api.kind import Context, Object
from kohort.api.objects import annotation
from kohort.api.releases import Gate
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import (
    ROLES,
    Role,
    Shape,
    is_delegated,
    minimum_groups,
    path_of,
    pod_spec,
    replicas,
    shape_of,
    size,
    template_name,
)

_ROOT: Final = "spec.scheduling"
_POD_LINKS: Final = ("schedulingGroup", "workloadRef")


def check_scheduling(obj: Object, ctx: Context) -> list[FieldError]:
    """All findings; none for a set that asks for nothing."""
    shape = shape_of(obj)
    if shape is None:
        return []
    return [
        *_available(shape, ctx),
        *_claims_above_leaves(shape),
        *_group_counts(shape),
        *_pod_counts(obj, shape),
        *_sizes(obj, shape),
        *_startup(obj, shape),
        *_exclusive(obj, shape),
        *_delegated(obj, shape),
        *_pod_templates(obj),
        *_claims(obj, shape),
    ]


# ---- what the cluster can do


def _available(shape: Shape, ctx: Context) -> Iterator[FieldError]:
    if not ctx.on(constants.AWARE_GATE):
        yield forbidden(_ROOT, f"the gate {constants.AWARE_GATE} is off")
    if not ctx.on(Gate.GENERIC_WORKLOAD):
        yield forbidden(
            _ROOT, f"the server does not serve the Workload API: feature gate {Gate.GENERIC_WORKLOAD} is off"
        )
    if ctx.on(constants.VOLCANO):
        yield forbidden(_ROOT, "the scheduler provider is volcano, which does not read it (W7); leave it out")
    if not shape.flat:
        yield from _trees_available(shape, ctx)
    for node in shape.nodes:
        yield from _blocks_available(shape.blocks[node], path_of(node), ctx)


def _trees_available(shape: Shape, ctx: Context) -> Iterator[FieldError]:
    lead = f"several levels are configured ({', '.join(shape.active)}), which makes CompositePodGroups"
    if not ctx.release.has_composites:
        yield forbidden(_ROOT, f"{lead}; Kubernetes {ctx.release.minor} has none: configure one level")
    elif not ctx.on(Gate.COMPOSITE):
        yield forbidden(_ROOT, f"{lead}; feature gate {Gate.COMPOSITE} is off: configure one level")
    elif not ctx.on(constants.TREE_GATE):
        yield forbidden(_ROOT, f"{lead}; the gate {constants.TREE_GATE} is off: configure one level")


def _blocks_available(block: dict[str, Any], path: str, ctx: Context) -> Iterator[FieldError]:
    known, minor = ctx.release.gates, ctx.release.minor
    needs = {"schedulingConstraints": Gate.TOPOLOGY, "resourceClaims": Gate.CLAIMS}
    if Gate.PREEMPTION in known or not ctx.release.has_pod_groups:
        needs["disruptionMode"] = Gate.PREEMPTION
    for member, gate in needs.items():
        if block.get(member) is None or ctx.on(gate):
            continue
        if gate in known:
            yield forbidden(at(path, member), f"feature gate {gate} is off")
        else:
            yield forbidden(at(path, member), f"the Workload API of Kubernetes {minor} has no such field")


# ---- counts


def _claims_above_leaves(shape: Shape) -> Iterator[FieldError]:
    for node in ("lws", "replica"):
        if shape.blocks[node].get("resourceClaims") is not None:
            yield forbidden(
                at(path_of(node), "resourceClaims"),
                f"only {path_of('leader')} and {path_of('worker')} share claims",
            )


def _group_counts(shape: Shape) -> Iterator[FieldError]:
    for node in ("lws", "replica"):
        count = minimum_groups(shape.blocks[node])
        path = at(path_of(node), "schedulingPolicy.gang.minGroupCount")
        if count is None:
            continue
        if shape.flat:
            yield forbidden(path, "with one level there are no groups to count; gang: {} means all pods")
        elif node == "replica" and count > 2:
            yield invalid(path, count, "a replica has two groups, leader and worker: must be 1 or 2")


def _pod_counts(obj: Object, shape: Shape) -> Iterator[FieldError]:
    if size(obj) < 2:  # said by _sizes
        return
    for role, full in (("leader", 1), ("worker", size(obj) - 1)):
        gang = (shape.blocks[role].get("schedulingPolicy") or {}).get("gang") or {}
        count = gang.get("minCount")
        if isinstance(count, int) and 1 <= count != full:
            path = at(path_of(role), "schedulingPolicy.gang.minCount")
            yield invalid(path, count, f"must be {full}, all pods of the role, or left out")


def _sizes(obj: Object, shape: Shape) -> Iterator[FieldError]:
    if size(obj) == 1 and "worker" in shape.nodes:
        what = "leader and worker groups need" if shape.flat else "several levels need"
        yield invalid("spec.leaderWorkerTemplate.size", 1, f"{what} at least one worker: must be 2 or more")


# ---- what does not go together


def _startup(obj: Object, shape: Shape) -> Iterator[FieldError]:
    if (obj.get("spec") or {}).get("startupPolicy") != "LeaderReady" or not shape.mixes_roles or size(obj) < 2:
        return
    yield invalid(
        "spec.startupPolicy",
        "LeaderReady",
        "the leader would wait for its gang and the workers for their leader, for ever; use LeaderCreated, or "
        f"{path_of('leader')} basic with {path_of('worker')} gang",
    )


def _exclusive(obj: Object, shape: Shape) -> Iterator[FieldError]:
    key = annotation(obj, constants.EXCLUSIVE_TOPOLOGY)
    topology = any(shape.blocks[node].get("schedulingConstraints") is not None for node in shape.nodes)
    if key is None or not (shape.gangs or topology):
        return
    path = f"metadata.annotations.{constants.EXCLUSIVE_TOPOLOGY}"
    what = "a gang" if shape.gangs else "schedulingConstraints"
    yield forbidden(
        path, f"does not go with {what}; {at(path_of('replica'), 'schedulingConstraints')} keeps a group together"
    )


def _delegated(obj: Object, shape: Shape) -> Iterator[FieldError]:
    if not is_delegated(obj) or shape.active in (("lws",), ("replica",)):
        return
    where = path_of("replica") if shape.flat else _ROOT
    detail = "one template of the parent's Workload can serve the whole set or its replicas, not leader and worker"
    yield forbidden(where, f"{detail} (annotation {constants.TEMPLATE_NAME})")


# ---- pod templates


def _roles_with_template(obj: Object) -> Iterator[tuple[Role, str]]:
    """Each template once, with a role that uses it."""
    seen: set[str] = set()
    for role in ROLES:
        name = template_name(obj, role)
        if name not in seen:
            seen.add(name)
            yield role, f"spec.leaderWorkerTemplate.{name}.spec"


def _pod_templates(obj: Object) -> Iterator[FieldError]:
    for role, path in _roles_with_template(obj):
        for member in _POD_LINKS:
            if pod_spec(obj, role).get(member) is not None:
                yield forbidden(at(path, member), "pods get their group from spec.scheduling")
    leader, worker = (priority_class(obj, role) for role in ROLES)
    if leader != worker and size(obj) > 1:
        path = "spec.leaderWorkerTemplate.leaderTemplate.spec.priorityClassName"
        yield invalid(path, leader, f'all pods of a Workload have one priority class; workers have "{worker}"')


def priority_class(obj: Object, role: Role) -> str:
    return str(pod_spec(obj, role).get("priorityClassName") or "")


def _claims(obj: Object, shape: Shape) -> Iterator[FieldError]:
    """A shared claim that no pod refers to would be allocated for nobody."""
    for role in ROLES:
        referred = [_claim_key(claim) for claim in pod_spec(obj, role).get("resourceClaims") or []]
        for index, claim in enumerate(shape.blocks[role].get("resourceClaims") or []):
            if isinstance(claim, dict) and _claim_key(claim) not in referred:
                path = f"{at(path_of(role), 'resourceClaims')}[{index}]"
                where = f"spec.leaderWorkerTemplate.{template_name(obj, role)}.spec.resourceClaims"
                yield invalid(path, claim.get("name"), f"{where} has no entry of that name and source")


def _claim_key(claim: Any) -> tuple[Any, ...]:
    return tuple((claim or {}).get(name) for name in ("name", "resourceClaimName", "resourceClaimTemplateName"))


# ---- accepted, but not what people usually mean


def scheduling_warnings(obj: Object) -> list[str]:
    shape = shape_of(obj)
    return [*_by_hand(obj)] if shape is None else [*_hollow_gang(obj, shape), *_out_of_reach(obj, shape)]


def _by_hand(obj: Object) -> Iterator[str]:
    """A group that the user made and named in a template (spec lws 4.1)."""
    paths = [at(path, "schedulingGroup") for role, path in _roles_with_template(obj) if _named(obj, role)]
    if not paths:
        return
    if replicas(obj) > 1:
        yield f"{paths[0]}: all {replicas(obj)} replicas join the same group; spec.scheduling gives each its own"
    if (obj.get("spec") or {}).get("startupPolicy") == "LeaderReady" and all(_named(obj, role) for role in ROLES):
        yield f"{paths[0]}: in a gang, a leader waits for its workers and they for it (LeaderReady), for ever"


def _named(obj: Object, role: Role) -> bool:
    return pod_spec(obj, role).get("schedulingGroup") is not None


def _hollow_gang(obj: Object, shape: Shape) -> Iterator[str]:
    if shape.flat or "worker" in shape.gangs or size(obj) < 3:
        return
    for node in ("replica", "lws"):
        if node in shape.gangs:
            worker = at(path_of("worker"), "schedulingPolicy")
            yield (
                f"{path_of(node)}: a gang of groups counts a basic worker group as soon as one of its pods fits;"
                f" set {worker}.gang to start all {size(obj) - 1} workers together"
            )
            return


def _out_of_reach(obj: Object, shape: Shape) -> Iterator[str]:
    count = None if shape.flat else minimum_groups(shape.blocks["lws"])
    if count is not None and count > replicas(obj) > 0:
        path = at(path_of("lws"), "schedulingPolicy.gang.minGroupCount")
        yield f"{path}: {count} groups are asked for and there are {replicas(obj)} replicas: nothing can start"
