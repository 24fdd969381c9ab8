"""What a drain of nodes would do to the gangs on them, before it is done: `kohort plan --drain NODE`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kohort.api.scheduling.healing import BELOW_MINIMUM, REPLACEMENT
from kohort.place.columns import label_value
from kohort.place.diagnosis import count
from kohort.place.victims import Budget
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.grouphealing import decided_by, disrupted_with, is_daemon
from kohort.scheduler.grouptopology import group_topology
from kohort.scheduler.model import Node, shown
from kohort.scheduler.rehearsal import Rehearsal
from kohort.scheduler.spares import spare_of
from kohort.scheduler.trees import BrokenChain, Group, PodInfo


@dataclass(frozen=True, slots=True)
class Drained:
    """One gang, or a pod without one. `goes`: pods that are evicted; `stays`: of the gang, those that are not."""

    kind: str
    namespace: str
    name: str
    mode: str  # all, single; empty for a pod alone
    goes: list[str]
    stays: int
    lands: dict[str, str] = field(default_factory=dict)  # pod -> node, of those that find one
    waits: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # pods that nobody makes anew
    domain: str = ""  # what becomes of the domain that is required
    done: str = ""  # to the gang as a whole, by its policy
    policies: str = ""
    budgets: list[str] = field(default_factory=list)  # that do not allow it now
    why: str = ""  # of those that wait

    @property
    def heals(self) -> bool:
        return not self.waits and not self.lost and not self.budgets


def plan_drain(core: SchedulerCore, nodes: Sequence[Node]) -> list[Drained]:
    """Played on the core, which is not the same afterwards. Pods of daemons stay, as for kubectl drain."""
    names = {one.metadata.name for one in nodes}
    budgets = core.cache.budgets.cover(core.cache.state)
    rehearsal = Rehearsal(core)
    before = {uid: one.node for uid, one in core.cache.members.items() if one.node}
    roots = list(_roots(core, names))
    going = [_going(root, names) for root in roots]
    rehearsal.cordon(nodes)
    for one in (member for members in going for member in members):
        rehearsal.evict(one)
    rehearsal.play()
    return [_told(core, root, members, rehearsal, before, budgets) for root, members in zip(roots, going, strict=True)]


def _roots(core: SchedulerCore, nodes: set[str]) -> Iterator[Group | PodInfo]:
    seen: set[str] = set()
    for member in list(core.cache.members.values()):
        if member.node not in nodes or is_daemon(member):
            continue
        root = core.cache.root(member)
        found: Group | PodInfo = member if root is None or isinstance(root, BrokenChain) else root
        key = found.uid if isinstance(found, PodInfo) else found.key
        if key not in seen:
            seen.add(key)
            yield found


def _going(root: Group | PodInfo, nodes: set[str]) -> list[PodInfo]:
    """Those on the nodes; with them, all of a group that is disrupted as a whole."""
    if isinstance(root, PodInfo):
        return [root]
    whole: set[str] = set()
    for leaf in root.leaves():
        if any(one.node in nodes for one in leaf.placed.values()) and (unit := disrupted_with(leaf)) is not None:
            whole |= {below.key for below in unit.leaves()}
    return [one for leaf in root.leaves() for one in leaf.placed.values() if one.node in nodes or leaf.key in whole]


def _told(
    core: SchedulerCore,
    root: Group | PodInfo,
    going: list[PodInfo],
    rehearsal: Rehearsal,
    before: dict[str, str],
    budgets: Sequence[Budget],
) -> Drained:
    goes = [one.pod.metadata.name for one in going]
    uids = {one.uid for one in going}
    lands = {one.pod.metadata.name: node for one in going if (node := rehearsal.where(one.uid))}
    lost = [one.pod.metadata.name for one in going if one.uid not in rehearsal.came_back]
    waits = [name for name in goes if name not in lands and name not in lost]
    over = [one.name for one in budgets if len(uids & one.pods) > one.allowed]
    if isinstance(root, PodInfo):
        meta = root.pod.metadata
        kind = "Spare" if spare_of(root) else "Pod"
        return Drained(kind, meta.namespace, meta.name, "", goes, 0, lands, waits, lost, budgets=over)
    spec = root.spec
    assert spec is not None
    leaf = next(root.leaves())
    usual = core.settings.profile.healing
    policies = f"{REPLACEMENT} {decided_by(leaf, 'replacement', usual)[1]}, "
    policies += f"{BELOW_MINIMUM} {decided_by(leaf, 'below_minimum', usual)[1]}"
    decision = core.decisions.get(root.key)
    said = decision.explanation if decision is not None and waits else None
    everybody = [uid for uid in before if uid in uids or _of(core, uid, root)]
    return Drained(
        spec.kind,
        spec.namespace,
        spec.name,
        "all" if any(disrupted_with(one) is not None for one in root.leaves()) else "single",
        goes,
        len(everybody) - len(goes),
        lands,
        waits,
        lost,
        _domains(core, root, [before[one.uid] for one in going], list(lands.values())),
        rehearsal.actions.get(shown(root.key), ""),
        policies,
        over,
        said.detail if said is not None else "",
    )


def _of(core: SchedulerCore, uid: str, root: Group) -> bool:
    member = core.cache.members.get(uid)
    return member is not None and core.cache.root(member) is root


def _domains(core: SchedulerCore, root: Group, before: list[str], after: list[str]) -> str:
    """Of the first level that the gang asks for: the same ones, or others."""
    for group in root.walk():
        asked = group_topology(core.cache.engine, group)
        key = asked.required or next(iter(asked.preferred), None)
        if key is not None and after:
            old, new = ({_value(core, node, key) for node in nodes} for nodes in (before, after))
            if new <= old:
                return f"{key} {', '.join(sorted(new))}, as before"
            return f"{key} {', '.join(sorted(new))}, before {', '.join(sorted(old))}"
    return ""


def _value(core: SchedulerCore, node: str, key: str) -> str:
    row = core.cache.state.row(node)
    return (label_value(core.cache.state.node(row).labels, key) if row is not None else None) or "?"


def verdict(one: Drained) -> str:
    """In a few words."""
    if one.budgets:
        return f"kept by PodDisruptionBudget {', '.join(one.budgets)}"
    if one.lost:
        return f"{count(len(one.lost), 'pod')} would not come back: no controller makes such pods anew"
    if one.waits:
        return f"{count(len(one.waits), 'pod')} would wait"
    return "runs again"
