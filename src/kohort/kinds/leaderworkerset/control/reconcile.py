"""One reconcile of a LeaderWorkerSet, in the order of spec lws 3.1. Only this module says what is done when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import controller_uid, is_deleting, meta_of, name_of, owner_reference, uid_of
from kohort.controllers.reconcile import (
    CREATES_AT_MOST,
    Event,
    Part,
    Reconcile,
    ReconcileError,
    Result,
    Step,
    emit,
    must,
    one,
)
from kohort.controllers.writes import create, patch
from kohort.gang.compile import CompileContext
from kohort.kinds.leaderworkerset.api.levels import Role, size
from kohort.kinds.leaderworkerset.compile.names import Instance
from kohort.kinds.leaderworkerset.control import (
    children,
    gangs,
    instances,
    pods,
    restart,
    revisions,
    rollout,
    state,
    status,
    tpu,
    volcano,
)
from kohort.kinds.leaderworkerset.control.gangs import Gangs
from kohort.kinds.leaderworkerset.control.reading import (
    group_index,
    has_ended,
    is_ready,
    is_unique,
    leader_name,
    revision_of,
    topology,
    worker_index,
)
from kohort.kinds.leaderworkerset.control.revisions import Revisions
from kohort.kinds.leaderworkerset.control.state import Replica
from kohort.kinds.leaderworkerset.control.status import LeaderWorkerSetStatus
from kohort.kinds.leaderworkerset.control.writes import make_all, put_status, remove_all

WAIT: Final = 5.0  # seconds until something that nobody tells us of is looked for again


@dataclass(frozen=True, slots=True)
class LeaderWorkerSetView:
    """A set, all pods of its name, its ControllerRevisions, Services and claims by name, the nodes of its leaders.

    `groups`: Workloads and groups that it controls; `others`: what its parents have; `grouping`: the server has groups.
    `volcano`: names of Volcano's PodGroups with the uids of their leaders; None: somebody else schedules.
    """

    lws: Object | None
    now: datetime
    pods: Sequence[Object] = ()
    revisions: Sequence[Object] = ()
    services: Mapping[str, Object] = field(default_factory=dict)
    claims: Mapping[str, Object] = field(default_factory=dict)
    nodes: Mapping[str, Object] = field(default_factory=dict)
    groups: Sequence[Object] = ()
    others: Sequence[Object] = ()
    grouping: bool = True
    volcano: Mapping[str, str] | None = None


@dataclass(slots=True)
class Pass:
    """One pass: what is known by now, and what went wrong on the way without ending it."""

    view: LeaderWorkerSetView
    lws: Object
    found: dict[int, Replica]
    revisions: Revisions
    gangs: Gangs = field(default_factory=Gangs)
    instances: dict[int, Instance] = field(default_factory=dict)
    volcano: set[str] = field(default_factory=set)  # its PodGroups that are there
    problems: list[str] = field(default_factory=list)
    waits: bool = False
    more: bool = False  # there is more to make than one pass makes

    @property
    def groups(self) -> int:
        return self.revisions.rollout.groups

    def indices(self) -> list[int]:
        """Of the groups that this pass is about: all that are there, and the first of those that are missing."""
        there = sorted(index for index in self.found if index < self.groups)
        absent = list(islice((index for index in range(self.groups) if index not in self.found), CREATES_AT_MOST))
        self.more = self.more or len(there) + len(absent) < self.groups
        return sorted([*there, *absent])

    def replica(self, index: int) -> Replica:
        return self.found.get(index) or Replica(index)


def reconcile(view: LeaderWorkerSetView, ctx: CompileContext) -> Reconcile:
    lws = view.lws
    if lws is None or is_deleting(lws):
        return Result()
    if impossible := tpu.too_many_hosts(lws):
        yield from emit(Event(lws, "Warning", "FailedCreate", impossible))
        return Result()
    known: Revisions = yield from revisions.ensure(lws, view.revisions)
    every: Sequence[Object] = yield from _adopt(lws, view.pods)
    run = Pass(view, lws, state.observe(lws, every), known)
    if not known.is_new:
        moved = rollout.go_on(lws, known.rollout, state.seen(run.found, known.key))
        run.revisions = yield from revisions.move(known, moved)
    yield from _shared_service(run)
    kept: set[int] = yield from _stop(run)
    yield from _groups(run, kept, ctx)
    yield from _leaders(run)
    yield from _group_services(run, kept)
    yield from _volcano_groups(run, kept)
    yield from _workers(run, kept)
    yield from _reflect(run)
    yield from gangs.clean(lws, run.gangs, view.groups, view.pods)
    yield from children.clean_claims(lws, view.claims, view.pods, run.groups)
    if run.problems:
        raise ReconcileError("; ".join(run.problems))
    if run.more and not run.gangs.reason:
        return Result(requeue_after=0.0)
    return Result(requeue_after=WAIT if run.waits or run.gangs.reason else None)


def _adopt(lws: Object, every: Sequence[Object]) -> Part:
    """Leaders that a deleted set of this name left behind. -> all pods"""
    found = []
    for pod in every:
        loose = worker_index(pod) == 0 and not controller_uid(pod) and not is_deleting(pod)
        if not loose or name_of(pod) != leader_name(lws, group_index(pod)):
            found.append(pod)
            continue
        others = meta_of(pod).get("ownerReferences") or []
        write = patch(pod, {"metadata": {"uid": uid_of(pod), "ownerReferences": [*others, owner_reference(lws)]}})
        found.append(must(write, (yield from one(write))))
    return found


def _shared_service(run: Pass) -> Part:
    """One of the name that somebody else made is used as it is."""
    if not is_unique(run.lws) and name_of(run.lws) not in run.view.services:
        _, problems = yield from make_all(run.lws, [children.shared_service(run.lws)])
        run.problems += problems


# ---- what has to go


def _stop(run: Pass) -> Part:
    """Groups too many, of an older revision, or to be started anew. -> the indices of those that go on"""
    kept, background, foreground, events = set(), [], [], []
    for index, replica in run.found.items():
        leader = replica.leader
        if leader is None or is_deleting(leader):
            continue
        cause = restart.cause(run.lws, replica)
        if index >= run.groups or _is_outdated(run, index, leader):
            background.append(leader)
        elif cause is not None:
            foreground.append(leader)
            events.append(Event(run.lws, "Normal", "RecreateGroup", restart.note(cause, replica)))
        elif has_ended(leader):
            background.append(leader)
        else:
            kept.add(index)
            background += [pod for pod in replica.workers.values() if has_ended(pod) and not is_deleting(pod)]
            background += _too_many(run.lws, replica, events)
    yield from remove_all(background)
    yield from remove_all(foreground, "Foreground")
    yield from emit(*events)
    return kept


def _is_outdated(run: Pass, index: int, leader: Object) -> bool:
    return run.revisions.rollout.is_new(index) and revision_of(leader) != run.revisions.key


def _too_many(lws: Object, replica: Replica, events: list[Event]) -> list[Object]:
    found = [pod for number, pod in replica.workers.items() if number >= replica.size and not is_deleting(pod)]
    events += [
        Event(lws, "Warning", "GroupsProgressing", f"deleting pod {name_of(pod)}: the group has {replica.size} pods")
        for pod in found
    ]
    return found


# ---- what has to be there


def _groups(run: Pass, kept: set[int], ctx: CompileContext) -> Part:
    lws, view = run.lws, run.view
    if not gangs.is_grouped(lws):
        run.gangs = Gangs(grouped=False)
        return
    if not view.grouping:
        run.gangs.fail(gangs.NOT_AVAILABLE, "the server has no Workloads and PodGroups, so no pod is started")
        return
    release = ctx.release
    run.instances = instances.wanted(
        lws, run.indices(), run.found, kept, run.revisions, view.groups, view.pods, release
    )
    newest = instances.numbers(lws, view.groups, release).of(size(lws))
    run.gangs = yield from gangs.ensure(lws, run.instances, newest, view.groups, view.others, ctx)


def _leaders(run: Pass) -> Part:
    """All that are missing at once: groups start in any order."""
    lws, wanted = run.lws, []
    for index in run.indices():
        replica = run.replica(index)
        if replica.leader is not None:
            continue
        if any(name_of(pod) == leader_name(lws, index) and is_deleting(pod) for pod in replica.others):
            continue  # of a set that was here before
        key = run.revisions.target(index)
        membership = _membership(run, index, key, "leader")
        if membership is not None:
            wanted.append(pods.leader(run.revisions.spec_at(key), index, key, membership))
    for pod in (yield from _make(run, wanted[:CREATES_AT_MOST])):
        index = group_index(pod)
        run.found[index] = replace(run.replica(index), leader=pod)


def _membership(run: Pass, index: int, key: str, role: Role) -> pods.Membership | None:
    """What a pod has of its scheduling group; None: the group is not there yet."""
    if run.gangs.grouped:
        instance = run.instances.get(index)
        return run.gangs.membership(run.lws, instance, role) if instance is not None else None
    if run.view.volcano is None:
        return pods.ALONE
    if role == "worker" and volcano.name(run.lws, index, key) not in run.volcano:
        return None
    return volcano.membership(run.lws, index, key)


def _make(run: Pass, wanted: Sequence[Object]) -> Part:
    """Pods, their claims first. -> those that were made"""
    if not wanted:
        return []
    for key in sorted({revision_of(pod) for pod in wanted}):
        mates = [pod for pod in wanted if revision_of(pod) == key]
        problems = yield from children.ensure_claims(run.revisions.spec_at(key), mates, run.view.claims)
        if problems:
            run.problems += problems
            yield from emit(*(Event(run.lws, "Warning", "FailedCreate", text) for text in problems))
            return []
    made, problems = yield from make_all(run.lws, wanted)
    run.problems += problems
    leaders = sorted((pod for pod in made if worker_index(pod) == 0), key=group_index)
    if leaders:
        names = ", ".join(map(name_of, leaders[:10])) + (" and more" if len(leaders) > 10 else "")
        yield from emit(Event(run.lws, "Normal", "GroupsProgressing", f"Created leader pods {names}"))
    return made


def _led(run: Pass, kept: set[int]) -> list[Replica]:
    """Groups whose leader stays: it was there, or was made just now."""
    before = {uid_of(pod) for pod in run.view.pods}
    return [
        replica
        for index, replica in sorted(run.found.items())
        if replica.leader is not None and (index in kept or uid_of(replica.leader) not in before)
    ]


def _group_services(run: Pass, kept: set[int]) -> Part:
    wanted = []
    for replica in _led(run, kept):
        leader = replica.leader
        if leader is None or not is_unique(run.revisions.spec_at(revision_of(leader))):
            continue
        known = run.view.services.get(name_of(leader))
        if known is None:
            wanted.append(children.group_service(run.lws, leader))
        elif is_deleting(known) or (controller_uid(known) and controller_uid(known) != uid_of(leader)):
            run.waits = True  # the one before goes with its leader
    _, problems = yield from make_all(run.lws, wanted)
    run.problems += problems


def _volcano_groups(run: Pass, kept: set[int]) -> Part:
    """After the leader, to which it belongs, and before the workers."""
    if run.view.volcano is None:
        return
    wanted = []
    for replica in _led(run, kept):
        if replica.leader is not None:
            group = volcano.pod_group(run.lws, replica.leader)
            found = run.view.volcano.get(name_of(group))
            if found is None:
                wanted.append(group)
            elif found == uid_of(replica.leader):
                run.volcano.add(name_of(group))
            else:
                run.waits = True  # the one before goes with its leader
    answers = (yield Step([create(group) for group in wanted])) if wanted else ()
    for group, first in zip(wanted, answers, strict=True):
        there = first.refusal is not None and first.refusal.already_exists
        answer = (yield from _unseen(group)) if there else first
        if answer.refusal is None:
            run.volcano.add(name_of(group))
        else:
            note = f"PodGroup {name_of(group)} could not be created: {answer.refusal.message}"
            run.problems.append(note)
            yield from emit(Event(run.lws, "Warning", "FailedCreate", note))


def _unseen(group: Object) -> Part:
    """One that is there, of a kind that the server got after we began and that is not watched therefore.

    It may be that of the leader before, and would go with it: it belongs to this one from now on.
    """
    owners = {"ownerReferences": meta_of(group)["ownerReferences"]}
    return (yield from one(patch(group, {"metadata": owners, "spec": group["spec"]})))


def _workers(run: Pass, kept: set[int]) -> Part:
    wanted: list[Object] = []
    begun: list[str] = []
    for replica in _led(run, kept):
        missing = _missing_workers(run, replica, CREATES_AT_MOST - len(wanted))
        if missing and not replica.workers and replica.leader is not None:
            begun.append(name_of(replica.leader))
        wanted += missing
    run.more = run.more or len(wanted) >= CREATES_AT_MOST
    made = yield from _make(run, wanted)
    new: dict[int, dict[int, Object]] = {}
    for pod in made:
        new.setdefault(group_index(pod), {})[worker_index(pod)] = pod
    for index, workers in new.items():
        run.found[index] = replace(run.found[index], workers={**run.found[index].workers, **workers})
    there = {str((meta_of(pod).get("ownerReferences") or [{}])[0].get("name")) for pod in made}
    notes = [f"Created worker pods for leader pod {name}" for name in begun if name in there]
    yield from emit(*(Event(run.lws, "Normal", "GroupsProgressing", note) for note in notes))


def _missing_workers(run: Pass, replica: Replica, most: int) -> list[Object]:
    leader, lws = replica.leader, run.lws
    if leader is None or replica.size <= 1 or most <= 0:
        return []
    late = (lws.get("spec") or {}).get("startupPolicy") == "LeaderReady"
    if late and not replica.workers and not is_ready(leader):
        return []
    domain = _domain(run, leader) if topology(lws) else ""
    if domain is None:
        return []
    membership = _membership(run, replica.index, revision_of(leader), "worker")
    if membership is None:
        return []
    at = run.revisions.spec_at(revision_of(leader))
    taken = {name_of(pod) for pod in replica.others}  # of the leader before; they go, and then it is our turn
    absent = (number for number in range(1, replica.size) if number not in replica.workers)
    found = (pods.worker(at, leader, number, domain, membership) for number in absent)
    return list(islice((pod for pod in found if name_of(pod) not in taken), most))


def _domain(run: Pass, leader: Object) -> str | None:
    """The value of the exclusive topology's label where the leader is; None: not known yet."""
    node = run.view.nodes.get(str((leader.get("spec") or {}).get("nodeName") or ""))
    if node is None:
        return None
    found = (meta_of(node).get("labels") or {}).get(topology(run.lws))
    run.waits = run.waits or not found
    return str(found) if found else None


# ---- what is told


def _reflect(run: Pass) -> Part:
    draft = LeaderWorkerSetStatus.of(run.lws, run.view.now)
    settled = status.fill(draft, run.found, state.seen(run.found, run.revisions.key))
    gangs.tell_condition(draft, run.gangs)
    if draft.status != (run.lws.get("status") or {}):
        write = put_status(run.lws, draft.status)
        must(write, (yield from one(write)))
    yield from emit(*draft.events)
    if settled and run.revisions.rollout.partition == 0:
        yield from revisions.trim(run.revisions)
