"""An independent model of the placement problem: small clusters, answered by trying everything.

It knows nothing of the engine. Clusters are plain data; `fits` searches all assignments, `mistakes` checks one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any


@dataclass
class Node:
    name: str
    cpu: int
    memory: int
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """What a pod asks for. `pod_anti_affinity`: at most one pod of this kind's colour per domain of the key."""

    cpu: int
    memory: int = 0
    select: tuple[tuple[str, str], ...] = ()
    colour: str = ""
    pod_anti_affinity: tuple[str, str] | None = None  # (key, colour it keeps away from)


@dataclass
class Group:
    """A leaf (pods) or a branch (children). `running`: (kind, node) of members on nodes."""

    name: str
    need: int
    key: str | None = None
    pods: list[Kind] = field(default_factory=list)
    running: list[tuple[Kind, str]] = field(default_factory=list)
    children: list[Group] = field(default_factory=list)

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def leaves(self) -> Iterator[Group]:
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    def every(self) -> Iterator[Group]:
        yield self
        for child in self.children:
            yield from child.every()


@dataclass
class Case:
    nodes: list[Node]
    others: list[tuple[Kind, str]]  # pods of nobody in particular, on nodes
    root: Group


Seats = list[tuple[Kind, str]]


def node_of(case: Case, name: str) -> Node:
    return next(node for node in case.nodes if node.name == name)


def allows(case: Case, assignments: Seats, eq_class: Kind, node: Node) -> bool:
    """Whether one more pod may join those seated."""
    here = [one for one, where in assignments if where == node.name]
    if (
        sum(one.cpu for one in here) + eq_class.cpu > node.cpu
        or sum(one.memory for one in here) + eq_class.memory > node.memory
    ):
        return False
    if any(node.labels.get(key) != value for key, value in eq_class.select):
        return False
    return not any(_repels(case, eq_class, node, one, where) for one, where in assignments)


def _repels(case: Case, eq_class: Kind, node: Node, other: Kind, where: str) -> bool:
    """Whether either pod keeps away from the other, and both are in one domain."""
    for holder, seen in ((eq_class, other), (other, eq_class)):
        if holder.pod_anti_affinity is not None and seen.colour == holder.pod_anti_affinity[1]:
            key = holder.pod_anti_affinity[0]
            domain = node.labels.get(key)
            if domain is not None and node_of(case, where).labels.get(key) == domain:
                return True
    return False


# ---- does it fit? all ways to give each leaf that counts its minimum


def fits(case: Case) -> bool:
    """Whether the root's minimum can be met."""
    assignments: Seats = [*case.others, *(seat for leaf in case.root.leaves() for seat in leaf.running)]
    return any(True for _ in _ways(case, case.root, case.nodes, assignments))


def _ways(case: Case, group: Group, nodes: list[Node], assignments: Seats) -> Iterator[Seats]:
    """Every way to meet the group's minimum within the nodes, as all seats afterwards."""
    for domain in _domains(case, group, nodes):
        if group.is_leaf:
            yield from _pods(case, group, domain, assignments)
        else:
            yield from _some(case, group.children, group.need, domain, assignments)


def _domains(case: Case, group: Group, nodes: list[Node]) -> list[list[Node]]:
    if group.key is None:
        return [nodes]
    anti_affinity_total = {
        node_of(case, where).labels.get(group.key) for leaf in group.leaves() for _, where in leaf.running
    }
    values = anti_affinity_total or {node.labels[group.key] for node in nodes if group.key in node.labels}
    return [[node for node in nodes if node.labels.get(group.key) == value] for value in sorted(values, key=str)]


def _some(case: Case, children: list[Group], need: int, nodes: list[Node], assignments: Seats) -> Iterator[Seats]:
    """Ways to satisfy `need` of the children."""
    if need <= 0:
        yield assignments
        return
    if len(children) < need:
        return
    for after in _ways(case, children[0], nodes, assignments):
        yield from _some(case, children[1:], need - 1, nodes, after)
    yield from _some(case, children[1:], need, nodes, assignments)


def _pods(case: Case, leaf: Group, nodes: list[Node], assignments: Seats) -> Iterator[Seats]:
    missing = max(leaf.need - len(leaf.running), 0)
    pods = sorted(leaf.pods, key=lambda eq_class: (-eq_class.cpu, -eq_class.memory, str(eq_class)))
    yield from _seat(case, pods, 0, missing, nodes, assignments)


def _seat(
    case: Case, pods: list[Kind], first: int, missing: int, nodes: list[Node], assignments: Seats
) -> Iterator[Seats]:
    """Equal pods go to nodes in order, so that no way is tried twice."""
    if missing == 0:
        yield assignments
        return
    if len(pods) < missing:
        return
    eq_class, rest = pods[0], pods[1:]
    for position in range(first, len(nodes)):
        if allows(case, assignments, eq_class, nodes[position]):
            again = position if rest and rest[0] == eq_class else 0
            yield from _seat(case, rest, again, missing - 1, nodes, [*assignments, (eq_class, nodes[position].name)])
    others = [one for one in rest if one != eq_class]
    yield from _seat(case, others, 0, missing, nodes, assignments)


# ---- is a placement right?


def mistakes(case: Case, placed: dict[str, dict[int, str]]) -> list[str]:
    """What is wrong with a placement: leaf name -> number of its pod -> node name."""
    found: list[str] = []
    assignments: Seats = [*case.others, *(seat for leaf in case.root.leaves() for seat in leaf.running)]
    for leaf in case.root.leaves():
        for number, name in placed.get(leaf.name, {}).items():
            if not allows(case, assignments, leaf.pods[number], node_of(case, name)):
                found.append(f"{leaf.name}/{number} may not be on {name}")
            assignments.append((leaf.pods[number], name))
    met = {group.name: _met(case, group, placed) for group in case.root.every()}
    if placed and not met[case.root.name]:
        found.append("the root's minimum is not met")
    for leaf in case.root.leaves():
        if placed.get(leaf.name) and not met[leaf.name]:
            found.append(f"{leaf.name} is placed below its minimum")
    return found


def _met(case: Case, group: Group, placed: dict[str, dict[int, str]]) -> bool:
    where = [name for leaf in group.leaves() for name in placed.get(leaf.name, {}).values()]
    where += [name for leaf in group.leaves() for _, name in leaf.running]
    if group.key is not None and len({node_of(case, name).labels.get(group.key, name) for name in where}) > 1:
        return False
    if group.is_leaf:
        return len(where) >= group.need
    return sum(_met(case, child, placed) for child in group.children) >= group.need


# ---- random cases


def random_case(rng: Random) -> Case:
    eq_classes = [random_kind(rng) for _ in range(rng.randint(1, 3))]
    nodes = [
        Node(f"n{number}", rng.randint(1, 8), rng.randint(2, 8), random_labels(rng, number))
        for number in range(rng.randint(2, 5))
    ]
    case = Case(nodes, [], Group("empty", 1))
    for _ in range(rng.randint(0, 3)):
        seat = (random_kind(rng), rng.choice(nodes).name)
        if allows(case, case.others, seat[0], node_of(case, seat[1])):
            case.others.append(seat)
    case.root = random_group(rng, "g", eq_classes, depth=rng.choice([0, 0, 1, 1, 2]), budget=[7])
    _random_running(rng, case)
    return case


def random_labels(rng: Random, number: int) -> dict[str, str]:
    labels = {"host": f"n{number}", "zone": rng.choice(["z1", "z1", "z2"])}
    if rng.random() < 0.9:
        labels["rack"] = f"{labels['zone']}-{rng.choice(['a', 'b'])}"
    return labels


def random_kind(rng: Random) -> Kind:
    colour = rng.choice(["", "", "", "red", "blue"])
    pod_anti_affinity = (rng.choice(["host", "rack"]), rng.choice(["red", "blue"])) if rng.random() < 0.15 else None
    select = (("zone", rng.choice(["z1", "z2"])),) if rng.random() < 0.1 else ()
    return Kind(rng.randint(1, 4), rng.choice([0, 0, 1, 2, 3]), select, colour, pod_anti_affinity)


def random_group(rng: Random, name: str, eq_classes: list[Kind], depth: int, budget: list[int]) -> Group:
    if depth == 0 or budget[0] < 2:
        pods = [rng.choice(eq_classes) for _ in range(max(min(rng.randint(1, 5), budget[0]), 1))]
        budget[0] -= len(pods)
        need = rng.choice([len(pods), rng.randint(1, len(pods))])
        return Group(name, need, rng.choice([None, None, "rack", "zone"]), pods)
    count = rng.randint(1, 3)
    children = [random_group(rng, f"{name}{number}", eq_classes, depth - 1, budget) for number in range(count)]
    need = rng.choice([count, rng.randint(1, count)])
    return Group(name, need, rng.choice([None, None, None, "zone", "rack"]), children=children)


def _random_running(rng: Random, case: Case) -> None:
    """Now and then a member runs already."""
    if rng.random() < 0.75:
        return
    leaf = rng.choice(list(case.root.leaves()))
    seat = (rng.choice(leaf.pods), rng.choice(case.nodes).name)
    labels = node_of(case, seat[1]).labels
    keys = [group.key for group in case.root.every() if group.key]
    if all(key in labels for key in keys) and allows(case, case.others, seat[0], node_of(case, seat[1])):
        leaf.running.append(seat)


def tight_case(rng: Random) -> Case:
    """Pods that fill every node exactly, so that a fit exists and every order but a few misses it."""
    nodes, pods = [], []
    for number in range(rng.randint(2, 5)):
        pieces = [(rng.randint(1, 5), rng.randint(1, 4)) for _ in range(rng.randint(1, 3))]
        rack = f"r{number % 2}"
        cpu, memory = sum(cpu for cpu, _ in pieces), sum(memory for _, memory in pieces)
        nodes.append(Node(f"n{number}", cpu, memory, {"host": f"n{number}", "zone": "z1", "rack": rack}))
        pods += [(rack, Kind(cpu, memory)) for cpu, memory in pieces]
    rng.shuffle(pods)
    if rng.random() < 0.5:
        root = Group("g", len(pods), pods=[eq_class for _, eq_class in pods])
        return Case(nodes, [], root)
    children: list[Any] = []
    for rack in ("r0", "r1"):
        mine = [eq_class for where, eq_class in pods if where == rack]
        while mine:
            size = rng.randint(1, len(mine))
            some, mine = mine[:size], mine[size:]
            children.append(Group(f"g{len(children)}", size, "rack", pods=some))
    rng.shuffle(children)
    return Case(nodes, [], Group("g", len(children), children=children))
