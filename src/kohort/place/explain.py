"""Why a tree waits, told so that it can be acted on: causes with numbers, the nearest miss, the smallest change.

Built after a search has failed and its trials are undone; costs about what the search cost. Reasons come from the
closed vocabulary of `demand.Reason`; text is for people, fields are for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kohort.place.demand import Branch, Demand, Leaf, Outcome, Reason, Result, renewed
from kohort.place.diagnosis import count, diagnose
from kohort.place.domains import Bounds, TopologyConflict, domains, pinned
from kohort.place.engine import Engine
from kohort.place.leaf import assume_leaf
from kohort.place.nodecauses import CauseKind, NodeCause, node_causes
from kohort.place.nodesets import NodeSet
from kohort.place.openings import openings
from kohort.place.remedies import NearestMiss, Remedy, RemedyKind, leaf_remedies, nearest_miss, unlabelled

_SIMPLE = {
    Reason.WAITING_FOR_GROUP,
    Reason.WAITING_FOR_MEMBERS,
    Reason.GATED,
    Reason.MISCONFIGURED,
    Reason.PREEMPTING,
}


@dataclass(slots=True)
class Explanation:
    """One group of the tree: `level` 0 is the root."""

    group: str
    level: int
    ok: bool
    reason: Reason | None = None
    detail: str = ""
    proven: bool = True
    need: int = 0  # pods (leaf) or groups (branch) that must be placed
    can: int = 0  # how many of them could be now
    causes: list[NodeCause] = field(default_factory=list)
    nearest: NearestMiss | None = None
    remedies: list[Remedy] = field(default_factory=list)
    children: list[Explanation] = field(default_factory=list)

    def every(self) -> Iterator[Explanation]:
        yield self
        for child in self.children:
            yield from child.every()

    def advice(self) -> str:
        """What came closest and what would help, in one line; of a branch also where below it fails first."""
        parts = [self.exclusions()] if any(cause.excludes for cause in self.causes) else []
        if self.nearest is not None:
            parts.append(f"closest: {self.nearest}")
        fits, steps = self._split()
        if fits:
            parts.append("would fit " + ", or ".join(fits))
        if steps:
            parts.append("next step: " + ", or ".join(steps))
        culprit = self.culprit()
        if culprit is not self:
            said = culprit.advice()
            parts.append(f"in {culprit.group} (level {culprit.level}): {said or culprit.detail}")
        return "; ".join(parts)

    def _split(self) -> tuple[list[str], list[str]]:
        """Remedies after which it would fit, and steps that come before anybody knows."""
        fits = [str(remedy) for remedy in self.remedies if not remedy.is_step]
        return fits, [str(remedy) for remedy in self.remedies if remedy.is_step]

    def exclusions(self) -> str:
        """Nodes counted by what keeps its pods off them."""
        return ", ".join(str(cause) for cause in self.causes if cause.what not in {CauseKind.ROOM, CauseKind.RULE})

    def culprit(self) -> Explanation:
        """The group furthest below that fails for the same reason, the first of them; itself if there is none."""
        for child in self.children:
            if not child.ok and child.reason is self.reason:
                return child.culprit()
        return self

    def lines(self) -> Iterator[str]:
        """For people, children indented."""
        yield from (f"{'  ' * self.level}{line}" for line in self._own())
        for child in self.children:
            yield from child.lines()

    def _own(self) -> Iterator[str]:
        if self.ok or self.reason is None:
            yield f"{self.group}: placed"
            return
        unproven = "" if self.proven else " (not found; it is not proven impossible)"
        yield f"{self.group}: {self.reason}{unproven}: {self.detail}"
        if self.causes:
            yield "  nodes: " + "; ".join(str(cause) for cause in self.causes)
        if self.nearest is not None:
            yield f"  closest: {self.nearest}"
        fits, steps = self._split()
        if fits:
            yield "  would fit: " + "; or ".join(fits)
        if steps:
            yield "  next step: " + "; or ".join(steps)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(engine: Engine, root: Demand, result: Result | None = None, node_set: NodeSet | None = None) -> Explanation:
    """Why the tree was not placed as the result says (None: as if it just failed)."""
    root, node_set = renewed(root, engine.state.interpod), node_set or engine.all_nodes
    outcomes = result.outcomes if result is not None else diagnose(engine, root, node_set)
    return _Explainer(engine, outcomes).group(root, node_set, 0)


def more_members(missing: int, of: str = "member", by: str = "") -> Remedy:
    """Members (or groups) that must exist before a group is tried; `by`: who creates them."""
    has, whom = "has" if missing == 1 else "have", f"; {by} creates {'it' if missing == 1 else 'them'}" if by else ""
    return Remedy(RemedyKind.MEMBERS, f"{count(missing, f'more {of}')} {has} to exist{whom}", missing)


def _without(topology: str) -> Remedy:
    return Remedy(RemedyKind.TOPOLOGY, f"without the constraint to one {topology}", 0)


def waits(group: str, reason: Reason, detail: str) -> Explanation:
    """A root that did not come as far as a search: gated, incomplete, misconfigured, preempting."""
    return Explanation(group, 0, False, reason, detail, proven=reason is not Reason.NOT_FOUND)


class _Explainer:
    def __init__(self, engine: Engine, outcomes: dict[str, Outcome]) -> None:
        self._engine, self._outcomes = engine, outcomes

    def group(self, group: Demand, node_set: NodeSet, level: int) -> Explanation:
        outcome = self._outcomes[group.name]
        explanation = Explanation(group.name, level, outcome.ok, outcome.reason, outcome.detail, outcome.proven)
        if isinstance(group, Branch):
            explanation.need = group.need
            explanation.children = [self.group(child, node_set, level + 1) for child in group.children]
            if not explanation.ok and explanation.reason not in _SIMPLE:
                self._branch(group, node_set, explanation)
        elif (
            not explanation.ok and explanation.reason not in _SIMPLE and group.eq_classes
        ):  # a leaf that runs already wants nothing
            explanation.need = group.missing or 1
            self._leaf(group, node_set, explanation)
        elif explanation.reason is Reason.WAITING_FOR_MEMBERS:
            exist = len(group.pods) + group.members
            explanation.need, explanation.can = group.need, exist
            explanation.remedies = [more_members(group.need - exist)]
        return explanation

    # ---- leaves

    def _leaf(self, leaf: Leaf, node_set: NodeSet, explanation: Explanation) -> None:
        where = self._closest(leaf, node_set)
        if where is None:
            explanation.remedies = self._unlabelled(leaf, node_set)
            return
        wanted = explanation.need
        if explanation.reason is Reason.BLOCKED_BY_SIBLING:
            explanation.can = wanted
            return
        everywhere = explanation.reason is not Reason.FRAGMENTED and not leaf.running
        explanation.causes = node_causes(self._engine, leaf, where)
        if everywhere and where is not node_set:  # what keeps it off the other domains may be easier to change
            wider = [one for one in node_causes(self._engine, leaf, node_set) if one.excludes]
            explanation.causes = [one for one in explanation.causes if not one.excludes] + wider
        mark = self._engine.mark()
        placed = assume_leaf(self._engine, leaf, where, wanted, 0) or {}
        explanation.can = len(placed)
        if explanation.can < wanted:
            explanation.nearest = nearest_miss(self._engine, leaf, where, explanation.can)
            explanation.remedies = leaf_remedies(self._engine, leaf, where, placed)
        self._engine.undo(mark)
        if explanation.can < wanted:
            opened = openings(self._engine, leaf, node_set if everywhere else where, wanted)
            explanation.remedies = [*opened, *explanation.remedies]
        if (
            leaf.topology is not None
            and explanation.can < wanted
            and not leaf.running
            and self._fits_unkeyed(leaf, node_set)
        ):
            explanation.remedies.append(_without(leaf.topology))

    def _unlabelled(self, group: Demand, node_set: NodeSet) -> list[Remedy]:
        """Its domains are those of a label that no node has: label nodes, or do without if that would do."""
        if group.topology is None or len(node_set.split(group.topology)):
            return []
        alone = isinstance(group, Leaf) and not group.running and self._fits_unkeyed(group, node_set)
        return [unlabelled(group.topology), *([_without(group.topology)] if alone else [])]

    def _closest(self, leaf: Leaf, node_set: NodeSet) -> NodeSet | None:
        """The domain that takes most of it."""
        if leaf.topology is None:
            return node_set
        parts = node_set.split(leaf.topology)
        try:
            code = pinned(self._engine, leaf)
        except TopologyConflict:
            return None
        if code is not None:
            return parts.find(code)
        return parts.node_set(int(Bounds(self._engine, leaf, parts).placed.argmax())) if len(parts) else None

    def _fits_unkeyed(self, leaf: Leaf, node_set: NodeSet) -> bool:
        mark = self._engine.mark()
        fits = assume_leaf(self._engine, leaf, node_set, leaf.missing, leaf.missing) is not None
        self._engine.undo(mark)
        return fits

    # ---- branches

    def _branch(self, branch: Branch, node_set: NodeSet, explanation: Explanation) -> None:
        """How many children fit side by side, as created, and where that is."""
        best: tuple[int, NodeSet | None] = (0, None)
        for domain in self._some_domains(branch, node_set):
            assumed = self._side_by_side(branch.children, domain)
            if assumed > best[0]:
                best = (assumed, domain)
        explanation.can = best[0]
        if best[1] is not None and branch.topology is not None:
            text = f"{branch.topology}={best[1].value} takes {best[0]} of {branch.need} groups"
            explanation.nearest = NearestMiss(text, best[1].value, best[0], branch.need)
        explanation.remedies += self._unlabelled(branch, node_set)
        if 0 < explanation.can < branch.need:
            explanation.remedies.append(
                Remedy(RemedyKind.MINIMUM, f"with minGroupCount {explanation.can}, now", explanation.can)
            )

    def _some_domains(self, branch: Branch, node_set: NodeSet) -> Sequence[NodeSet]:
        """The best domains by bounds; if none is possible, the one that takes most pods."""
        try:
            found = [domain for domain, _ in zip(domains(self._engine, branch, node_set), range(4), strict=False)]
        except TopologyConflict:
            return []
        if found or branch.topology is None or branch.running:
            return found
        parts = node_set.split(branch.topology)
        return [parts.node_set(int(Bounds(self._engine, branch, parts).placed.argmax()))] if len(parts) else []

    def _side_by_side(self, children: Sequence[Demand], node_set: NodeSet) -> int:
        mark = self._engine.mark()
        done = sum(self._places(child, node_set) for child in children)
        self._engine.undo(mark)
        return done

    def _places(self, group: Demand, node_set: NodeSet) -> bool:
        """Greedily, without another try: a lower bound that needs no search."""
        mark = self._engine.mark()
        for domain in self._tries(group, node_set):
            if isinstance(group, Leaf):
                ok = assume_leaf(self._engine, group, domain, group.missing, group.missing) is not None
            else:
                ok = sum(self._places(child, domain) for child in group.children) >= group.need
            if ok:
                return True
            self._engine.undo(mark)
        return False

    def _tries(self, group: Demand, node_set: NodeSet) -> Iterator[NodeSet]:
        if isinstance(group, Leaf) and not group.pods and group.missing:
            return
        for domain, _ in zip(domains(self._engine, group, node_set), range(2), strict=False):
            yield domain
