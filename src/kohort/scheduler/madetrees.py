"""Trees that no object stands for: put into `GroupTrees` while pods rest on them, and taken away with the last.

Of the thousands of places that a tree may have, nearly all say the same of its groups and differ in their leaf. What
is said is kept apart from who says it (`_Made.said`), so that one more place costs a look-up, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from dataclasses import replace as replaced

from msgspec.structs import replace

from kohort.api.scheduling.topology import TOPOLOGY
from kohort.grouping.keys import root_of
from kohort.grouping.model import Absent, GroupNode, Later, Level, Place
from kohort.grouping.schedulers.kohort import RULE as KOHORT_RULE
from kohort.place.explain import Explanation
from kohort.place.remedies import Remedy, RemedyKind
from kohort.scheduler.model import MADE_BRANCH, MADE_LEAF, GroupSpec, LaterPart, Owner
from kohort.scheduler.trees import GroupTrees


@dataclass(slots=True)
class _Made:
    """A tree, and the places that make it."""

    places: dict[Hashable, Place] = field(default_factory=dict)
    said: dict[Place, int] = field(default_factory=dict)  # places without leaf, the newest last, and how many say it
    keys: dict[str, GroupSpec] = field(default_factory=dict)  # of its groups

    def say(self, place: Place) -> bool:
        """-> whether nobody has said it before"""
        said = replace(place, leaf="")
        before = self.said.get(said, 0)
        self.said[said] = before + 1
        return not before

    def unsay(self, place: Place) -> bool:
        """-> whether nobody says it any more"""
        said = replace(place, leaf="")
        self.said[said] -= 1
        if self.said[said]:
            return False
        del self.said[said]
        return True


class MadeTrees:
    """`changed` is told of a root whose tree is another one now."""

    def __init__(self, trees: GroupTrees, changed: Callable[[str], None]) -> None:
        self._trees = trees
        self._changed = changed
        self._made: dict[str, _Made] = {}
        self._waiting: dict[str, set[Hashable]] = {}  # for an object

    def put(self, whose: Hashable, place: Place) -> str:
        """-> the key of the pod's group"""
        root = group_key(place, root_of(place).name)
        made = self._made.get(root)
        if made is None:
            if len(place.nodes) == 1:
                return self._put_first(root, whose, place)
            made = self._made[root] = _Made()
        before = made.places.get(whose)
        if before != place:
            news = made.say(place)
            if before is not None:
                news |= made.unsay(before)
            made.places[whose] = place
            if news:
                self._write(root, made)
        return root if len(place.nodes) == 1 else group_key(place, place.leaf)

    def _put_first(self, root: str, whose: Hashable, place: Place) -> str:
        """What most gangs are: one group, and all of their pods say the same."""
        spec = _spec(place, place.nodes[0])
        self._made[root] = _Made({whose: place}, {replace(place, leaf=""): 1}, {root: spec})
        self._trees.set(spec)
        self._changed(root)
        return root

    def drop(self, whose: Hashable, place: Place) -> None:
        """A place is no longer anybody's."""
        root = group_key(place, root_of(place).name)
        made = self._made.get(root)
        if made is None or made.places.get(whose) != place:
            return
        del made.places[whose]
        if made.unsay(place):
            self._write(root, made)
        if not made.places:
            del self._made[root]

    def wait(self, whose: Hashable, answer: Absent) -> str:
        """-> the name that pods wait under"""
        key = absent_key(answer)
        said = f"rule {answer.rule}: {answer.kind} {answer.namespace}/{answer.name} does not exist"
        self._trees.absent[key] = (said, f"create it, or take {answer.said} from the pods")
        self._waiting.setdefault(key, set()).add(whose)
        return key

    def wait_no_more(self, whose: Hashable, answer: Absent) -> None:
        key = absent_key(answer)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.discard(whose)
            if not waiting:
                del self._waiting[key], self._trees.absent[key]

    def _write(self, root: str, made: _Made) -> None:
        wanted: dict[str, GroupSpec] = {}
        problem = _problem(made) if len(made.said) > 1 else ""
        for place in made.said:
            for node in place.nodes:
                spec = _spec(place, node)
                wanted[spec.key] = replaced(spec, problem=problem) if problem and spec.key == root else spec
        for key, spec in wanted.items():
            if made.keys.get(key) != spec:
                self._trees.set(spec)
        for key in made.keys.keys() - wanted.keys():
            self._trees.drop(key)
        if made.keys != wanted:
            made.keys = wanted
            self._changed(root)


def group_key(place: Place, name: str) -> str:
    """Apart from the keys of PodGroups: those have no colon."""
    return f"{place.rule}:{place.namespace}/{name.replace('/', ':')}"


def absent_key(answer: Absent) -> str:
    return f"{answer.rule}:{answer.namespace}/{answer.name} ({answer.kind})"


def _spec(place: Place, node: GroupNode) -> GroupSpec:
    key = group_key(place, node.name)
    owner = place.owner
    owners = (Owner(owner.api_version, owner.kind, owner.name, owner.uid, True),) if owner is not None else ()
    return GroupSpec(
        key=key,
        namespace=place.namespace,
        name=node.name,
        uid=key,
        kind=MADE_BRANCH if node.branch else MADE_LEAF,
        minimum=node.minimum,
        topology=node.topology,
        disrupt_all=node.disrupt_all,
        annotations={TOPOLOGY: node.asks} if node.asks else {},
        parent=group_key(place, node.parent) if node.parent is not None else None,
        family=owner.uid if owner is not None else "",
        owners=owners,
        rule=place.rule,
        said=place.said,
        problem=place.problem,
        queue=place.queue,
        later=tuple(_later(place, one) for one in node.later) if node.later else (),
    )


def _later(place: Place, part: Later) -> LaterPart:
    return LaterPart(group_key(place, part.name), part.name, part.count, part.template, part.within)


def _problem(made: _Made) -> str:
    """Pods that say different things of the same group. What an owner says, the newest counts."""
    seen: dict[str, tuple[GroupNode, Place]] = {}
    for place in made.said:
        if place.level not in {Level.KOHORT, Level.KEYS}:
            continue
        for node in place.nodes:
            other, whose = seen.setdefault(node.name, (node, place))
            if other != node:
                return (
                    f"pods of {node.name} do not agree: {_told(other)} by {whose.said}, {_told(node)} by {place.said}; "
                    f"all of them must say the same"
                )
    return ""


def in_words_of_rules(explanation: Explanation, trees: GroupTrees) -> Explanation:
    """A group that no object stands for has no minCount that somebody could lower: keys or the owner say its minimum.
    Groups of a tree all belong to their owner, and parts that are made later are not anybody's to leave out."""
    for one in explanation.every():
        group = trees.get(one.group)
        spec = group.spec if group is not None else None
        if spec is not None and spec.rule:
            one.remedies = [made for remedy in one.remedies if (made := _in_words(remedy, spec)) is not None]
    return explanation


def _in_words(remedy: Remedy, spec: GroupSpec) -> Remedy | None:
    if remedy.kind is not RemedyKind.MINIMUM:
        return remedy
    if spec.later or (spec.composite and spec.rule != KOHORT_RULE.name):
        return None
    of = " groups" if spec.composite else ""
    return replaced(remedy, text=f"with a minimum of {remedy.amount}{of}, now")


def _told(node: GroupNode) -> str:
    kept = f" in one {node.topology}" if node.topology else ""
    within = f" within {node.parent}" if node.parent else ""
    return f"a minimum of {node.minimum or 'none'}{kept}{within}"
