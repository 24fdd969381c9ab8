"""Hard questions for the search, each with a placement by construction, and twins of them that have none.

A placement is planted first: pods are laid on nodes, then what is left free on each node is cut down to hardly more
than they take, and the gang is asked for without saying where. A twin has one pod too many: what is free, rounded to
what pods can use of each node, is taken to the last unit before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from kohort.place.demand import Branch, Demand, Leaf, PendingPod
from kohort.place.engine import Engine
from kohort.place.state import AssignedPod, ClusterState
from kohort.place.victims import Budget, GroupInfo

HOST, RACK, BLOCK, ZONE = "kubernetes.io/hostname", "rack", "block", "zone"
GI: Final = 1 << 30
STEP: Final = 500  # cpu is asked for in multiples of this
Asks = Mapping[str, int]
SIZES: Final = {"small": (2, 3, 2, 5), "large": (2, 5, 4, 5)}  # zones, blocks, racks, nodes of each


@dataclass
class Instance:
    """Roots to place (in the order they came), and what else the question needs."""

    engine: Engine
    roots: list[Demand]
    victims: dict[str, GroupInfo] | None = None  # preemption: groups of the pods that may go
    budgets: list[Budget] = field(default_factory=list)
    planted: int = 0  # preemption: victim sets that the planted plan takes


@dataclass
class Host:
    name: str
    labels: dict[str, str]
    pods: list[Asks] = field(default_factory=list)

    def total(self, resource: str) -> int:
        return sum(asks.get(resource, 0) for asks in self.pods)


class Plot:
    """A cluster on which pods are laid first and free room is cut to size afterwards."""

    def __init__(self, rng: Random, size: str, twin: bool) -> None:
        self.rng, self.twin = rng, twin
        zones, blocks, racks, nodes = SIZES[size]
        self.hosts = [
            Host(
                f"z{z}b{b}r{r}n{n}",
                {ZONE: f"z{z}", BLOCK: f"z{z}b{b}", RACK: f"z{z}b{b}r{r}", HOST: f"z{z}b{b}r{r}n{n}"},
            )
            for z in range(zones)
            for b in range(blocks)
            for r in range(racks)
            for n in range(nodes)
        ]
        self.state = ClusterState()
        self.engine = Engine(self.state)
        self.shapes = _shapes(rng, rng.randint(3, 7))
        self._number = 0

    def by(self, key: str, hosts: Sequence[Host] | None = None) -> list[list[Host]]:
        found: dict[str, list[Host]] = {}
        for host in self.hosts if hosts is None else hosts:
            found.setdefault(host.labels[key], []).append(host)
        return list(found.values())

    def lay(self, hosts: Sequence[Host], count: int, shapes: Sequence[Asks] | None = None) -> list[Asks]:
        """So many pods of some shapes, on the emptiest of these nodes."""
        laid = []
        for _ in range(count):
            host = min(self.rng.sample(hosts, min(3, len(hosts))), key=lambda one: one.total("cpu"))
            asks = self.rng.choice(self.shapes if shapes is None else shapes)
            host.pods.append(asks)
            laid.append(asks)
        return laid

    def build(self, low: float = 0.85, extra: Mapping[str, int] | None = None) -> None:
        """Nodes with just so much free: what was laid takes `low` to all of it. Twins: nothing usable is left."""
        for host in self.hosts:
            free = {}
            for resource in ("cpu", "memory"):
                taken = host.total(resource)
                share = 1.0 if self.twin and resource == "cpu" else self.rng.uniform(low, 1.0)
                free[resource] = int(taken / share)
            if self.twin and self.rng.random() < 0.7:
                free["cpu"] += STEP // 2  # of no use to anybody
            whole = {"cpu": 256_000, "memory": 2048 * GI, "pods": 110, **(extra or {})}
            self.state.put_node(host.name, whole, host.labels)
            filler = {"cpu": max(whole["cpu"] - free["cpu"], 0), "memory": max(whole["memory"] - free["memory"], 0)}
            self.run(f"filler-{host.name}", filler, host.name)

    def run(self, name: str, asks: Asks, node: str, group: str | None = None, priority: int = 0) -> None:
        signature = self.state.signatures.of_requests(asks)
        self.state.put_pod(AssignedPod(name, "default", name, {}, signature, priority, group), node)

    def pod(self, asks: Asks) -> PendingPod:
        self._number += 1
        eq_class = self.state.interpod.class_of(self.state.signatures.of_requests(asks), "default", {})
        return PendingPod(f"p{self._number}", eq_class)

    def leaf(
        self, name: str, asks: Sequence[Asks], minimum: int | None = None, key: str | None = None, **more: Any
    ) -> Leaf:
        return Leaf(name, [self.pod(one) for one in asks], len(asks) if minimum is None else minimum, key, **more)


def _shapes(rng: Random, count: int) -> list[Asks]:
    found = {}
    while len(found) < count:
        cpu, memory = STEP * rng.randint(1, 16), GI * rng.randint(1, 24)
        found[cpu, memory] = {"cpu": cpu, "memory": memory}
    return list(found.values())


# ---- families


def full(plot: Plot) -> Instance:
    """One gang of unlike pods, nodes 85 to 100 percent full with it."""
    asks = [one for host in plot.hosts for one in plot.lay([host], plot.rng.randint(3, 7))]
    plot.build()
    plot.rng.shuffle(asks)
    return Instance(plot.engine, [plot.leaf("gang", [*asks, *_one_more(plot)])])


def _one_more(plot: Plot) -> list[Asks]:
    return [min(plot.shapes, key=lambda asks: asks["cpu"])] if plot.twin else []


def trees(plot: Plot) -> Instance:
    """Three or four levels with a topology key at each; branches that need fewer children than they have."""
    rng = plot.rng
    sorts = [[rng.choice(plot.shapes) for _ in range(rng.randint(3, 6))] for _ in range(rng.randint(2, 4))]
    deep = rng.random() < 0.5
    blocks = []
    for block in plot.by(BLOCK, plot.by(ZONE)[0]):
        for _ in range(rng.randint(1, 2)):
            some = rng.sample(plot.by(RACK, block), rng.randint(1, len(plot.by(RACK, block))))
            blocks.append([_rack(plot, rack, sorts, deep) for rack in some])
    for host in plot.hosts:
        if not host.pods and host.labels[ZONE] != "z0":
            host.pods += rng.choices(plot.shapes, k=rng.randint(0, 3))  # another zone, with less room
    plot.build(0.9)
    if plot.twin:
        blocks[0][0][0] = [*blocks[0][0][0], *_one_more(plot)]
    number = iter(range(10_000))

    def branch(children: list[Demand], key: str, decoys: Callable[[], Demand]) -> Branch:
        need = len(children)
        more = [] if plot.twin else [decoys() for _ in range(rng.randint(0, 2))]
        everything = [*children, *more]
        rng.shuffle(everything)
        return Branch(f"b{next(number)}", everything, need, key)

    def leaf(asks: list[Asks]) -> Leaf:
        return plot.leaf(f"l{next(number)}", asks, None, HOST if deep and len(asks) <= 3 else None)

    def rack(groups: list[list[Asks]]) -> Demand:
        return branch([leaf(one) for one in groups], RACK, lambda: leaf(rng.choice(sorts) * rng.randint(1, 3)))

    def block(racks: list[list[list[Asks]]]) -> Demand:
        return branch([rack(one) for one in racks], BLOCK, lambda: rack([rng.choice(sorts) for _ in range(4)]))

    root = branch([block(one) for one in blocks], ZONE, lambda: block([[rng.choice(sorts)] * 3 for _ in range(3)]))
    return Instance(plot.engine, [root])


def _rack(plot: Plot, rack: Sequence[Host], sorts: list[list[Asks]], deep: bool) -> list[list[Asks]]:
    groups = []
    for _ in range(plot.rng.randint(1, 3)):
        asks = plot.rng.choice(sorts)
        if deep and len(asks) <= 3:
            plot.rng.choice(rack).pods.extend(asks)
        else:
            for one in asks:
                plot.lay(rack, 1, [one])
        groups.append(list(asks))
    return groups


def elastic(plot: Plot) -> Instance:
    """Leaves with more pods than their minimum: the minimums of all just fit."""
    leaves: list[Demand] = []
    wanted = []
    for rack in plot.by(RACK):
        for _ in range(plot.rng.randint(2, 4)):
            shapes = plot.rng.sample(plot.shapes, plot.rng.randint(1, 2))
            count = plot.rng.randint(4, 10)
            laid = plot.lay(rack, count, shapes)
            more = plot.rng.choices(shapes, k=plot.rng.randint(1, count))
            wanted.append((laid, more, plot.rng.random() < 0.7))
    plot.build()
    plot.rng.shuffle(wanted)
    for number, (laid, more, keyed) in enumerate(wanted):
        # Twins have no pods to choose from: a choice might be smaller than what was laid.
        needed = [*laid, *_one_more(plot)] if not number else laid
        asks = needed if plot.twin else [*needed, *more]
        plot.rng.shuffle(asks)
        leaves.append(plot.leaf(f"l{number}", asks, len(needed), RACK if keyed else None))
    return Instance(plot.engine, [Branch("root", leaves, len(leaves))])


def rules(plot: Plot) -> Instance:
    """Services that keep apart, spread over zones, select nodes, hold ports; few pods per node."""
    rng = plot.rng
    for host in plot.hosts:
        host.labels["disk"] = rng.choice(("ssd", "hdd"))
    leaves = []
    for number in range(max(len(plot.hosts) // 8, 4)):
        asks, kind = rng.choice(plot.shapes), rng.choice(("apart", "racks", "spread", "disk", "ports", "none"))
        name, labels = f"s{number}", {"app": f"s{number}"}
        spec: dict[str, Any] = {}
        hosts = list(plot.hosts)
        if kind == "racks":
            hosts = [rng.choice(rack) for rack in plot.by(RACK)]
        elif kind == "disk":
            hosts = [host for host in hosts if host.labels["disk"] == "ssd"] or hosts
        count = min(rng.randint(len(plot.hosts) // 3, len(plot.hosts) * 2 // 3), len(hosts))
        chosen = rng.sample(hosts, count)
        if kind == "apart":
            spec["affinity"] = {"podAntiAffinity": {_HARD: [_term(labels, HOST)]}}
        elif kind == "racks":
            spec["affinity"] = {"podAntiAffinity": {_HARD: [_term(labels, RACK)]}}
        elif kind == "spread":
            zones = plot.by(ZONE)
            chosen = [rng.choice(zones[n % len(zones)]) for n in range(count)]
            rule = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**rule, "labelSelector": {"matchLabels": labels}}]
        elif kind == "disk":
            spec["nodeSelector"] = {"disk": chosen[0].labels["disk"]}
            chosen = [host for host in chosen if host.labels["disk"] == chosen[0].labels["disk"]]
        for host in chosen:
            host.pods.append(asks)
        leaves.append((name, labels, asks, spec, kind, len(chosen)))
    most = max(len(host.pods) for host in plot.hosts)
    plot.build(0.85, {"pods": most + 1})
    short = rng.randrange(len(leaves))
    demands: list[Demand] = []
    for position, (name, labels, asks, spec, kind, count) in enumerate(leaves):
        ports = [{"hostPort": 9000 + position}] if kind == "ports" else []
        pods = []
        for index in range(count + (plot.twin and position == short)):
            requests = {"cpu": f"{asks['cpu']}m", "memory": str(asks["memory"])}
            obj = {
                "metadata": {
                    "name": f"{name}-{index}",
                    "uid": f"{name}-{index}",
                    "namespace": "default",
                    "labels": labels,
                },
                "spec": {"containers": [{"name": "c", "ports": ports, "resources": {"requests": requests}}], **spec},
            }
            pods.append(PendingPod(f"{name}-{index}", plot.state.equivalence_class(obj), labels))
        demands.append(Leaf(name, pods, len(pods)))
    return Instance(plot.engine, [Branch("root", demands, len(demands))])


_HARD = "requiredDuringSchedulingIgnoredDuringExecution"


def _term(labels: Mapping[str, str], key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}


def running(plot: Plot) -> Instance:
    """Groups of which some members run already: the rest must join them in their racks."""
    rng = plot.rng
    wanted = []
    for rack in plot.by(RACK):
        for _ in range(rng.randint(1, 3)):
            shapes = rng.sample(plot.shapes, rng.randint(1, min(3, len(plot.shapes))))
            wanted.append((rack, plot.lay(rack, rng.randint(4, 9), shapes), rng.random() < 0.5))
    plot.build()
    rng.shuffle(wanted)
    leaves: list[Demand] = []
    rest = [(rack, list(asks), begun) for rack, asks, begun in wanted]
    if plot.twin:
        rest[0] = (rest[0][0], [*rest[0][1], *_one_more(plot)], rest[0][2])
    for number, (rack, asks, begun) in enumerate(rest):
        rows = []
        if begun:
            for index in range(rng.randint(1, 2)):
                host = rng.choice(rack)
                # It holds what the filler would: a member that runs takes nothing of what is free.
                row = plot.state.row(host.name)
                assert row is not None
                plot.state.put_pod(
                    AssignedPod(
                        f"m{number}-{index}",
                        "default",
                        f"m{number}-{index}",
                        {},
                        plot.state.signatures.of_requests({}),
                        0,
                        f"default/l{number}",
                    ),
                    host.name,
                )
                rows.append(row)
        leaves.append(plot.leaf(f"l{number}", asks, len(asks) + len(rows), RACK, running=rows))
    return Instance(plot.engine, [Branch("root", leaves, len(leaves))])


def preemption(plot: Plot) -> Instance:
    """A gang that fits if some go: some alone, some as whole gangs, some under a budget."""
    rng = plot.rng
    asks: list[Asks] = []
    groups: dict[str, GroupInfo] = {}
    for host in plot.hosts:
        plot.state.put_node(host.name, {"cpu": 16_000, "memory": 64 * GI, "pods": 110}, host.labels)
    gone = 0
    guarded: list[str] = []
    for number in range(0, len(plot.hosts), 2):
        group = f"default/v{number}"
        whole = rng.random() < 0.4
        groups[group] = GroupInfo(disrupt_all=whole, priority=rng.choice((0, 10)))
        for host in plot.hosts[number : number + 2]:
            for index in range(4):
                uid = f"v{number}-{host.name}-{index}"
                plot.run(uid, {"cpu": 4000, "memory": 16 * GI}, host.name, group, groups[group].priority)
                if rng.random() < 0.2:
                    guarded.append(uid)
        if rng.random() < 0.25:
            gone += 1 if whole else 4
            asks += [{"cpu": 4000, "memory": 8 * GI}] * rng.randint(2, 4)
    asks = asks or [{"cpu": 8000, "memory": 8 * GI}]
    if plot.twin:
        asks = [{"cpu": 16_000, "memory": GI}] * (len(plot.hosts) + 1)
    return Instance(
        plot.engine, [plot.leaf("gang", asks)], groups, [Budget("default/b", frozenset(guarded), 2)], max(gone, 2)
    )


def victims(plot: Plot) -> Instance:
    """The same with victims and pods of unlike sizes, gangs over one to three nodes, and budgets that are soon used up:
    who goes is a question of its own."""
    rng = plot.rng
    for host in plot.hosts:
        plot.state.put_node(host.name, {"cpu": 16_000, "memory": 64 * GI, "pods": 110}, host.labels)
    groups: dict[str, GroupInfo] = {}
    guarded: list[list[str]] = [[], [], []]
    free = {host.name: 16_000 for host in plot.hosts}
    for number in range(len(plot.hosts) * 2):
        group = f"default/v{number}"
        groups[group] = GroupInfo(disrupt_all=rng.random() < 0.3, priority=rng.choice((0, 0, 10)))
        begin, cpu = rng.randrange(len(plot.hosts)), rng.choice((1000, 2000, 3000, 5000))
        for host in plot.hosts[begin : begin + rng.randint(1, 3)]:
            for index in range(rng.randint(1, 2)):
                if free[host.name] >= cpu:
                    free[host.name] -= cpu
                    uid = f"v{number}-{host.name}-{index}"
                    held = {"cpu": cpu, "memory": rng.randint(1, 8) * GI}
                    plot.run(uid, held, host.name, group, groups[group].priority or 0)
                    if rng.random() < 0.3:
                        rng.choice(guarded).append(uid)
    asks = [
        {"cpu": rng.choice((2000, 3000, 4000, 6000)), "memory": rng.randint(1, 12) * GI}
        for _ in range(rng.randint(1, 3))
    ]
    lacking = sum(free.values()) * len(asks) // sum(one["cpu"] for one in asks) + len(plot.hosts) // 4
    gang = [rng.choice(asks) for _ in range(lacking)]
    if plot.twin:
        gang = [{"cpu": 16_000, "memory": GI}] * (len(plot.hosts) + 1)
    budgets = [Budget(f"default/b{number}", frozenset(some), 1) for number, some in enumerate(guarded)]
    return Instance(plot.engine, [plot.leaf("gang", gang)], groups, budgets)


def queue(plot: Plot) -> Instance:
    """Several gangs that all fit if each is packed well."""
    rng = plot.rng
    gangs: list[list[Asks]] = [[] for _ in range(rng.randint(5, 9))]
    for host in plot.hosts:
        for asks in plot.lay([host], rng.randint(3, 6)):
            rng.choice(gangs).append(asks)
    plot.build(0.92)
    gangs = [asks for asks in gangs if asks]
    rng.shuffle(gangs)
    if plot.twin:
        gangs[-1] += _one_more(plot)
    return Instance(plot.engine, [plot.leaf(f"g{number}", asks) for number, asks in enumerate(gangs)])


FAMILIES: Final[Mapping[str, Callable[[Plot], Instance]]] = {
    "full": full,
    "trees": trees,
    "elastic": elastic,
    "rules": rules,
    "running": running,
    "preemption": preemption,
    "victims": victims,
    "queue": queue,
}


def instance(family: str, size: str, seed: int, *, twin: bool = False) -> Instance:
    return FAMILIES[family](Plot(Random(f"{family}/{size}/{seed}"), size, twin))
