"""Questions about one root, answered from what a scheduler knows: does it run, where; or why does it wait, since when.

The same engine decides as the live scheduler does, on the same state; nothing is changed by asking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kohort.api.scheduling.constants import POD_GROUP_SATISFIED, REASON_SCHEDULER_ERROR
from kohort.api.scheduling.healing import BELOW_MINIMUM, FAIL, REPLACEMENT, RESTART
from kohort.place.columns import label_value
from kohort.place.demand import Reason
from kohort.place.explain import Explanation
from kohort.place.networkstanding import Standing
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.decision import Decision, DecisionKind
from kohort.scheduler.diagnosis import gate, unrooted
from kohort.scheduler.grouphealing import decided_by, lacking
from kohort.scheduler.grouptopology import group_standing, group_topology
from kohort.scheduler.model import GroupSpec, shown
from kohort.scheduler.status import scheduler_error
from kohort.scheduler.trees import BrokenChain, Group, PodInfo, having

_ENDS = {RESTART: "restarted", FAIL: "failed"}


class RootState(StrEnum):
    RUNNING = "Running"  # everything that exists has a node
    PARTLY = "PartlyRunning"  # some pods have nodes, others wait
    WAITING = "Waiting"
    FITS = "Fits"  # it waits, and a decision made now would place it
    EMPTY = "Empty"  # no pods


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """Where pods of one group are."""

    group: str
    nodes: dict[str, int]  # node -> pods
    domain: str = ""  # key=value, of a group that is kept to one domain
    standing: Standing = field(default_factory=Standing)  # in the network, level by level, and its ranks


@dataclass(frozen=True, slots=True)
class RootStatus:
    """One root. Names of groups are those of the API; `names` tells what the keys of the explanation stand for."""

    kind: str
    namespace: str
    name: str
    state: RootState
    scheduler: str = ""
    priority: int = 0
    placed: int = 0
    pending: int = 0
    finished: int = 0
    missing: int = 0  # members that do not exist, and the minimum needs
    since: str = ""  # creation of the oldest pod that waits
    explanation: Explanation | None = None
    note: str = ""
    places: list[GroupPlacement] = field(default_factory=list)
    would_go: list[GroupPlacement] = field(default_factory=list)  # where a decision made now would put it
    scheduler_error: str = ""  # what the scheduler reported of a pod: a binding that was refused, say
    victims: list[str] = field(default_factory=list)  # who has to go, or is going, for it
    names: dict[str, str] = field(default_factory=dict)
    grouped: str = ""  # by which rule, of pods that name no group
    queue: str = ""
    spares: list[str] = field(default_factory=list)  # pods that stand by, and where
    healing: list[str] = field(default_factory=list)  # groups that are below their minimum, and what is done about it


def root_status(core: SchedulerCore, root: Group | PodInfo | BrokenChain, member: PodInfo | None = None) -> RootStatus:
    """`member`: the pod that was asked about, needed where its groups do not lead to a root."""
    if isinstance(root, BrokenChain):
        assert member is not None
        return _unrooted(core, root, member)
    explanation, decision = core.why.now(root) if _pending(root) else (_lost(core, root), None)
    places = list(_places(core, root))
    placed, pending = sum(sum(one.nodes.values()) for one in places), len(_pending(root))
    return RootStatus(
        *_identity(root),
        state=_state(placed, pending, explanation),
        scheduler=_scheduler(root),
        priority=core.cache.priority(root) if isinstance(root, PodInfo) else core.decider.priority(root),
        placed=placed,
        pending=pending,
        finished=0 if isinstance(root, PodInfo) else sum(leaf.done for leaf in root.leaves()),
        since=min((one.pod.metadata.creation_timestamp for one in _pending(root)), default=""),
        missing=_missing(root),
        explanation=explanation,
        note=decision.note if decision is not None else "",
        places=places,
        would_go=_would_go(core, decision),
        scheduler_error=next(
            (f"{one.pod.key}: {said}" for one in _pending(root) if (said := scheduler_error(one.pod))), ""
        ),
        victims=sorted(_victims(core, decision)),
        names=_names(root),
        grouped=root.spec.by if isinstance(root, Group) and root.spec is not None else "",
        queue=root.spec.queue if isinstance(root, Group) and root.spec is not None else "",
        spares=[] if isinstance(root, PodInfo) else list(_spares(core, root)),
        healing=[] if isinstance(root, PodInfo) else list(_healing(core, root)),
    )


def _spares(core: SchedulerCore, root: Group) -> Iterator[str]:
    for leaf in root.leaves():
        for one in core.cache.spares.of(leaf.key):
            name = one.pod.metadata.name
            yield f"{name} on {one.node}" if core.cache.spares.is_ready(one) else f"{name} is not ready"


def _healing(core: SchedulerCore, root: Group) -> Iterator[str]:
    usual = core.settings.profile.healing
    for leaf in root.leaves():
        if not lacking(leaf) or leaf.spec is None:
            continue
        unit, ending = decided_by(leaf, "below_minimum", usual)
        _, replacement = decided_by(leaf, "replacement", usual)
        grace = decided_by(leaf, "grace", usual)[1]
        said = next((one for one in leaf.spec.conditions if one.type == POD_GROUP_SATISFIED), None)
        since = f" since {said.last_transition_time}" if said is not None and said.status == "False" else ""
        what = f"{shown(unit.key)} is {_ENDS[ending]} as a whole after {grace:g} s" if ending in _ENDS else "it waits"
        policies = f"{REPLACEMENT} {replacement}, {BELOW_MINIMUM} {ending}"
        yield f"{shown(leaf.key)}: {having(leaf)}{since}; {what} ({policies})"


def _lost(core: SchedulerCore, root: Group | PodInfo) -> Explanation | None:
    """All its pods have nodes, but they are fewer than its minimum: others are gone and did not come back."""
    if isinstance(root, PodInfo) or root.ready or not any(leaf.placed for leaf in root.leaves()):
        return None
    return gate(root, core.cache)


def _missing(root: Group | PodInfo) -> int:
    leaves = [] if isinstance(root, PodInfo) else list(root.leaves())
    return sum(max((leaf.spec.minimum or 0) - leaf.members, 0) for leaf in leaves if leaf.spec is not None)


def _unrooted(core: SchedulerCore, broken: BrokenChain, member: PodInfo) -> RootStatus:
    explanation = unrooted(member.pod.key, broken)
    group = core.cache.trees.get(member.group or "")
    waiting = list(group.pending.values()) if group is not None else [member]
    meta, several = member.pod.metadata, len(waiting) > 1
    return RootStatus(
        "Pods of PodGroup" if several else "Pod",
        meta.namespace,
        shown(str(member.group)).split("/")[1] if several else meta.name,
        RootState.WAITING,
        scheduler=member.pod.spec.scheduler_name,
        pending=len(waiting),
        since=min(one.pod.metadata.creation_timestamp for one in waiting),
        explanation=explanation,
        names={member.pod.key: f"Pod {meta.name}"},
    )


def _identity(root: Group | PodInfo) -> tuple[str, str, str]:
    if isinstance(root, PodInfo):
        return "Pod", root.pod.metadata.namespace, root.pod.metadata.name
    assert root.spec is not None
    return root.spec.kind, root.spec.namespace, root.spec.name


def _pending(root: Group | PodInfo) -> list[PodInfo]:
    if isinstance(root, PodInfo):
        return [] if root.node else [root]
    return [one for leaf in root.leaves() for one in leaf.pending.values()]


def _scheduler(root: Group | PodInfo) -> str:
    if isinstance(root, PodInfo):
        return root.pod.spec.scheduler_name
    return next((traits[0] for leaf in root.leaves() for traits in sorted(leaf.traits)), "")


def _state(placed: int, pending: int, explanation: Explanation | None) -> RootState:
    if not pending and explanation is None:
        return RootState.RUNNING if placed else RootState.EMPTY
    if placed:
        return RootState.PARTLY
    return RootState.FITS if explanation is None else RootState.WAITING


def _places(core: SchedulerCore, root: Group | PodInfo) -> Iterator[GroupPlacement]:
    if isinstance(root, PodInfo):
        if root.node:
            yield GroupPlacement("", {root.node: 1})
        return
    for leaf in root.leaves():
        if leaf.placed:
            nodes = Counter(one.node for one in leaf.placed.values())
            yield GroupPlacement(
                _called(leaf.spec),
                dict(sorted(nodes.items())),
                _domain(core, leaf, next(iter(nodes))),
                group_standing(core.cache, leaf),
            )


def _domain(core: SchedulerCore, leaf: Group, node: str) -> str:
    """The domain of the nearest group upwards that is kept to one."""
    current: Group | None = leaf
    while current is not None:
        key = group_topology(core.cache.engine, current).required if current.spec is not None else None
        row = core.cache.state.row(node)
        if key is not None and row is not None:
            return f"{key}={label_value(core.cache.state.node(row).labels, key) or '?'}"
        current = current.parent
    return ""


def _would_go(core: SchedulerCore, decision: Decision | None) -> list[GroupPlacement]:
    if decision is None or decision.kind is not DecisionKind.SCHEDULED:
        return []
    by_group: dict[str, Counter[str]] = {}
    for uid, node in decision.assignments.items():
        by_group.setdefault(decision.members[uid].group or "", Counter())[node] += 1
    groups = {key: core.cache.trees.get(key) for key in by_group}
    return [
        GroupPlacement(_called(group.spec if (group := groups[key]) else None), dict(by_group[key])) for key in by_group
    ]


def _victims(core: SchedulerCore, decision: Decision | None) -> Iterator[str]:
    if decision is None or decision.kind is not DecisionKind.PREEMPTING:
        return
    if decision.preemption is not None:
        for victim_set in decision.preemption.victims:
            yield from (f"{victim.pod.namespace}/{victim.pod.name}" for victim in victim_set.pods)
        return
    state = core.cache.state
    for node in set(decision.nominations.values()):
        row = state.row(node)
        for pod in state.node(row).pods.values() if row is not None else ():
            if pod.terminating:
                yield f"{pod.namespace}/{pod.name}"


def _names(root: Group | PodInfo) -> dict[str, str]:
    if isinstance(root, PodInfo):
        return {f"pod/{root.uid}": f"Pod {root.pod.metadata.name}"}
    return {group.key: _called(group.spec) for group in root.walk()}


def _called(spec: GroupSpec | None) -> str:
    if spec is None:
        return ""
    if spec.kind == "Workload":  # 1.35: the group has no object of its own
        return " ".join(("group", *filter(None, spec.key.split("/")[2:]), "of Workload", spec.name))
    return f"{spec.kind} {spec.name}"


FITS_NOW = "nothing is in its way: it would fit now"


def reason_and_message(status: RootStatus) -> tuple[str, str]:
    """As short as it can be said."""
    if status.explanation is not None:
        return str(status.explanation.reason), _in_short(status.explanation, status)
    if status.scheduler_error:
        return REASON_SCHEDULER_ERROR, status.scheduler_error.partition("\n")[0]
    return str(status.state), FITS_NOW


def _in_short(explanation: Explanation, status: RootStatus) -> str:
    """The reason in a line; where no node suits, what keeps its pods off them."""
    detail = named(explanation.detail, status.names).partition("\n")[0]
    away = explanation.culprit().exclusions() if explanation.reason is Reason.NO_MATCHING_NODE else ""
    return f"{detail.removesuffix(f'; {status.note}')}: {away}" if away else detail


def remedies(explanation: Explanation, names: Mapping[str, str], *, steps: bool) -> list[str]:
    """What would make it fit; `steps`: what comes before anybody knows."""
    return [named(str(one), names) for one in explanation.remedies if one.is_step is steps]


def named(text: str, names: Mapping[str, str]) -> str:
    """Keys of groups inside a text, as the API calls them; the longest first, for one may be a part of another."""
    for key in sorted(names, key=len, reverse=True):
        text = text.replace(key, names[key])
    return text
