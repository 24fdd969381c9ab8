"""What the scheduler knows of the cluster: the engine's state, the trees, and who belongs where, change by change.

Objects come in whole, in any order, and any number of times. Each change costs what it changes. Two things are noted
for the queue: roots that changed (`dirty_roots`), and how often something happened that may let unschedulable roots
move on (`move_requests`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from kohort.kube.codec import without_collecting
from kohort.place.demand import PendingPod
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass
from kohort.place.profile import default_constraints
from kohort.place.quotas import ResourceQuotas
from kohort.place.signatures import PodSignature
from kohort.place.state import AssignedPod, ClusterState
from kohort.scheduler.budgets import DisruptionBudgets
from kohort.scheduler.companion import Companion
from kohort.scheduler.defaultselectors import DefaultSelectors
from kohort.scheduler.groupingrules import GroupingRules
from kohort.scheduler.laterparts import LaterParts
from kohort.scheduler.model import (
    FINISHED,
    POD_PREFIX,
    GroupObject,
    GroupSpec,
    Job,
    Node,
    Pod,
    PodSpec,
    Workload,
    asked,
    group_spec,
    workload_group_spec,
)
from kohort.scheduler.recordedjobs import RecordedJobs
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.spares import Spares
from kohort.scheduler.trees import BrokenChain, Group, GroupTrees, PodInfo
from kohort.scheduler.volumes import VolumeCache, device_claims

Json = dict[str, Any]
_SPECS: Final = 64  # whose classes are remembered
_CONTAINERS: Final = 16  # of such a spec; larger ones are few, and not worth their memory


class SchedulerCache:
    """The cluster as one process sees it."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self.settings = settings
        self.state = ClusterState()
        self.trees = GroupTrees(forgiving=settings.profile.healing.once_satisfied)
        self.engine = Engine(self.state, settings.profile)
        self.reservations = self.engine.reservations
        self.members: dict[str, PodInfo] = {}  # by uid
        self.names: dict[str, str] = {}  # namespace/name -> uid
        self.finished: dict[str, str] = {}  # uid -> group, of pods that succeeded
        self.jobs = RecordedJobs()
        self.budgets = DisruptionBudgets()
        self.quotas = ResourceQuotas()
        self.workloads: dict[str, Workload] = {}
        self.dirty_roots: dict[str, None] = {}  # roots, in order
        self.move_requests = 0
        self.priorities: Counter[int] = Counter()  # of pods that have a node
        self._replicas: dict[str, set[str]] = {}  # 1.35: workload -> groups that pods name
        self.storage = VolumeCache(self.state.claims)
        self.default_selectors = DefaultSelectors()
        self._pending_pods: dict[str, tuple[PendingPod, tuple[int, int]]] = {}  # by uid; the versions that it rests on
        self._of_specs: dict[int, tuple[object, str, EquivalenceClass]] = {}  # by identity, the last few
        self._on_node: set[str] = set()  # uids of pods that have a node, known to us or not
        self._order = itertools.count()
        self.spares = Spares()
        self.later = LaterParts(self)
        self.companion = Companion(settings.grouping, self.trees, self._regroup, self.mark_group_dirty)
        self.grouping_rules = GroupingRules(settings.grouping)

    # ---- nodes

    def set_node(self, node: Node) -> None:
        before = (self.state.offers, self.state.nodes.end)
        self.state.set_node(msgspec.to_builtins(node))
        self.spares.look_at(node)
        if before != (self.state.offers, self.state.nodes.end):
            self.move_requests += 1

    def drop_node(self, name: str) -> None:
        self.spares.forget_node(name)
        self.state.remove_node(name)

    # ---- pods

    def set_pod(self, pod: Pod) -> None:
        """A pod as it is now. One that is neither ours nor anybody's yet is not looked at."""
        known = self.members.get(pod.metadata.uid)
        group = self._group(pod, known)
        if group is not None and (job := pod.job) and self.jobs.join(job, pod.metadata.uid, group):
            self._recount_job(job)
        if pod.status.phase in FINISHED:
            self._end(pod, known, group)
        elif pod.spec.node_name:
            self._bound(pod, known, group)
        elif self.settings.ours(pod.spec.scheduler_name, pod.metadata.namespace, grouped=group is not None):
            self._pending(pod, known, group)

    def _group(self, pod: Pod, known: PodInfo | None) -> str | None:
        """That it names, or that a rule finds for it."""
        named = pod.group
        if named is not None or pod.spec.scheduler_name not in self.settings.names:
            return named
        if known is not None and known.pod.metadata is pod.metadata:
            return known.group
        return self.companion.assign(pod)

    def set_grouping_rule(self, name: str, body: dict[str, Any] | None) -> None:
        grouping = self.grouping_rules.set(name, body)
        if grouping is None:
            return
        self.companion.use(grouping)
        for member in list(self.members.values()):
            pod = member.pod
            if pod.group is None and pod.spec.scheduler_name in self.settings.names:
                self._regroup(member.uid, self.companion.assign(pod))

    def _regroup(self, uid: str, group: str | None) -> None:
        """A rule says something else of a pod now."""
        member = self.members.get(uid)
        if member is not None and member.group != group:
            self._leave_group(member)
            member.group = group
            self._join_group(member)
            return
        before = self.finished.get(uid)
        if before is not None:
            self.trees.forget(before, uid)
            self.mark_group_dirty(before)
            if group is None:
                del self.finished[uid]
            else:
                self.finished[uid] = group
                self.trees.finish(group, uid)
                self.mark_group_dirty(group)

    def _leave_group(self, member: PodInfo) -> None:
        self.mark_dirty(member)
        self.reservations.drop_pod(self.root_key(member), member.uid)
        if member.group is not None:
            self.trees.leave(member.group, member)

    def _join_group(self, member: PodInfo) -> None:
        self._pending_pods.pop(member.uid, None)
        if member.group is not None:
            self.trees.join(member.group, member)
            if job := member.pod.job:
                self.jobs.join(job, member.uid, member.group)
        if member.node:
            self.state.put_pod(self.assigned_pod(member), member.node)
        self.mark_dirty(member)

    def drop_pod(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        member = self.members.get(uid)
        if member is not None:
            self._remove(member)
        group = self.finished.pop(uid, None)
        if group is not None:
            self.trees.forget(group, uid)
            self.mark_group_dirty(group)
        if job := pod.job:
            self.jobs.leave(job, uid)
            self._recount_job(job)
        self.companion.release(uid)

    def _end(self, pod: Pod, known: PodInfo | None, group: str | None) -> None:
        """It has run: it frees its room. One that succeeded still counts for its group (kubernetes issue 142330)."""
        uid = pod.metadata.uid
        succeeded = pod.status.phase == "Succeeded" and group is not None
        if known is not None:
            self._remove(known, finished=succeeded)
        elif succeeded and group is not None and uid not in self.finished:
            self.trees.finish(group, uid)
        if succeeded and group is not None:
            self.finished[uid] = group
            self.jobs.finish(pod.job, uid)
            self._recount_job(pod.job)

    # ---- Jobs: what they have recorded of members that are gone

    def set_job(self, job: Job) -> None:
        self.jobs.set(job)
        self._recount_job(job.metadata.uid)
        self.companion.set_job(job)

    def drop_job(self, uid: str) -> None:
        self.jobs.drop(uid)
        self._recount_job(uid)

    def _recount_job(self, uid: str) -> None:
        group = self.jobs.group(uid)
        if group is not None and self.trees.record(group, uid, self.jobs.gone(uid)):
            self.mark_group_dirty(group)
        self.jobs.tidy(uid)

    def _bound(self, pod: Pod, known: PodInfo | None, group: str | None) -> None:
        """Bound, by us or by others. What we assumed is now confirmed, or was overtaken."""
        node = pod.spec.node_name
        if known is not None and known.evicting and pod.metadata.deletion_timestamp is not None:
            self.budgets.left(known.uid)
        if known is None:
            self._add(PodInfo(pod, next(self._order), group, node=node))
            return
        if known.group != group:
            known.pod = pod
            self._regroup(known.uid, group)
        was_assumed, was_going, moved = known.assumed, known.going, known.node != node
        started = not moved and bool(pod.status.start_time) and not known.pod.status.start_time
        if started:  # the most frequent change of a pod, and of little consequence
            self.state.started(known.uid, pod.status.start_time or "")
        alike = not moved and _alike(known.pod, pod, started=started)
        if alike and not was_assumed:
            known.pod = pod
            return
        if known.node and moved:
            self._remove_from_node(known)
        known.pod = pod
        self._move(known, node, assumed=False)
        if self.reservations:
            self.reservations.drop_pod(self.root_key(known), pod.metadata.uid)
        if not alike:  # what was assumed has its room already
            self._add_to_node(known)
        if moved or was_assumed or known.going != was_going:
            self.mark_dirty(known)

    def _pending(self, pod: Pod, known: PodInfo | None, group: str | None) -> None:
        gated, leaving = bool(pod.spec.scheduling_gates), pod.metadata.deletion_timestamp is not None
        if known is None:
            nominated = pod.status.nominated_node_name
            self._add(PodInfo(pod, next(self._order), group, nominated=nominated, gated=gated, leaving=leaving))
            return
        if known.group != group:
            self._regroup(known.uid, group)
        if known.node:
            # Our binding is under way (an older state of the pod arrives), or was undone by nobody: pods stay bound.
            known.leaving = leaving
            return
        changed = (known.gated, known.leaving) != (gated, leaving) or not _alike(known.pod, pod)
        known.pod = pod
        if not changed:
            return
        self._pending_pods.pop(known.uid, None)
        if known.group is not None:
            self.trees.leave(known.group, known)
            known.gated, known.leaving = gated, leaving
            self.trees.join(known.group, known)
        known.gated, known.leaving = gated, leaving
        self.mark_dirty(known)

    def _add(self, member: PodInfo) -> None:
        pod = member.pod
        self.members[member.uid] = member
        self.names[pod.key] = member.uid
        self.spares.add(member)
        group = member.group
        if group is not None:
            self._name_workload_group(group)
            self.trees.join(group, member)
        if member.node:
            self._add_to_node(member)
        elif member.nominated:
            self._nominate_again(member)
        self.mark_dirty(member)

    def _remove(self, member: PodInfo, *, finished: bool = False) -> None:
        self.mark_dirty(member)
        self.budgets.left(member.uid)
        if member.node:
            self._remove_from_node(member)
        if self.reservations:
            self.reservations.drop_pod(self.root_key(member), member.uid)
        self._pending_pods.pop(member.uid, None)
        group = member.group
        if group is not None:
            self.trees.leave(group, member, finished=finished)
            self._forget_workload_group(group)
        del self.members[member.uid]
        self.spares.remove(member)
        if self.names.get(member.pod.key) == member.uid:
            del self.names[member.pod.key]

    def _add_to_node(self, member: PodInfo) -> None:
        """On its node, in the engine's eyes. Seating again replaces."""
        if member.uid not in self._on_node:
            self._on_node.add(member.uid)
            self.priorities[member.pod.spec.priority or 0] += 1
        self.state.put_pod(self.assigned_pod(member), member.node)
        self._pending_pods.pop(member.uid, None)
        if self.state.interpod:
            self.move_requests += 1  # a pod that comes can be the one that another wants to be near

    def _remove_from_node(self, member: PodInfo) -> None:
        self.state.remove_pod(member.uid)
        self._on_node.discard(member.uid)
        priority = member.pod.spec.priority or 0
        self.priorities[priority] -= 1
        if self.priorities[priority] <= 0:
            del self.priorities[priority]
        self.move_requests += 1

    # ---- our own decisions

    def assume(self, member: PodInfo, node: str) -> None:
        """Decided: from now on it takes its room."""
        self._move(member, node, assumed=True)
        member.nominated = ""
        self._add_to_node(member)

    def forget(self, member: PodInfo) -> None:
        """The decision did not come true."""
        if member.uid in self.members and member.assumed:
            self._remove_from_node(member)
            self._move(member, "", assumed=False)
            self.mark_dirty(member)

    def _move(self, member: PodInfo, node: str, *, assumed: bool) -> None:
        group = member.group
        if group is not None:
            self.trees.move(group, member, node, assumed=assumed)
        member.node, member.assumed = node, assumed
        self.spares.moved(member)

    def set_evicting(self, member: PodInfo, evicting: bool) -> None:
        """It was chosen to go, or stays after all. To the engine it is terminating meanwhile."""
        member.evicting = evicting
        if member.node:
            self.state.put_pod(self.assigned_pod(member), member.node)

    # ---- groups

    def set_group(self, obj: GroupObject, *, composite: bool = False) -> None:
        self._set(group_spec(obj, composite=composite))

    def drop_group(self, key: str) -> None:
        group = self.trees.get(key)
        if group is None or group.spec is None:
            return
        self._mark_root_dirty(group)
        self.trees.drop(key)

    def set_workload(self, workload: Workload) -> None:
        """1.35: the groups it holds come to be as pods name them."""
        name = f"{workload.metadata.namespace}/{workload.metadata.name}"
        self.workloads[name] = workload
        for key in self._replicas.get(name, ()):
            self._name_workload_group(key)

    def drop_workload(self, name: str) -> None:
        self.workloads.pop(name, None)
        for key in self._replicas.get(name, ()):
            self.drop_group(key)

    def _set(self, spec: GroupSpec) -> None:
        before = self.trees.get(spec.key)
        if before is not None and before.spec == spec:
            before.spec = spec  # only its conditions moved
            return
        if before is not None and before.spec is not None and before.spec.claims != spec.claims:
            for uid in before.pending:
                self._pending_pods.pop(uid, None)
        group = self.trees.set(spec)
        self._mark_root_dirty(group)

    def _name_workload_group(self, key: str) -> None:
        if key.count("/") != 3:
            return
        parts = key.split("/")
        name = "/".join(parts[:2])
        self._replicas.setdefault(name, set()).add(key)
        workload = self.workloads.get(name)
        spec = workload_group_spec(workload, key) if workload is not None else None
        if spec is not None:
            self._set(spec)
        else:
            self.drop_group(key)

    def _forget_workload_group(self, key: str) -> None:
        """1.35: a replica that no pod names any more was never an object of its own."""
        if key.count("/") != 3:
            return
        group, parts = self.trees.get(key), key.split("/")
        if group is not None and not (group.pending or group.placed or group.done):
            self.drop_group(key)
            self._replicas.get("/".join(parts[:2]), set()).discard(key)

    # ---- namespaces

    def set_namespace(self, name: str, labels: dict[str, str] | None) -> None:
        self.state.interpod.set_namespace(name, labels)
        self.move_requests += 1

    # ---- roots

    def root(self, member: PodInfo) -> Group | BrokenChain | None:
        """The root of its tree; None for a pod without a group."""
        key = member.group
        if key is None:
            return None
        group = self.trees.get(key)
        return BrokenChain(key) if group is None else self.trees.root(group)

    def root_key(self, member: PodInfo) -> str:
        """Of the entry in the queue that the pod belongs to; empty if it belongs to none."""
        if member.group is None:
            return POD_PREFIX + member.uid
        group = self.trees.get(member.group)
        if group is None:
            return ""
        if group.parent is None and group.spec is not None:
            return group.key
        root = self.trees.root(group)
        return "" if isinstance(root, BrokenChain) else root.key

    def mark_dirty(self, member: PodInfo) -> None:
        self.dirty_roots[self.root_key(member)] = None

    def mark_group_dirty(self, key: str) -> None:
        group = self.trees.get(key)
        if group is not None:
            self._mark_root_dirty(group)

    def _mark_root_dirty(self, group: Group) -> None:
        root = self.trees.root(group)
        self.dirty_roots[group.key] = None
        if not isinstance(root, BrokenChain):
            self.dirty_roots[root.key] = None

    def parked(self) -> Iterator[tuple[PodInfo, BrokenChain]]:
        """Pods that no root speaks for, and why."""
        for group in self.trees:
            if not group.pending:
                continue
            root = self.trees.root(group)
            if isinstance(root, BrokenChain):
                yield from ((member, root) for member in group.pending.values())

    # ---- the engine's view of a pod

    def equivalence_class(self, member: PodInfo) -> EquivalenceClass:
        """What the engine sees of a pending pod; asked again when rules between pods or claims changed."""
        return self.pending_pod(member).eq_class

    def _versions(self) -> tuple[int, int]:
        """Of claims and of owners' selectors, which classes rest on."""
        self.storage.flush()
        return self.state.claims.version, self.default_selectors.version

    def _devices(self, member: PodInfo) -> Iterator[str]:
        if not member.pod.spec.resource_claims:
            return iter(())
        group = self.trees.get(member.group or "")
        return device_claims(member.pod, group.spec if group is not None else None)

    def _defaults(self, member: PodInfo) -> Sequence[Json]:
        """The profile's spread constraints for a pod that has none. Members of a group are placed together, not apart
        (docs/differences.md)."""
        profile, pod = self.settings.profile, member.pod
        if not profile.default_spread or pod.spec.topology_spread_constraints or member.group is not None:
            return ()
        selector = self.default_selectors.selector(pod)
        return () if selector is None else default_constraints(profile, selector)

    def pending_pod(self, member: PodInfo, nominated: str = "") -> PendingPod:
        """A pending pod as the engine places it."""
        versions, known = self._versions(), self._pending_pods.get(member.uid)  # in any case: claims are flushed there
        if known is None or known[0].eq_class.stale or known[1] != versions:
            found = self._as_pending(member)
        else:
            found = known[0]
        return replace(found, nominated=self.state.row(nominated)) if nominated else found

    def pending_pods(self, members: Mapping[str, PodInfo], nominated: Mapping[str, str]) -> Iterator[PendingPod]:
        """The same of those that are not leaving. A gang that waits is asked about again and again."""
        versions, pending = self._versions(), self._pending_pods
        for uid, member in members.items():
            if not member.leaving:
                known = pending.get(uid)
                if nominated:
                    yield self.pending_pod(member, nominated.get(uid, ""))
                elif known is None or known[1] != versions or known[0].eq_class.stale:
                    yield self._as_pending(member)
                else:
                    yield known[0]

    def _as_pending(self, member: PodInfo) -> PendingPod:
        # Of a pod that is large much is made and let go of, in which there are no cycles to look for.
        pod, eq_class = member.pod, without_collecting(self._class_of, member)
        meta = pod.metadata
        rank = pod.rank if meta.labels or meta.annotations else None
        found = PendingPod(member.uid, eq_class, meta.labels or {}, None, rank)
        if not eq_class.excess or eq_class.signature.hopeless:  # others that are too much today may not be tomorrow
            self._pending_pods[member.uid] = (found, (self.state.claims.version, self.default_selectors.version))
        return found

    def _class_of(self, member: PodInfo) -> EquivalenceClass:
        """Pods that share one spec (or all that is in it: their containers), without labels and claims, are of one
        class; in a simulation many do."""
        pod, defaults = member.pod, self._defaults(member)
        spec, namespace = pod.spec, pod.metadata.namespace
        if pod.metadata.labels or spec.volumes or spec.resource_claims or defaults:
            claims = list(self._devices(member))
            return self.state.equivalence_class(asked(pod), claims=claims, defaults=defaults)
        shared = spec.containers if _is_bare(spec) else spec
        known = self._of_specs.get(id(shared))
        if known is not None and known[0] is shared and known[1] == namespace and not known[2].stale:
            return known[2]
        eq_class = self.state.equivalence_class(asked(pod))
        if not eq_class.excess and len(spec.containers) <= _CONTAINERS:
            if len(self._of_specs) >= _SPECS:
                del self._of_specs[next(iter(self._of_specs))]  # one: all of them would be freed at once
            self._of_specs[id(shared)] = (shared, namespace, eq_class)
        return eq_class

    def forget_specs(self) -> list[object]:
        """What is kept because the next pod may want it; it may be large."""
        found = [shared for shared, _, _ in self._of_specs.values()]
        self._of_specs.clear()
        return found

    def as_json(self, member: PodInfo) -> Json:
        """The pod as the API has it, as far as it is read."""
        body: Json = msgspec.to_builtins(member.pod)
        return body

    def assigned_pod(self, member: PodInfo) -> AssignedPod:
        known = self._pending_pods.get(member.uid)
        if known is not None and known[0].eq_class.signature.is_plain and not member.pod.spec.node_name:
            return self._as_it_was_pending(member, known[0].eq_class.signature)
        pod = self.state.assigned_pod(self.as_json(member), member.group)
        return replace(pod, terminating=True) if member.evicting else pod

    def _as_it_was_pending(self, member: PodInfo, signature: PodSignature) -> AssignedPod:
        """Of one that gets its node by us: it asks for what it asked for, where no rule or claim is read in another way
        once it runs."""
        pod = member.pod
        meta, leaving = pod.metadata, member.evicting or pod.metadata.deletion_timestamp is not None
        return AssignedPod(
            meta.uid, meta.namespace or "default", meta.name, meta.labels or {}, signature, pod.spec.priority or 0,
            member.group, pod.status.start_time or "", leaving,
        )  # fmt: skip

    def _nominate_again(self, member: PodInfo) -> None:
        """After a restart: the API says where it was meant to go."""
        key = self.root_key(member)
        if not key:
            return
        self.reservations.add(key, self.priority(member), self.pending_pod(member), member.nominated)

    def priority(self, member: PodInfo) -> int:
        """Of the root it belongs to."""
        root = self.root(member)
        if root is None or isinstance(root, BrokenChain) or root.spec is None or root.spec.priority is None:
            return member.pod.spec.priority or 0
        return root.spec.priority


def _alike(one: Pod, other: Pod, *, started: bool = False) -> bool:
    """Nothing changed that a decision looks at, the node apart. `started`: that it has begun to run is known."""
    return (
        one.metadata.labels == other.metadata.labels
        and one.metadata.annotations == other.metadata.annotations
        and (one.metadata.deletion_timestamp is None) == (other.metadata.deletion_timestamp is None)
        and (started or one.status.start_time == other.status.start_time)
        and one.status.resource_claim_statuses == other.status.resource_claim_statuses
        and (one.spec == other.spec or _on(one.spec, other.spec.node_name) == other.spec)
    )


def _is_bare(spec: PodSpec) -> bool:
    """Whether its containers are all that the engine looks at."""
    more = spec.node_name or spec.init_containers or spec.node_selector or spec.affinity or spec.tolerations
    return not (more or spec.topology_spread_constraints or spec.overhead or spec.resources or spec.host_network)


def _on(spec: PodSpec, node: str) -> PodSpec:
    return msgspec.structs.replace(spec, node_name=node)
