"""Grove's five controllers as the runtime sees them: what each watches, which keys that enqueues, and its view."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import controller_of, label, meta_of, name_of, namespace_of, status_of, uid_of
from kohort.controllers.controller import (
    Controller,
    Enqueue,
    EventHandler,
    Indexer,
    Key,
    Reader,
    Watch,
    enqueue_itself,
    enqueue_nothing,
    key_of,
)
from kohort.controllers.reconcile import Reconcile
from kohort.controllers.reverse_index import ReverseIndex
from kohort.gang.compile import CompileContext, Lookup
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.api import topology as topology_rules
from kohort.kinds.grove.compile.topology import Topology, resolve
from kohort.kinds.grove.control import binding, claims, clique, group, podcliqueset, podgang
from kohort.kinds.grove.control.backend import Backend, choose
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.workload import KINDS
from kohort.kinds.grove.settings import PodCliqueSetSettings

SOON: Final = 0.1  # seconds in which changes of children and pods are gathered
LATER: Final = 0.5  # the same for a set, which looks at all of its children each time
_SET, _GROUP, _CLIQUE, _GANG = "PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "PodGang"
_CLAIM, _CLAIM_TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"
_BINDING: Final = "ClusterTopologyBinding"
_OWNED: Final = (
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "Secret"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
)


# ---- reading labels and owners


def _of_set(obj: Object) -> Iterator[Key]:
    """The set that a PodClique, scaling group or pod belongs to."""
    if label(obj, constants.MANAGED_BY) == constants.OPERATOR and label(obj, constants.PART_OF):
        yield Key(namespace_of(obj), label(obj, constants.PART_OF))


def _by_label(key: str) -> Callable[[Object], Iterator[Key]]:
    def read(obj: Object) -> Iterator[Key]:
        if label(obj, key):
            yield Key(namespace_of(obj), label(obj, key))

    return read


def _by_owner(kind: str) -> Callable[[Object], Iterator[Key]]:
    def read(obj: Object) -> Iterator[Key]:
        above = controller_of(obj)
        if above is not None and above.get("kind") == kind:
            yield Key(namespace_of(obj), str(above.get("name")))

    return read


def _changed(read: Callable[[Object], Iterable[Key]], after: float = SOON) -> EventHandler:
    """Concerned by every change: whom the object named before, and whom it names now."""

    def handler(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        return [Enqueue(key, after) for obj in (old, new) if obj is not None for key in read(obj)]

    return handler


def _topology(pcs: Object) -> Iterator[Hashable]:
    name = topology_rules.topology_name(pcs)
    if name:
        yield name


def _differ(old: Object | None, new: Object | None, *paths: Callable[[Object], Any]) -> bool:
    return old is None or new is None or any(path(old) != path(new) for path in paths)


def _shape_of(pcs: Object) -> Any:
    meta = meta_of(pcs)
    return meta.get("generation"), meta.get("labels"), meta.get("annotations"), meta.get("deletionTimestamp")


def _generation_of(pcs: Object) -> Any:
    status = status_of(pcs)
    progress = status.get("updateProgress") or {}
    return status.get("currentGenerationHash"), progress.get("currentlyUpdating"), progress.get("updateEndedAt")


# ---- what all of them read


class _State:
    """The cluster as one reconcile sees it."""

    def __init__(self, reader: Reader, ctx: CompileContext, now: datetime) -> None:
        self.reader, self.ctx, self.now = reader, ctx, now

    def pcs(self, key: Key) -> CliqueSet | None:
        obj = self.reader.get(_SET, key)
        return CliqueSet(obj, self.reader.indexed(_GROUP, "set", key)) if obj is not None else None

    def of(self, obj: Object) -> CliqueSet | None:
        return next((found for key in _of_set(obj) if (found := self.pcs(key)) is not None), None)

    def owned(self, kind: str, above: Object) -> list[Object]:
        found = self.reader.indexed(kind, "owner", key_of(above))
        return [obj for obj in found if (controller_of(obj) or {}).get("uid") == uid_of(above)]

    def binding(self, pcs: CliqueSet | None) -> Object | None:
        name = topology_rules.topology_name(pcs.obj) if pcs is not None else ""
        return self.reader.get(_BINDING, Key("", name)) if name else None

    def topology(self, pcs: CliqueSet | None) -> Topology:
        """A set that is there already does without what its binding has lost."""
        if pcs is None:
            return Topology()
        found = self.binding(pcs)
        lookup = Lookup([{"kind": _BINDING, **found}] if found is not None else ())
        return resolve(pcs.obj, replace(self.ctx, lookup=lookup), existing=True)[0]

    def template(self, namespace: str, name: str) -> Object | None:
        return self.reader.get(_CLAIM_TEMPLATE, Key(namespace, name))


def _watch(kind: str, handler: EventHandler, indexers: dict[str, Indexer] | None = None) -> Watch:
    version = constants.SCHEDULER_API_VERSION if kind == _GANG else constants.API_VERSION
    return Watch(version, kind, handler, indexers or {})


def _claim_watches(kind: str, of_template: EventHandler) -> list[Watch]:
    """Shared claims and what they are made from, where the server has them."""
    version = "resource.k8s.io/v1"
    return [
        Watch(version, _CLAIM, _changed(_by_owner(kind)), {"owner": _by_owner(kind)}, optional=True),
        Watch(version, _CLAIM_TEMPLATE, of_template, optional=True),
    ]


def _made(of: Callable[[Key], Iterable[Enqueue]]) -> EventHandler:
    """Concerned when it appears: what is made from it is never changed later."""
    return lambda old, new: of(key_of(new)) if old is None and new is not None else ()


def _group_watches(ctx: CompileContext, *, served: bool, handler: EventHandler) -> list[Watch]:
    if not served:
        return []
    release, by_gang = ctx.release, {"gang": _by_label(constants.PODGANG)}
    kinds = [(release.api_version, "Workload")]
    if release.has_pod_groups:
        kinds.append((release.api_version, "PodGroup"))
    found = [Watch(version, kind, handler, dict(by_gang), optional=True) for version, kind in kinds]
    if release.composite_api_version:
        found.append(Watch(release.composite_api_version, KINDS[1], handler, dict(by_gang), optional=True))
    return found


# ---- the controllers


def podcliqueset_controller(ctx: CompileContext) -> Controller:
    sets, sharing = ReverseIndex(_topology), ReverseIndex(claims.templates)

    def of_pcs(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        sets.update(old, new)
        sharing.update(old, new)
        return enqueue_itself(old, new)

    def of_binding(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        return sets.enqueue(name_of(new or old or {}), SOON)

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        state = _State(reader, ctx, now)
        pcs = state.pcs(key)
        owned = [*_OWNED, ("", _CLAIM)]
        return podcliqueset.reconcile(
            podcliqueset.PodCliqueSetView(
                pcs=pcs,
                cliques=_mine(reader.indexed(_CLIQUE, "set", key), reader.indexed(_GROUP, "set", key), pcs),
                groups=[] if pcs is None else state.owned(_GROUP, pcs.obj),
                gangs=[] if pcs is None else state.owned(_GANG, pcs.obj),
                owned=[] if pcs is None else [obj for _, kind in owned for obj in state.owned(kind, pcs.obj)],
                binding=state.binding(pcs),
                topology=state.topology(pcs),
                find=state.template,
                now=now,
            ),
            ctx,
        )

    by_owner = _by_owner(_SET)
    watches = [
        _watch(_SET, of_pcs),
        _watch(_CLIQUE, _changed(_of_set, LATER), {"set": _of_set}),
        _watch(_GROUP, _changed(_of_set, LATER), {"set": _of_set, "owner": by_owner}),
        _watch(_GANG, _changed(by_owner, LATER), {"owner": by_owner}),
        _watch(_BINDING, of_binding),
        *(
            Watch(version, kind, _changed(by_owner), {"owner": by_owner}, optional=True, contents_of=(_SET,))
            for version, kind in _OWNED
        ),
        *_claim_watches(_SET, _made(sharing.enqueue)),
    ]
    return Controller(name="podcliqueset", watches=tuple(watches), reconcile=reconcile_key, workers=10)


def _mine(cliques: list[Object], groups: list[Object], pcs: CliqueSet | None) -> list[Object]:
    """PodCliques that the set, or a scaling group of it, controls; not those of an earlier set of the same name."""
    owners = {uid_of(one) for one in groups} | ({uid_of(pcs.obj)} if pcs is not None else set())
    return [one for one in cliques if (controller_of(one) or {}).get("uid") in owners]


def podcliquescalinggroup_controller(ctx: CompileContext) -> Controller:
    groups, sharing = ReverseIndex(_of_set), ReverseIndex(claims.templates)

    def of_group(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        groups.update(old, new)
        return enqueue_itself(old, new)

    def of_pcs(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        sharing.update(old, new)
        pcs = new or old or {}
        return groups.enqueue(key_of(pcs)) if _differ(old, new, _shape_of, _generation_of) else ()

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        state, found = _State(reader, ctx, now), reader.get(_GROUP, key)
        return group.reconcile(
            group.ScalingGroupView(
                group=found,
                pcs=state.of(found) if found is not None else None,
                members=[] if found is None else state.owned(_CLIQUE, found),
                own_claims=[] if found is None else state.owned(_CLAIM, found),
                find=state.template,
                now=now,
            )
        )

    by_owner = _by_owner(_GROUP)
    watches = [
        _watch(_GROUP, of_group, {"set": _of_set}),
        _watch(_SET, of_pcs),
        _watch(_CLIQUE, _changed(by_owner), {"owner": by_owner}),
        *_claim_watches(
            _GROUP, _made(lambda name: [item for pcs in sharing.enqueue(name) for item in groups.enqueue(pcs.key)])
        ),
    ]
    return Controller(name="podcliquescalinggroup", watches=tuple(watches), reconcile=reconcile_key, workers=10)


def podclique_controller(ctx: CompileContext, *, grouping: bool = True) -> Controller:
    cliques, later = ReverseIndex(_of_set), ReverseIndex(_by_label(constants.BASE_PODGANG))
    sharing = ReverseIndex(claims.templates)
    waiter = ctx.settings.of(PodCliqueSetSettings).init_container_image

    def of_clique(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        cliques.update(old, new)
        later.update(old, new)
        found = [*enqueue_itself(old, new)]
        if _differ(old, new, lambda obj: status_of(obj).get("scheduledReplicas")):
            gang = label(new or old or {}, constants.PODGANG)
            found += later.enqueue(Key(namespace_of(new or old or {}), gang), SOON)
        return found

    def of_pcs(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        sharing.update(old, new)
        return cliques.enqueue(key_of(new or old or {})) if _differ(old, new, _generation_of) else ()

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        state, found = _State(reader, ctx, now), reader.get(_CLIQUE, key)
        pcs = state.of(found) if found is not None else None
        side = choose(pcs, ctx, served=grouping) if pcs is not None else None
        return clique.reconcile(_clique_view(state, found, pcs, side), side, waiter)

    by_owner = _by_owner(_CLIQUE)
    watches = [
        _watch(_CLIQUE, of_clique, {"gang": _by_label(constants.PODGANG)}),
        _watch(_SET, of_pcs),
        _watch(_GROUP, enqueue_nothing, {"set": _of_set}),
        _watch(_GANG, _of_gang),
        Watch("v1", "Pod", _changed(by_owner), {"owner": by_owner}, controllers=(_CLIQUE,)),
        *_claim_watches(
            _CLIQUE, _made(lambda name: [item for pcs in sharing.enqueue(name) for item in cliques.enqueue(pcs.key)])
        ),
        *_group_watches(ctx, served=grouping, handler=_of_group),
    ]
    return Controller(name="podclique", watches=tuple(watches), reconcile=reconcile_key, workers=20)


def _of_gang(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """The PodCliques of a gang are called like its groups."""
    gang = new or old or {}
    return [Enqueue(Key(namespace_of(gang), str(one["name"]))) for one in gang["spec"]["podgroups"]]


def _of_group(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
    """Its pods wait for a group of an earlier gang to be gone."""
    if new is not None or old is None or old["kind"] != "PodGroup":
        return ()
    gang = label(old, constants.PODGANG)
    return [Enqueue(Key(namespace_of(old), name_of(old).removeprefix(f"{gang}-")))] if gang else ()


def _clique_view(
    state: _State, pclq: Object | None, pcs: CliqueSet | None, side: Backend | None
) -> clique.PodCliqueView:
    if pclq is None or pcs is None or side is None:
        return clique.PodCliqueView(pclq, None, [], None, None, {}, None, [], state.template, state.now)
    space, gang = namespace_of(pclq), label(pclq, constants.PODGANG)
    base = label(pclq, constants.BASE_PODGANG)
    first = state.reader.indexed(_CLIQUE, "gang", Key(space, base)) if base else []
    groups = side.groups
    named = state.reader.get(groups.kind(), Key(space, groups.name(gang, name_of(pclq)))) if groups else None
    return clique.PodCliqueView(
        pclq=pclq,
        pcs=pcs,
        pods=state.owned("Pod", pclq),
        podgang=state.reader.get(_GANG, Key(space, gang)),
        base=state.reader.get(_GANG, Key(space, base)) if base else None,
        first={name_of(one): one for one in first},
        group=named,
        own_claims=state.owned(_CLAIM, pclq),
        find=state.template,
        now=state.now,
    )


def podgang_controller(ctx: CompileContext, *, grouping: bool = True) -> Controller:
    gangs, sets = ReverseIndex(_by_owner(_SET)), ReverseIndex(_topology)
    by_gang = _by_label(constants.PODGANG)

    def of_gang(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        gangs.update(old, new)
        return enqueue_itself(old, new)

    def of_pcs(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        sets.update(old, new)
        return gangs.enqueue(key_of(new or old or {})) if _differ(old, new, _shape_of) else ()

    def of_binding(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        found = sets.enqueue(name_of(new or old or {}))
        return [item for pcs, _ in found for item in gangs.enqueue(pcs, SOON)]

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        state, found = _State(reader, ctx, now), reader.get(_GANG, key)
        above = next(iter(_by_owner(_SET)(found)), None) if found is not None else None
        pcs = state.pcs(above) if above is not None else None
        if pcs is not None and found is not None and (controller_of(found) or {}).get("uid") != uid_of(pcs.obj):
            pcs = None
        side = choose(pcs, ctx, served=grouping) if pcs is not None else None
        return podgang.reconcile(_gang_view(state, key, found, pcs), side, ctx)

    watches = [
        _watch(_GANG, of_gang),
        _watch(_SET, of_pcs),
        _watch(_GROUP, enqueue_nothing, {"set": _of_set}),
        _watch(_CLIQUE, _changed(by_gang), {"gang": by_gang}),
        _watch(_BINDING, of_binding),
        Watch("v1", "Pod", _changed(by_gang), {"gang": by_gang}, label=constants.PODGANG),
        *_group_watches(ctx, served=grouping, handler=_changed(by_gang)),
    ]
    return Controller(name="podgang", watches=tuple(watches), reconcile=reconcile_key, workers=10)


def _gang_view(state: _State, key: Key, found: Object | None, pcs: CliqueSet | None) -> podgang.PodGangView:
    reader = state.reader
    groups = [obj for kind in KINDS for obj in reader.indexed(kind, "gang", key)]
    foreign = reader.get("Workload", key)
    if foreign is not None and all(obj is not foreign for obj in groups):
        groups.append(foreign)
    return podgang.PodGangView(
        podgang=found,
        pcs=pcs,
        cliques={name_of(one): one for one in reader.indexed(_CLIQUE, "gang", key)},
        pods=reader.indexed("Pod", "gang", key),
        groups=groups,
        topology=state.topology(pcs),
        now=state.now,
    )


def clustertopologybinding_controller() -> Controller:
    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        return binding.reconcile(reader.get(_BINDING, key), now)

    return Controller(
        name="clustertopologybinding", watches=(_watch(_BINDING, enqueue_itself),), reconcile=reconcile_key, workers=1
    )
