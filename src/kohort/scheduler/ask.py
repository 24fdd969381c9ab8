"""Questions about one root, answered from what a scheduler knows: does it run, where; or why does it wait, since when.

The same engine decides as the live scheduler does, on the same state; nothing is changed by asking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from kohort.place.explain import Explanation
from kohort.scheduler.conditions import refusal
from kohort.scheduler.core import Core
from kohort.scheduler.decide import Kind, Verdict
from kohort.scheduler.model import GroupSpec
from kohort.scheduler.trees import Broken, Group, Member
from kohort.scheduler.why import unrooted


class State(StrEnum):
    RUNNING = "Running"  # everything that exists has a node
    PARTLY = "PartlyRunning"  # some pods have nodes, others wait
    WAITING = "Waiting"
    FITS = "Fits"  # it waits, and a decision made now would place it
    EMPTY = "Empty"  # no pods


@dataclass(frozen=True, slots=True)
class Place:
    """Where pods of one group are."""

    group: str
    nodes: dict[str, int]  # node -> pods
    domain: str = ""  # key=value, of a group that is kept to one domain


@dataclass(frozen=True, slots=True)
class Answer:
    """One root. Names of groups are those of the API; `names` tells what the keys of the explanation stand for."""

    kind: str
    namespace: str
    name: str
    state: State
    scheduler: str = ""
    priority: int = 0
    placed: int = 0
    pending: int = 0
    finished: int = 0
    since: str = ""  # creation of the oldest pod that waits
    told: Explanation | None = None
    note: str = ""
    places: list[Place] = field(default_factory=list)
    would_go: list[Place] = field(default_factory=list)  # where a decision made now would put it
    refusal: str = ""  # of the API server, which did not take a binding
    victims: list[str] = field(default_factory=list)  # who has to go, or is going, for it
    names: dict[str, str] = field(default_factory=dict)


def about(core: Core, root: Group | Member | Broken, member: Member | None = None) -> Answer:
    """`member`: the pod that was asked about, needed where its groups do not lead to a root."""
    if isinstance(root, Broken):
        assert member is not None
        return _unrooted(core, root, member)
    told, verdict = core.why.now(root) if _pending(root) else (None, None)
    places = list(_places(core, root))
    placed, pending = sum(sum(one.nodes.values()) for one in places), len(_pending(root))
    return Answer(
        *_identity(root),
        state=_state(placed, pending, told),
        scheduler=_scheduler(root),
        priority=core.world.priority(root) if isinstance(root, Member) else core.decider.priority(root),
        placed=placed,
        pending=pending,
        finished=0 if isinstance(root, Member) else sum(len(leaf.finished) for leaf in root.leaves()),
        since=min((one.pod.metadata.creation_timestamp for one in _pending(root)), default=""),
        told=told,
        note=verdict.note if verdict is not None else "",
        places=places,
        would_go=_would_go(core, verdict),
        refusal=next((f"{one.pod.key}: {said}" for one in _pending(root) if (said := refusal(one.pod))), ""),
        victims=sorted(_victims(core, verdict)),
        names=_names(root),
    )


def _unrooted(core: Core, broken: Broken, member: Member) -> Answer:
    told = unrooted(member.pod.key, broken)
    group = core.world.trees.get(member.pod.group or "")
    waiting = list(group.pending.values()) if group is not None else [member]
    meta, several = member.pod.metadata, len(waiting) > 1
    return Answer(
        "Pods of PodGroup" if several else "Pod",
        meta.namespace,
        str(member.pod.group).split("/")[1] if several else meta.name,
        State.WAITING,
        scheduler=member.pod.spec.scheduler_name,
        pending=len(waiting),
        since=min(one.pod.metadata.creation_timestamp for one in waiting),
        told=told,
        names={member.pod.key: f"Pod {meta.name}"},
    )


def _identity(root: Group | Member) -> tuple[str, str, str]:
    if isinstance(root, Member):
        return "Pod", root.pod.metadata.namespace, root.pod.metadata.name
    assert root.spec is not None
    return root.spec.kind, root.spec.namespace, root.spec.name


def _pending(root: Group | Member) -> list[Member]:
    if isinstance(root, Member):
        return [] if root.node else [root]
    return [one for leaf in root.leaves() for one in leaf.pending.values()]


def _scheduler(root: Group | Member) -> str:
    if isinstance(root, Member):
        return root.pod.spec.scheduler_name
    return next((traits[0] for leaf in root.leaves() for traits in sorted(leaf.traits)), "")


def _state(placed: int, pending: int, told: Explanation | None) -> State:
    if not pending:
        return State.RUNNING if placed else State.EMPTY
    if placed:
        return State.PARTLY
    return State.FITS if told is None else State.WAITING


def _places(core: Core, root: Group | Member) -> Iterator[Place]:
    if isinstance(root, Member):
        if root.node:
            yield Place("", {root.node: 1})
        return
    for leaf in root.leaves():
        if leaf.placed:
            nodes = Counter(one.node for one in leaf.placed.values())
            yield Place(_called(leaf.spec), dict(sorted(nodes.items())), _domain(core, leaf, next(iter(nodes))))


def _domain(core: Core, leaf: Group, node: str) -> str:
    """The domain of the nearest group upwards that is kept to one."""
    current: Group | None = leaf
    while current is not None:
        key = current.spec.topology if current.spec is not None else None
        row = core.world.state.row(node)
        if key is not None and row is not None:
            return f"{key}={core.world.state.node(row).labels.get(key, '?')}"
        current = current.parent
    return ""


def _would_go(core: Core, verdict: Verdict | None) -> list[Place]:
    if verdict is None or verdict.kind is not Kind.SCHEDULED:
        return []
    by_group: dict[str, Counter[str]] = {}
    for uid, node in verdict.seats.items():
        by_group.setdefault(verdict.members[uid].pod.group or "", Counter())[node] += 1
    groups = {key: core.world.trees.get(key) for key in by_group}
    return [Place(_called(group.spec if (group := groups[key]) else None), dict(by_group[key])) for key in by_group]


def _victims(core: Core, verdict: Verdict | None) -> Iterator[str]:
    if verdict is None or verdict.kind is not Kind.PREEMPTING:
        return
    if verdict.preemption is not None:
        for unit in verdict.preemption.victims:
            yield from (f"{victim.pod.namespace}/{victim.pod.name}" for victim in unit.pods)
        return
    state = core.world.state
    for node in set(verdict.nominations.values()):
        row = state.row(node)
        for pod in state.node(row).pods.values() if row is not None else ():
            if pod.terminating:
                yield f"{pod.namespace}/{pod.name}"


def _names(root: Group | Member) -> dict[str, str]:
    if isinstance(root, Member):
        return {f"pod/{root.uid}": f"Pod {root.pod.metadata.name}"}
    return {group.key: _called(group.spec) for group in root.walk()}


def _called(spec: GroupSpec | None) -> str:
    if spec is None:
        return ""
    if spec.kind == "Workload":  # 1.35: the group has no object of its own
        return " ".join(("group", *filter(None, spec.key.split("/")[2:]), "of Workload", spec.name))
    return f"{spec.kind} {spec.name}"
