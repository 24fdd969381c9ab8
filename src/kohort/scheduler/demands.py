"""What a root asks of the engine: its tree of groups, pods that need a place, rows of those that run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kohort.api.scheduling.healing import WIDEN
from kohort.place.demand import Branch, Demand, Leaf, PendingPod
from kohort.place.levels import ordered
from kohort.place.slices import sliced
from kohort.scheduler.cache import SchedulerCache
from kohort.scheduler.grouphealing import decided_by, staying
from kohort.scheduler.grouptopology import group_topology, widened
from kohort.scheduler.spares import spare_of
from kohort.scheduler.trees import Group, PodInfo

DEEPEST = 16  # groups above each other that are looked at
FIRST = "first"  # what is there of a root, beside parts that come later


@dataclass(frozen=True, slots=True)
class Asked:
    """`nominated`: pod -> node. `wider`: groups whose policy is to widen prefer their domain and no longer require it.
    `moved`: members that count as pending although they have a node, by their uids."""

    nominated: Mapping[str, str]
    wider: bool = False
    moved: frozenset[str] = frozenset()


class Demands:
    """Made from one cache."""

    def __init__(self, cache: SchedulerCache) -> None:
        self._cache = cache
        self._engine = cache.engine

    def of(self, root: Group | PodInfo, asked: Asked) -> Demand:
        if isinstance(root, PodInfo):
            pods = [self._cache.pending_pod(root, asked.nominated.get(root.uid, ""))]
            group = self._cache.trees.get(spare_of(root)) if spare_of(root) else None
            return Leaf(self._cache.root_key(root), pods) if group is None else self._spare(root, pods, group)
        own, later = self._tree(root, asked), self._cache.later.missing(root)
        return self._with_later(root, own, later, asked) if later else own

    def _with_later(self, root: Group, own: Demand, later: list[Group], asked: Asked) -> Demand:
        """With the parts that are made once it runs: all of them, or none. As one group, where none of them asks for a
        domain of its own: that is quicker to search, and its reason is simpler."""
        parts, keys = list(self.of_later(later, asked)), root.spec.later if root.spec is not None else ()
        within = next((one.within for one in keys if one.within), None)
        if isinstance(own, Leaf) and all(_anywhere(one) for one in (own, *parts)):
            pods = [*own.pods, *(pod for part in parts for pod in part.pods)]
            return replace(own, pods=pods, minimum=len(pods) + own.members, topology=within)
        children = [replace(own, name=f"{root.key}:{FIRST}"), *parts]
        return Branch(root.key, children, len(children), within)

    def of_later(self, later: list[Group], asked: Asked) -> Iterator[Leaf]:
        """Pods that are not there. All of a part are alike, and nobody keeps what is known of them."""
        for part in later:
            first = next(iter(part.pending.values()))
            eq_class = self._cache.state.equivalence_class(self._cache.as_json(first))
            labels, network = first.pod.metadata.labels or {}, group_topology(self._engine, part)
            row = self._cache.state.row
            pods = [PendingPod(uid, eq_class, labels, row(asked.nominated.get(uid, ""))) for uid in part.pending]
            yield Leaf(part.key, pods, len(pods), network.required, preferred=network.preferred)

    def _spare(self, spare: PodInfo, pods: list[PendingPod], group: Group) -> Leaf:
        """Where the members of its group are, by what that and those above it ask for."""
        required: list[str] = []
        preferred: list[str] = []
        above: Group | None = group
        for _ in range(DEEPEST):
            if above is None:
                break
            network = group_topology(self._engine, above)
            required += (network.required or "").split(",") if network.required else ()
            preferred += network.preferred
            above = above.parent
        rows = [row for one in staying(group) if (row := self._cache.state.row(one.node)) is not None]
        keys = list(dict.fromkeys(required))
        return Leaf(
            self._cache.root_key(spare),
            pods,
            len(rows) + 1,
            ",".join(ordered(self._engine.state, self._engine.profile.topology_levels, keys)) or None if rows else None,
            rows,
            preferred=tuple(dict.fromkeys(preferred)),
        )

    def _tree(self, group: Group, asked: Asked) -> Demand:
        spec = group.spec
        assert spec is not None, group.key
        if self._engine.pause is not None:
            self._engine.pause()
        network = group_topology(self._engine, group)
        if asked.wider and decided_by(group, "replacement", self._engine.profile.healing)[1] == WIDEN:
            network = widened(network)
        if spec.composite:
            children = [self._tree(child, asked) for child in group.ordered()]
            return Branch(group.key, children, spec.minimum, network.required, network.preferred)
        state = self._cache.state
        pods = list(self._pods(group, asked))
        staying = [one for uid, one in group.placed.items() if uid not in asked.moved]
        known = ((state.row(one.node), one.pod.rank) for one in staying)
        running = [(row, rank) for row, rank in known if row is not None]
        # Members that have succeeded, or sit on a node that is gone, count for the minimum but are nowhere.
        nowhere = group.done + len(staying) - len(running)
        minimum = spec.minimum
        if nowhere or (group.need < spec.need and staying):
            minimum = max(min(group.need, spec.need) - nowhere, 0)
        leaf = Leaf(
            group.key,
            sorted(pods, key=lambda pod: pod.rank or ()) if pods and pods[0].rank is not None else pods,
            minimum,
            network.required,
            [row for row, _ in running],
            preferred=network.preferred,
            running_ranks=[rank for _, rank in running],
        )
        return sliced(state, leaf, network.slices) if network.slices else leaf

    def _pods(self, group: Group, asked: Asked) -> Iterator[PendingPod]:
        yield from self._cache.pending_pods(group.pending, asked.nominated)
        for uid in asked.moved & group.placed.keys():
            yield self._as_pending(group.placed[uid])

    def _as_pending(self, member: PodInfo) -> PendingPod:
        """A member that has a node as it was before it had one."""
        body: dict[str, Any] = self._cache.as_json(member)
        body["spec"]["nodeName"] = ""
        pod = member.pod
        return PendingPod(
            member.uid, self._cache.state.equivalence_class(body), pod.metadata.labels or {}, rank=pod.rank
        )

    @contextmanager
    def without(self, members: Mapping[str, PodInfo]) -> Iterator[None]:
        """Within, these pods take no room."""
        state = self._cache.state
        for uid in members:
            state.remove_pod(uid)
        try:
            yield
        finally:
            for member in members.values():
                state.put_pod(self._cache.assigned_pod(member), member.node)


def _anywhere(leaf: Leaf) -> bool:
    return leaf.topology is None and not leaf.preferred
