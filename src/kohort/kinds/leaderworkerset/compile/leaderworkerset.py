"""LeaderWorkerSet -> plan (KEP-666): groups for the whole set, for each replica, or for leader and workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.api.errors import FieldError, invalid
from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.api.releases import SCHEDULING_GROUP
from kohort.gang import blocks
from kohort.gang.compile import Compilation, CompileContext
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Controller, Owner, Plan, Template
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import (
    ROLES,
    Shape,
    is_delegated,
    minimum_groups,
    pod_spec,
    replicas,
    shape_of,
    size,
)
from kohort.kinds.leaderworkerset.api.scheduling import priority_class
from kohort.kinds.leaderworkerset.compile.delegation import compile_delegated
from kohort.kinds.leaderworkerset.compile.groups import Site, groups_of, members_of
from kohort.kinds.leaderworkerset.compile.names import Instance, Observed, base_name, new_set

MAX_REPLICAS: Final = 10_000  # of a set that is compiled as a whole; its controller goes on in batches


def compile_object(obj: Object, ctx: CompileContext, observed: Observed | None = None) -> Compilation:
    """`observed`: the living groups of a set that is there; without it the set is compiled as a new one."""
    if observed is None and replicas(obj) > MAX_REPLICAS:
        return Compilation(errors=(_too_many(obj),))
    observed = observed or new_set(obj)
    owner = Owner(
        api_version=constants.API_VERSION,
        kind=constants.KIND,
        name=obj["metadata"]["name"],
        uid=uid_of(obj),
        controller=True,
        block_deletion=True,
    )
    if is_delegated(obj):
        return compile_delegated(obj, owner, ctx, observed.instances)
    shape = shape_of(obj)
    if shape is None:
        return Compilation(reason=_why_nothing(obj))
    instances, newest = observed.instances, observed.newest_workload
    if ctx.release.min_count_mutable or shape.active == ("lws",):
        return Compilation(plans=(_plan(obj, shape, owner, instances, 0),))
    numbers = sorted({newest} | {one.workload for one in instances})
    kept = {number: [one for one in instances if one.workload == number] for number in numbers}
    return Compilation(plans=tuple(_plan(obj, shape, owner, kept[number], number, newest) for number in numbers))


def _too_many(obj: Object) -> FieldError:
    return invalid("spec.replicas", replicas(obj), f"a plan lists at most {MAX_REPLICAS} replicas")


def _plan(
    obj: Object, shape: Shape, owner: Owner, instances: Sequence[Instance], number: int, newest: int | None = None
) -> Plan:
    """One Workload. An older one than the newest keeps the size of its groups."""
    base = base_name(obj)
    pods = size(obj) if number == newest or newest is None else instances[0].size
    workload = f"{base}-{number}" if number else base
    templates = _templates(obj, shape, instances, pods)
    every = {found.name: found for root in templates for found in root.walk()}
    site = Site(obj, base, (owner, _workload_owner(workload)), every)
    groups = groups_of(shape, site, instances)
    leaf_level = shape.active[0] if shape.flat else "role"
    return Plan(
        workload=workload,
        namespace=namespace_or_default(obj),
        controller=Controller(api_group=constants.GROUP, kind=constants.KIND, name=site.name),
        templates=templates,
        groups=groups,
        members=members_of(leaf_level, site, instances) if groups else (),
        owners=(owner,),
        labels={constants.NAME: site.name},
    )


def _workload_owner(name: str) -> Owner:
    """The second owner of every group: garbage collection then catches groups made while the set was deleted."""
    return Owner(api_version=SCHEDULING_GROUP + "/v1beta1", kind="Workload", name=name)


def _why_nothing(obj: Object) -> str:
    if any(pod_spec(obj, role).get("schedulingGroup") is not None for role in ROLES):
        return "spec.scheduling is absent, and the pod templates name a group by hand"
    return "spec.scheduling is absent: pods are scheduled one by one"


# ---- templates


def _templates(obj: Object, shape: Shape, instances: Sequence[Instance], pods: int) -> tuple[Template, ...]:
    full = {"lws": _all_pods(obj, instances), "replica": pods, "leader": 1, "worker": max(pods - 1, 1)}
    if shape.flat:
        return tuple(_template(obj, shape, node, full[node]) for node in shape.nodes)
    leaves = tuple(_template(obj, shape, role, full[role]) for role in ROLES)
    replica = _branch(obj, shape, "replica", len(ROLES), leaves)
    return (_branch(obj, shape, "lws", max(replicas(obj), 1), (replica,)),)


def _all_pods(obj: Object, instances: Sequence[Instance]) -> int:
    """Each group with its own size (issue #1080): a plain replicas × new size would wait for pods that come only when
    the old ones have gone. Groups that nobody has looked at yet will have the new size. Surge groups do not count.
    Never 0, which the API does not take.
    """
    sizes = {one.index: one.size for one in instances if one.index < replicas(obj)}
    return max(sum(sizes.values()) + (replicas(obj) - len(sizes)) * size(obj), 1)


def _branch(obj: Object, shape: Shape, node: str, children: int, beneath: tuple[Template, ...]) -> Template:
    return _template(obj, shape, node, minimum_groups(shape.blocks[node]) or children, beneath)


def _template(obj: Object, shape: Shape, node: str, full: int, beneath: tuple[Template, ...] = ()) -> Template:
    block = shape.blocks[node]
    return Template(
        name=node,
        minimum=full if node in shape.gangs else None,
        topology=blocks.topology(block),
        disruption=blocks.disruption(block),
        claims=() if beneath else blocks.claims(block),
        priority_class=priority_class(obj, "leader") or None,
        children=beneath,
    )
