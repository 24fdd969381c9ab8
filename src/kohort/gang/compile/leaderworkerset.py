"""LeaderWorkerSet -> plan (KEP-666): groups for the whole set, for each replica, or for leader and workers.

Settings: `instances`, the living groups as rows {index, revision, size, incarnation} (default: those of a new set);
`workload_number`, n of a Workload that follows one which could not be changed (1.35 and 1.36, page 4.9).
"""

from __future__ import annotations

from collections.abc import Sequence

from kohort.api.generations import SCHEDULING_GROUP
from kohort.api.kind import Object
from kohort.api.leaderworkerset import words
from kohort.api.leaderworkerset.levels import (
    ROLES,
    Shape,
    is_delegated,
    minimum_groups,
    pod_spec,
    replicas,
    shape_of,
    size,
)
from kohort.api.leaderworkerset.scheduling import priority_class
from kohort.gang import blocks
from kohort.gang.compile import Compilation, CompileContext, namespace_of
from kohort.gang.compile.lws_delegation import compile_delegated
from kohort.gang.compile.lws_groups import Site, groups_of, members_of
from kohort.gang.compile.lws_names import Instance, base_name, given
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Controller, Owner, Plan, Template


def compile_object(obj: Object, ctx: CompileContext) -> Compilation:
    name = obj["metadata"]["name"]
    owner = Owner(
        api_version=words.API_VERSION,
        kind=words.KIND,
        name=name,
        uid=uid_of(obj),
        controller=True,
        block_deletion=True,
    )
    if is_delegated(obj):
        return compile_delegated(obj, owner, ctx)
    shape = shape_of(obj)
    if shape is None:
        return Compilation(reason=_why_nothing(obj))
    instances = given(obj, ctx.settings.get("instances"))
    base, number = base_name(obj), ctx.settings.get("workload_number")
    workload = f"{base}-{number}" if number else base
    templates = _templates(obj, shape, instances)
    every = {found.name: found for root in templates for found in root.walk()}
    site = Site(obj, base, (owner, _workload_owner(workload)), every)
    groups = groups_of(shape, site, instances)
    leaf_level = shape.active[0] if shape.flat else "role"
    plan = Plan(
        workload=workload,
        namespace=namespace_of(obj),
        controller=Controller(api_group=words.GROUP, kind=words.KIND, name=name),
        templates=templates,
        groups=groups,
        members=members_of(leaf_level, site, instances) if groups else (),
        owners=(owner,),
        labels={words.NAME: name},
    )
    return Compilation(plans=(plan,))


def _workload_owner(name: str) -> Owner:
    """The second owner of every group: garbage collection then catches groups made while the set was deleted."""
    return Owner(api_version=SCHEDULING_GROUP + "/v1beta1", kind="Workload", name=name)


def _why_nothing(obj: Object) -> str:
    if any(pod_spec(obj, role).get("schedulingGroup") is not None for role in ROLES):
        return "spec.scheduling is absent, and the pod templates name a group by hand"
    return "spec.scheduling is absent: pods are scheduled one by one"


# ---- templates


def _templates(obj: Object, shape: Shape, instances: Sequence[Instance]) -> tuple[Template, ...]:
    if shape.flat:
        return tuple(_template(obj, shape, node, _pods(node, obj, instances)) for node in shape.nodes)
    leaves = tuple(_template(obj, shape, role, _pods(role, obj, instances)) for role in ROLES)
    replica = _branch(obj, shape, "replica", len(ROLES), leaves)
    return (_branch(obj, shape, "lws", max(replicas(obj), 1), (replica,)),)


def _pods(node: str, obj: Object, instances: Sequence[Instance]) -> int:
    """The full number of pods of a leaf.

    For the whole set each group counts with its own size (issue #1080): a plain replicas × new size would wait for
    pods that come only when the old ones have gone. Surge groups do not count. Never 0, which the API does not take.
    """
    if node == "lws":
        return max(sum(one.size for one in instances if one.index < replicas(obj)), 1)
    return {"leader": 1, "worker": max(size(obj) - 1, 1)}.get(node, size(obj))


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
