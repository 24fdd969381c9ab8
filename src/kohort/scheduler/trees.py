"""Who belongs to whom: groups, their parents, their members, and whether a tree has enough of them to start.

Each group counts its own: pods, and children that are ready, that have pods waiting, that are held by a gate. A pod
that comes or goes changes the counters of its group, and of an ancestor only if the group's own answer flips. So the
cost per pod is the depth of the tree at the most, never its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kohort.api.scheduling.healing import KEYS, SPARES, HealingError, read_healing
from kohort.place.victims import GroupInfo
from kohort.scheduler.model import GroupSpec, Pod, described

Traits = tuple[str, int, str]  # schedulerName, priority, preemption policy
Answers = tuple[bool, bool, bool, bool]  # ready, waiting, gated, settled
NOTHING: Final[Answers] = (False, False, False, False)


@dataclass(slots=True, eq=False)
class PodInfo:
    """A pod that we know: pending for us, or with a node by anybody's decision."""

    pod: Pod
    order: int  # of arrival
    group: str | None = None  # that it names, or that a rule has put it into
    node: str = ""  # where it is, or will be
    assumed: bool = False  # decided by us, not yet confirmed by the API server
    nominated: str = ""
    refused: set[str] = field(default_factory=set)  # nodes that refused the binding
    refusals: int = 0
    gated: bool = False
    leaving: bool = False
    evicting: bool = False  # chosen to go for another, and the watch has not shown it yet
    going: bool = False  # it has a node, and is being deleted
    uid: str = field(init=False)

    def __post_init__(self) -> None:
        self.uid = self.pod.metadata.uid

    @property
    def age(self) -> tuple[str, int]:
        return (self.pod.metadata.creation_timestamp, self.order)

    @property
    def traits(self) -> Traits:
        spec = self.pod.spec
        return (spec.scheduler_name, spec.priority or 0, spec.preemption_policy or "PreemptLowerPriority")


@dataclass(slots=True, eq=False)
class Group:
    """A node of a tree. Without a spec it is only a name that pods or children use."""

    key: str
    spec: GroupSpec | None = None
    parent: Group | None = None
    children: dict[str, Group] = field(default_factory=dict)
    pending: dict[str, PodInfo] = field(default_factory=dict)
    placed: dict[str, PodInfo] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)  # members that succeeded: they need no place any more
    recorded: dict[str, int] = field(default_factory=dict)  # Job -> members it has recorded, pods gone
    traits: Counter[Traits] = field(default_factory=Counter)
    annotated: bool = False  # some member has, or had, annotations
    gates: int = 0  # pending members behind a scheduling gate
    leaving: int = 0  # pending members that are being deleted
    assumed: int = 0  # placed members whose binding is not confirmed
    going: int = 0  # placed members that are being deleted
    once: bool = False  # it has had its minimum
    forgiving: bool = False  # having had it once is enough for members that come back (match-policy once-satisfied)
    ready_children: int = 0
    waiting_children: int = 0
    gated_children: int = 0
    settled_children: int = 0
    ready: bool = False  # enough members exist, by its own policy
    waiting: bool = False  # some member needs a place
    gated: bool = False  # some pending member is behind a scheduling gate
    settled: bool = False  # enough members have a node for certain

    @property
    def done(self) -> int:
        """Members that succeeded, whether their pods are still there or only their Jobs know."""
        return len(self.finished) + sum(self.recorded.values()) if self.recorded else len(self.finished)

    @property
    def members(self) -> int:
        """Pods that count for the minimum."""
        return len(self.pending) - self.leaving + len(self.placed) + self.done

    @property
    def need(self) -> int:
        """How many must be there before members are bound; one that comes back to a forgiving group needs no other."""
        least = 0 if self.spec is None else self.spec.need
        return min(least, 1) if self.forgiving and self.once and self.placed else least

    @property
    def is_named(self) -> bool:
        return bool(self.spec or self.children or self.pending or self.placed or self.done)

    @property
    def answers(self) -> Answers:
        return (self.ready, self.waiting, self.gated, self.settled)

    def walk(self) -> Iterator[Group]:
        """Itself and everything below that exists, parents first."""
        return (group for group, _ in self.with_levels()) if self.children else iter((self,))

    def with_levels(self) -> Iterator[tuple[Group, int]]:
        """The same with the level of each, its own being 1. Users decide how deep trees are: nothing here recurses, and
        a group that is among its own ancestors is visited once."""
        waiting, seen = [(self, 1)], {self.key}
        while waiting:
            group, level = waiting.pop()
            yield group, level
            if group.children:
                below = [child for child in group.ordered() if child.key not in seen]
                seen.update(child.key for child in below)
                waiting += [(child, level + 1) for child in reversed(below)]

    def leaves(self) -> Iterator[Group]:
        """The PodGroups below, itself included; children in the order they are visited."""
        if not self.children:
            return iter((self,) if self.spec is not None and not self.spec.composite else ())
        return (group for group in self.walk() if group.spec is not None and not group.spec.composite)

    def levels(self) -> int:
        return max(level for _, level in self.with_levels())

    def ordered(self) -> list[Group]:
        """Children by creation, then name (spec scheduler 4.2)."""
        known = [child for child in self.children.values() if child.spec is not None]
        return sorted(known, key=lambda child: (child.spec.created, child.spec.name) if child.spec else ("", ""))

    def count(self) -> None:
        """Its own answers, from its counters."""
        spec, waiting = self.spec, len(self.pending) - self.leaving
        self.waiting = waiting > 0 or self.waiting_children > 0
        self.gated = self.gates > 0 or self.gated_children > 0
        if spec is None:
            self.ready = self.settled = False
        elif spec.composite:
            self.ready, self.settled = self.ready_children >= self.need, self.settled_children >= spec.need
        else:
            there, need = len(self.placed) + self.done, spec.need
            self.ready = waiting + there >= (self.need if self.forgiving else need)
            self.settled = there - self.assumed - self.going >= need
        if self.settled:
            self.once = True


def _forgives(annotations: Mapping[str, str] | None) -> bool | None:
    """What annotations say of that, if anything."""
    if not annotations:
        return None
    try:
        found: bool | None = read_healing(annotations).get("once_satisfied")
    except HealingError:
        return None
    return found


def startable(root: Group) -> list[Group]:
    """The leaves that may be bound: those that have their minimum, under parents that have theirs."""
    if not root.children and root.spec is not None and not root.spec.composite:
        return [root] if len(root.placed) + root.done >= root.need else []
    found: dict[str, list[Group]] = {}
    for group in reversed(list(root.walk())):  # children before their parents
        spec = group.spec
        if spec is None:
            continue
        if not spec.composite:
            found[group.key] = [group] if len(group.placed) + group.done >= group.need else []
            continue
        below = [leaves for child in group.ordered() if (leaves := found.get(child.key))]
        found[group.key] = [leaf for leaves in below for leaf in leaves] if len(below) >= spec.need else []
    return found.get(root.key, [])


def having(group: Group) -> str:
    """How much of its minimum a group has."""
    spec = group.spec
    assert spec is not None
    if spec.composite:
        return f"{group.settled_children} of at least {spec.need} groups have their minimum"
    certain = len(group.placed) - group.assumed - group.going + group.done
    return f"{certain} of at least {spec.need} pods have nodes or have succeeded"


@dataclass(frozen=True, slots=True)
class BrokenChain:
    """A chain of parents without an end."""

    group: str
    cycle: bool = False
    text: str = ""  # of pods that wait for an object that a rule needs
    remedy: str = ""

    @property
    def why(self) -> str:
        if self.text:
            return self.text
        name = described(self.group)
        return f"{name} is among its own ancestors" if self.cycle else f"{name} does not exist"


class GroupTrees:
    """All groups, by key."""

    def __init__(self, *, forgiving: bool = False) -> None:
        """`forgiving`: what counts for groups that say nothing of it."""
        self._groups: dict[str, Group] = {}
        self._forgiving = forgiving
        self.spared: dict[str, None] = {}  # groups that somebody asks spares for, in order
        self.absent: dict[str, tuple[str, str]] = {}  # key -> what is missing, and what somebody can do about it
        self.group_infos: dict[str, GroupInfo] = {}  # what preemption must know of groups, kept beside them
        self.priorities: Counter[int] = Counter()  # of groups that have one

    def get(self, key: str) -> Group | None:
        return self._groups.get(key)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    # ---- groups

    def set(self, spec: GroupSpec) -> Group:
        """A group that exists."""
        group = self._named(spec.key)
        group.spec = spec
        group.once = group.once or spec.once
        self._hear(group, spec.annotations)
        parent = self._named(spec.parent) if spec.parent else None
        if group.parent is not parent:
            self._detach(group)
            self._attach(group, parent)
        self._forget_info(spec.key)
        self.group_infos[spec.key] = GroupInfo(
            spec.parent, spec.disrupt_all, spec.priority, spec.composite, None if spec.composite else spec.minimum
        )
        if spec.priority is not None:
            self.priorities[spec.priority] += 1
        self._recount(group)
        return group

    def drop(self, key: str) -> None:
        """The object is gone; the name stays as long as somebody uses it."""
        group = self._groups.get(key)
        if group is None or group.spec is None:
            return
        group.spec = None
        self._forget_info(key)
        self._recount(group)
        self._detach(group)
        self._tidy(group)

    def _forget_info(self, key: str) -> None:
        known = self.group_infos.pop(key, None)
        if known is not None and known.priority is not None:
            self.priorities[known.priority] -= 1
            if not self.priorities[known.priority]:
                del self.priorities[known.priority]

    def root(self, group: Group) -> Group | BrokenChain:
        """The group of its tree that has no parent."""
        if group.spec is not None and group.parent is None:
            return group
        seen: set[str] = set()
        current = group
        while True:
            if current.spec is None:
                return BrokenChain(current.key, False, *self.absent.get(current.key, ("", "")))
            if current.key in seen:
                return BrokenChain(current.key, cycle=True)
            seen.add(current.key)
            if current.spec.parent is None or current.parent is None:
                return current
            current = current.parent

    # ---- members

    def join(self, key: str, member: PodInfo) -> Group:
        group = self._named(key)
        group.traits[member.traits] += 1
        self._put(group, member)
        return group

    def _put(self, group: Group, member: PodInfo) -> None:
        """Among its members, where it is now."""
        pod, uid = member.pod, member.uid
        member.going = bool(member.node and pod.metadata.deletion_timestamp is not None)
        if pod.metadata.annotations:
            group.annotated = True
            self._hear(group, pod.metadata.annotations)
        if member.node:
            group.placed[uid] = member
            group.assumed += member.assumed
            group.going += member.going
        else:
            group.pending[uid] = member
            group.gates += member.gated
            group.leaving += member.leaving
        self._recount(group)

    def leave(self, key: str, member: PodInfo, *, finished: bool = False) -> Group | None:
        group = self._groups.get(key)
        if group is None:
            return None
        self._take(group, member)
        traits = member.traits
        group.traits[traits] -= 1
        if not group.traits[traits]:
            del group.traits[traits]
        if finished:
            group.finished.add(member.uid)
        self._recount(group)
        self._tidy(group)
        return group

    def finish(self, key: str, uid: str) -> None:
        """A member that was not known before, and has succeeded."""
        group = self._named(key)
        group.finished.add(uid)
        self._recount(group)

    def forget(self, key: str, uid: str) -> None:
        """A member that had succeeded is gone."""
        group = self._groups.get(key)
        if group is not None and uid in group.finished:
            group.finished.discard(uid)
            self._recount(group)
            self._tidy(group)

    def record(self, key: str, job: str, gone: int) -> bool:
        """So many members of a Job are done and gone. -> whether that is news"""
        known = self._groups.get(key)
        if (known.recorded.get(job, 0) if known is not None else 0) == gone:
            return False
        group = self._named(key)
        if gone:
            group.recorded[job] = gone
        else:
            group.recorded.pop(job, None)
        self._recount(group)
        self._tidy(group)
        return True

    def move(self, key: str, member: PodInfo, node: str, *, assumed: bool) -> Group:
        """The member gets a node, for now (assumed) or for certain, or (empty) loses the one it was meant for."""
        group = self._named(key)
        meta = member.pod.metadata
        if node and node == member.node and not member.going and KEYS.isdisjoint(meta.annotations or ()):
            group.annotated = group.annotated or bool(meta.annotations)
            group.assumed += assumed - member.assumed  # it stays where it is: what was assumed is confirmed
            group.going += meta.deletion_timestamp is not None
            member.assumed, member.going = assumed, meta.deletion_timestamp is not None
            self._recount(group)
            return group
        self._take(group, member)
        member.node, member.assumed = node, assumed
        self._put(group, member)
        return group

    def _take(self, group: Group, member: PodInfo) -> None:
        if group.pending.pop(member.uid, None) is not None:
            group.gates -= member.gated
            group.leaving -= member.leaving
        elif group.placed.pop(member.uid, None) is not None:
            group.assumed -= member.assumed
            group.going -= member.going

    # ---- inside

    def _named(self, key: str) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, forgiving=self._forgiving)
        return group

    def _hear(self, group: Group, annotations: Mapping[str, str]) -> None:
        if KEYS.isdisjoint(annotations):  # a pod's index, and nothing else: most say no more
            return
        forgives = _forgives(annotations)
        if forgives is not None:
            group.forgiving = forgives
        if SPARES in annotations:
            self.spared[group.key] = None

    def _tidy(self, group: Group) -> None:
        if not group.is_named:
            self._groups.pop(group.key, None)
            self.spared.pop(group.key, None)

    def _attach(self, group: Group, parent: Group | None) -> None:
        group.parent = parent
        if parent is not None:
            parent.children[group.key] = group
            self._tell(parent, NOTHING, group.answers)
            self._recount(parent)

    def _detach(self, group: Group) -> None:
        parent, group.parent = group.parent, None
        if parent is not None:
            del parent.children[group.key]
            self._tell(parent, group.answers, NOTHING)
            self._recount(parent)
            self._tidy(parent)

    def _recount(self, group: Group) -> None:
        """Answer again; whoever flips tells its parent. Ends also where parents form a circle: flips only settle."""
        if group.parent is None:
            group.count()
            return
        current: Group | None = group
        while current is not None:
            if current.parent is None:
                current.count()
                return
            before = current.answers
            current.count()
            if current.answers == before:
                return
            self._tell(current.parent, before, current.answers)
            current = current.parent

    def _tell(self, parent: Group, before: Answers, after: Answers) -> None:
        """A child's answers changed."""
        parent.ready_children += after[0] - before[0]
        parent.waiting_children += after[1] - before[1]
        parent.gated_children += after[2] - before[2]
        parent.settled_children += after[3] - before[3]
