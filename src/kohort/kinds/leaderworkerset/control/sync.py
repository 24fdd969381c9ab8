"""One look at a LeaderWorkerSet, in the order of spec lws 3.1. Only this module says what is done when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kohort.api.kind import Object
from kohort.controllers.script import Outcome, Script, Step, SyncError, Told, must, one, tell
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
    volcano,
    volumes,
)
from kohort.kinds.leaderworkerset.control.gangs import Gangs
from kohort.kinds.leaderworkerset.control.reading import (
    controller_uid,
    group_index,
    has_ended,
    is_going,
    is_ready,
    is_unique,
    leader_name,
    meta_of,
    name_of,
    owner,
    revision_of,
    topology,
    uid_of,
    worker_index,
)
from kohort.kinds.leaderworkerset.control.revisions import Revisions
from kohort.kinds.leaderworkerset.control.state import Replica
from kohort.kinds.leaderworkerset.control.status import Draft
from kohort.kinds.leaderworkerset.control.writes import Part, make_all, put_status, remove_all

WAIT: Final = 5.0  # seconds until something that nobody tells us of is looked for again


@dataclass(frozen=True, slots=True)
class View:
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
class Look:
    """One pass: what is known by now, and what went wrong on the way without ending it."""

    view: View
    lws: Object
    found: dict[int, Replica]
    revisions: Revisions
    gangs: Gangs = field(default_factory=Gangs)
    instances: dict[int, Instance] = field(default_factory=dict)
    volcano: set[str] = field(default_factory=set)  # its PodGroups that are there
    problems: list[str] = field(default_factory=list)
    waits: bool = False

    @property
    def groups(self) -> int:
        return self.revisions.rollout.groups

    def replica(self, index: int) -> Replica:
        return self.found.get(index) or Replica(index)


def sync(view: View, ctx: CompileContext) -> Script:
    lws = view.lws
    if lws is None or is_going(lws):
        return Outcome()
    known: Revisions = yield from revisions.ensure(lws, view.revisions)
    every: Sequence[Object] = yield from _adopt(lws, view.pods)
    look = Look(view, lws, state.observe(lws, every), known)
    if not known.is_new:
        moved = rollout.go_on(lws, known.rollout, state.seen(look.found, known.key))
        look.revisions = yield from revisions.move(known, moved)
    yield from _shared_service(look)
    kept: set[int] = yield from _stop(look)
    yield from _groups(look, kept, ctx)
    yield from _leaders(look)
    yield from _group_services(look, kept)
    yield from _volcano_groups(look, kept)
    yield from _workers(look, kept)
    yield from _reflect(look)
    yield from gangs.clean(lws, look.gangs, view.groups, view.pods)
    yield from volumes.clean(lws, view.claims, view.pods, look.groups)
    if look.problems:
        raise SyncError("; ".join(look.problems))
    return Outcome(after=WAIT if look.waits or look.gangs.reason else None)


def _adopt(lws: Object, every: Sequence[Object]) -> Part:
    """Leaders that a deleted set of this name left behind. -> all pods"""
    found = []
    for pod in every:
        loose = worker_index(pod) == 0 and not controller_uid(pod) and not is_going(pod)
        if not loose or name_of(pod) != leader_name(lws, group_index(pod)):
            found.append(pod)
            continue
        others = meta_of(pod).get("ownerReferences") or []
        write = patch(pod, {"metadata": {"uid": uid_of(pod), "ownerReferences": [*others, owner(lws)]}})
        found.append(must(write, (yield from one(write))))
    return found


def _shared_service(look: Look) -> Part:
    """One of the name that somebody else made is used as it is."""
    if not is_unique(look.lws) and name_of(look.lws) not in look.view.services:
        _, problems = yield from make_all(look.lws, [children.shared_service(look.lws)])
        look.problems += problems


# ---- what has to go


def _stop(look: Look) -> Part:
    """Groups too many, of an older revision, or to be started anew. -> the indices of those that go on"""
    kept, background, foreground, events = set(), [], [], []
    for index, replica in look.found.items():
        leader = replica.leader
        if leader is None or is_going(leader):
            continue
        cause = restart.cause(look.lws, replica)
        if index >= look.groups or _is_outdated(look, index, leader):
            background.append(leader)
        elif cause is not None:
            foreground.append(leader)
            events.append(Told(look.lws, "Normal", "RecreateGroup", restart.note(cause, replica)))
        elif has_ended(leader):
            background.append(leader)
        else:
            kept.add(index)
            background += [pod for pod in replica.workers.values() if has_ended(pod) and not is_going(pod)]
            background += _too_many(look.lws, replica, events)
    yield from remove_all(background)
    yield from remove_all(foreground, "Foreground")
    yield from tell(*events)
    return kept


def _is_outdated(look: Look, index: int, leader: Object) -> bool:
    return look.revisions.rollout.is_new(index) and revision_of(leader) != look.revisions.key


def _too_many(lws: Object, replica: Replica, events: list[Told]) -> list[Object]:
    found = [pod for number, pod in replica.workers.items() if number >= replica.size and not is_going(pod)]
    events += [
        Told(lws, "Warning", "GroupsProgressing", f"deleting pod {name_of(pod)}: the group has {replica.size} pods")
        for pod in found
    ]
    return found


# ---- what has to be there


def _groups(look: Look, kept: set[int], ctx: CompileContext) -> Part:
    lws, view = look.lws, look.view
    if not gangs.is_grouped(lws):
        look.gangs = Gangs(grouped=False)
        return
    if not view.grouping:
        look.gangs.fail(gangs.NOT_AVAILABLE, "the server has no Workloads and PodGroups, so no pod is started")
        return
    release = ctx.release
    look.instances = instances.wanted(lws, look.found, kept, look.revisions, view.groups, view.pods, release)
    newest = instances.numbers(lws, view.groups, release).of(size(lws))
    look.gangs = yield from gangs.ensure(lws, look.instances, newest, view.groups, view.others, ctx)


def _leaders(look: Look) -> Part:
    """All that are missing at once: groups start in any order."""
    lws, wanted = look.lws, []
    for index in range(look.groups):
        replica = look.replica(index)
        if replica.leader is not None:
            continue
        if any(name_of(pod) == leader_name(lws, index) and is_going(pod) for pod in replica.others):
            continue  # of a set that was here before
        key = look.revisions.target(index)
        membership = _membership(look, index, key, "leader")
        if membership is not None:
            wanted.append(pods.leader(look.revisions.spec_at(key), index, key, membership))
    for pod in (yield from _make(look, wanted)):
        index = group_index(pod)
        look.found[index] = replace(look.replica(index), leader=pod)


def _membership(look: Look, index: int, key: str, role: Role) -> pods.Membership | None:
    """What a pod has of its scheduling group; None: the group is not there yet."""
    if look.gangs.grouped:
        instance = look.instances.get(index)
        return look.gangs.membership(look.lws, instance, role) if instance is not None else None
    if look.view.volcano is None:
        return pods.ALONE
    if role == "worker" and volcano.name(look.lws, index, key) not in look.volcano:
        return None
    return volcano.membership(look.lws, index, key)


def _make(look: Look, wanted: Sequence[Object]) -> Part:
    """Pods, their claims first. -> those that were made"""
    if not wanted:
        return []
    for key in sorted({revision_of(pod) for pod in wanted}):
        mates = [pod for pod in wanted if revision_of(pod) == key]
        problems = yield from volumes.ensure(look.revisions.spec_at(key), mates, look.view.claims)
        if problems:
            look.problems += problems
            yield from tell(*(Told(look.lws, "Warning", "FailedCreate", text) for text in problems))
            return []
    made, problems = yield from make_all(look.lws, wanted)
    look.problems += problems
    leaders = sorted((pod for pod in made if worker_index(pod) == 0), key=group_index)
    if leaders:
        names = ", ".join(map(name_of, leaders[:10])) + (" and more" if len(leaders) > 10 else "")
        yield from tell(Told(look.lws, "Normal", "GroupsProgressing", f"Created leader pods {names}"))
    return made


def _led(look: Look, kept: set[int]) -> list[Replica]:
    """Groups whose leader stays: it was there, or was made just now."""
    before = {uid_of(pod) for pod in look.view.pods}
    return [
        replica
        for index, replica in sorted(look.found.items())
        if replica.leader is not None and (index in kept or uid_of(replica.leader) not in before)
    ]


def _group_services(look: Look, kept: set[int]) -> Part:
    wanted = []
    for replica in _led(look, kept):
        leader = replica.leader
        if leader is None or not is_unique(look.revisions.spec_at(revision_of(leader))):
            continue
        known = look.view.services.get(name_of(leader))
        if known is None:
            wanted.append(children.group_service(look.lws, leader))
        elif is_going(known) or (controller_uid(known) and controller_uid(known) != uid_of(leader)):
            look.waits = True  # the one before goes with its leader
    _, problems = yield from make_all(look.lws, wanted)
    look.problems += problems


def _volcano_groups(look: Look, kept: set[int]) -> Part:
    """After the leader, to which it belongs, and before the workers."""
    if look.view.volcano is None:
        return
    wanted = []
    for replica in _led(look, kept):
        if replica.leader is not None:
            group = volcano.pod_group(look.lws, replica.leader)
            found = look.view.volcano.get(name_of(group))
            if found is None:
                wanted.append(group)
            elif found == uid_of(replica.leader):
                look.volcano.add(name_of(group))
            else:
                look.waits = True  # the one before goes with its leader
    answers = (yield Step([create(group) for group in wanted])) if wanted else ()
    for group, first in zip(wanted, answers, strict=True):
        there = first.refusal is not None and first.refusal.already_exists
        answer = (yield from _unseen(group)) if there else first
        if answer.refusal is None:
            look.volcano.add(name_of(group))
        else:
            note = f"PodGroup {name_of(group)} could not be created: {answer.refusal.message}"
            look.problems.append(note)
            yield from tell(Told(look.lws, "Warning", "FailedCreate", note))


def _unseen(group: Object) -> Part:
    """One that is there, of a kind that the server got after we began and that is not watched therefore.

    It may be that of the leader before, and would go with it: it belongs to this one from now on.
    """
    owners = {"ownerReferences": meta_of(group)["ownerReferences"]}
    return (yield from one(patch(group, {"metadata": owners, "spec": group["spec"]})))


def _workers(look: Look, kept: set[int]) -> Part:
    wanted, begun = [], []
    for replica in _led(look, kept):
        missing = _missing_workers(look, replica)
        if missing and not replica.workers and replica.leader is not None:
            begun.append(name_of(replica.leader))
        wanted += missing
    made = yield from _make(look, wanted)
    for pod in made:
        replica = look.found[group_index(pod)]
        look.found[replica.index] = replace(replica, workers={**replica.workers, worker_index(pod): pod})
    there = {str((meta_of(pod).get("ownerReferences") or [{}])[0].get("name")) for pod in made}
    notes = [f"Created worker pods for leader pod {name}" for name in begun if name in there]
    yield from tell(*(Told(look.lws, "Normal", "GroupsProgressing", note) for note in notes))


def _missing_workers(look: Look, replica: Replica) -> list[Object]:
    leader, lws = replica.leader, look.lws
    if leader is None or replica.size <= 1:
        return []
    late = (lws.get("spec") or {}).get("startupPolicy") == "LeaderReady"
    if late and not replica.workers and not is_ready(leader):
        return []
    domain = _domain(look, leader) if topology(lws) else ""
    if domain is None:
        return []
    membership = _membership(look, replica.index, revision_of(leader), "worker")
    if membership is None:
        return []
    at = look.revisions.spec_at(revision_of(leader))
    taken = {name_of(pod) for pod in replica.others}  # of the leader before; they go, and then it is our turn
    found_pods = [
        pods.worker(at, leader, number, domain, membership)
        for number in range(1, replica.size)
        if number not in replica.workers
    ]
    return [pod for pod in found_pods if name_of(pod) not in taken]


def _domain(look: Look, leader: Object) -> str | None:
    """The value of the exclusive topology's label where the leader is; None: not known yet."""
    node = look.view.nodes.get(str((leader.get("spec") or {}).get("nodeName") or ""))
    if node is None:
        return None
    found = (meta_of(node).get("labels") or {}).get(topology(look.lws))
    look.waits = look.waits or not found
    return str(found) if found else None


# ---- what is told


def _reflect(look: Look) -> Part:
    draft = Draft.of(look.lws, look.view.now)
    settled = status.fill(draft, look.found, state.seen(look.found, look.revisions.key))
    gangs.tell_condition(draft, look.gangs)
    if draft.status != (look.lws.get("status") or {}):
        write = put_status(look.lws, draft.status)
        must(write, (yield from one(write)))
    yield from tell(*draft.events)
    if settled and look.revisions.rollout.partition == 0:
        yield from revisions.trim(look.revisions)
