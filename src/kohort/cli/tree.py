"""`kohort tree`: a workload as it is in a cluster now: its groups, their minimum, who has a place, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from kohort.cli.common import UsageError, choice, count, friendly, out
from kohort.cli.following import Answer, follow_cluster
from kohort.cli.lookup import Found, Root
from kohort.cli.targets import FORMS, Question, Reply, as_data, ask_cluster, finish, print_data, print_names
from kohort.place.columns import label_value
from kohort.place.levels import HOSTNAME, carried
from kohort.place.networkstanding import Standing
from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.grouptopology import group_standing, group_topology
from kohort.scheduler.trees import BrokenChain, Group, PodInfo
from kohort.scheduler.validate import DEEPEST

_SHOWN: Final = 16  # pods of one group; of more, the first and the last are shown unless all were asked for
_ENDS: Final = 4
_DIM: Final = "dim"
_PENDING: Final = "Pending"


@friendly
def run(question: Question, kubeconfig: str, context: str, output: str, *, every: bool, watch: bool = False) -> int:
    choice("-o", output, FORMS)
    question.check()
    if not question.named:
        raise UsageError("nothing named; accepted are NAME, TYPE NAME, TYPE/NAME, a TYPE with -l or -A, or -f FILE")

    def look(reply: Reply) -> Answer:
        return _look(reply, output, every=every)

    if watch:
        return follow_cluster(question, kubeconfig, context, "kohort-tree", look, output)
    reply = ask_cluster(question, kubeconfig, context, "kohort-tree")
    look(reply).show()
    return finish(reply, "not looked at")


def _look(reply: Reply, output: str, *, every: bool) -> Answer:
    data = [_data(found) for found in reply.found]

    def show() -> None:
        if output in {"json", "yaml"}:
            if reply.found or not reply.missing:
                print_data(output, as_data(data, one=reply.one))
            return
        if output == "name":
            print_names(dict.fromkeys(one for found in reply.found for one in _names(found)))
            return
        wide = output == "wide"
        for found in reply.found:
            out.to(wide=wide).print(page(found, every=every or wide, wide=wide), soft_wrap=False)
        if not reply.found and not reply.missing:
            out.print(f"nothing found {reply.where}")

    return Answer(data, show)


def _data(found: Found) -> dict[str, Any]:
    return {"asked": found.asked, "note": found.note, "roots": [_json(found.core, one) for one in found.roots]}


# ---- as a picture


def page(found: Found, *, every: bool = False, wide: bool = False) -> RenderableType:
    """`every`: all pods of a group, however many; `wide`: with their ranks and the domains of their nodes."""
    top = Tree(Text(found.asked, "bold"), guide_style=_DIM)
    if found.note:
        top.add(Text(found.note))
    made: dict[str, Tree] = {}
    for root, member in found.roots:
        if isinstance(root, Group) and root.spec is not None and root.spec.workload:
            name = root.spec.workload
            if name not in made:
                made[name] = top.add(Text.assemble("Workload ", (name, "cyan")))
            _group(made[name], found.core, root, every=every, wide=wide)
        elif isinstance(root, Group):
            _group(top, found.core, root, every=every, wide=wide)
        elif isinstance(root, BrokenChain):
            top.add(Text.assemble(("waiting  ", "yellow"), root.why))
        else:
            top.add(_pod(found.core, member or root, wide=wide))
    return Lines(top)


def _group(above: Tree, core: SchedulerCore, group: Group, *, every: bool, wide: bool, level: int = 1) -> None:
    branch = above.add(_label(core, group))
    if level > DEEPEST:
        branch.add(Text(f"… more than {DEEPEST} levels: not accepted", "yellow"))
        return
    for child in group.ordered():
        _group(branch, core, child, every=every, wide=wide, level=level + 1)
    standing = Standing() if group.children else group_standing(core.cache, group)
    for line in _ranks(standing):
        branch.add(line)
    members = _members(group)
    hidden = 0 if every or len(members) <= _SHOWN else len(members) - 2 * _ENDS
    for member in members[:_ENDS] if hidden else members:
        branch.add(_pod(core, member, wide=wide))
    if hidden:
        branch.add(Text(f"… {hidden} more (--all shows them)", _DIM))
        for member in members[-_ENDS:]:
            branch.add(_pod(core, member, wide=wide))


def _label(core: SchedulerCore, group: Group) -> Text:
    spec = group.spec
    assert spec is not None
    numbers = _numbers(group)
    unit = "group" if spec.composite else "pod"
    policy = ("basic", "blue") if spec.minimum is None else (f"gang, minimum {count(spec.minimum, unit)}", "green")
    there = numbers["pods"] - numbers["finished"]
    text = Text.assemble(f"{spec.kind} ", (spec.name, "bold"), "  ", policy)
    if there or not numbers["finished"]:
        enough = numbers["placed"] >= there > 0
        text.append(f"  {numbers['placed']} of {there} placed", "green" if enough else "yellow")
    if numbers["finished"]:
        text.append(f"  {numbers['finished']} finished", _DIM)
    asked = group_topology(core.cache.engine, group)
    if asked.required is not None:
        text.append(f"  {_domain(core, group, asked.required)}")
    for key in asked.preferred:
        text.append(f"  {_domain(core, group, key, 'few')}")
    for size, required, preferred in asked.slices:
        text.append(f"  slices of {size}")
        text.append(f" in one {required}" if required else "")
        text.append(f" in few {preferred}" if preferred else "")
    if spec.rule and spec.parent is None:
        text.append(f"  by rule {spec.rule}", _DIM)
    return text


def _ranks(standing: Standing) -> Iterator[Text]:
    """Who is where, a line per domain, if there are ranks."""
    if not standing.ranks:
        return
    level = standing.levels[-1] if standing.levels else None
    key = level.key if level is not None else HOSTNAME
    for domain, ranks in standing.ranks.items():
        yield Text.assemble((f"{key}={domain}", "cyan"), f"  ranks {ranks}")
    if level is not None and level.crossings is not None:
        yield Text(f"{level.crossings} of {count(level.neighbours, 'neighbour')} apart", _DIM)


def _pod(core: SchedulerCore, member: PodInfo, *, wide: bool) -> Text:
    pod = member.pod
    text = Text(pod.metadata.name)
    if wide and pod.rank is not None:
        text.append(f"  rank {'/'.join(map(str, pod.rank))}", "cyan")
    if not member.node:
        why = "behind a scheduling gate" if member.gated else "being deleted" if member.leaving else "no node yet"
        return text.append(f"  {why}", "yellow")
    text.append(f"  {member.node}", "green")
    keys = carried(core.cache.state, core.settings.profile.topology_levels) if wide else []
    for key in (one for one in keys if one != HOSTNAME):
        for value in _values(core, [member], key):
            text.append(f"  {key}={value}", "cyan")
    return text.append(f"  {pod.status.phase or _PENDING}", _DIM)


# ---- what is counted


def _members(group: Group) -> list[PodInfo]:
    found = (*group.placed.values(), *group.pending.values())
    return sorted(found, key=lambda one: (one.pod.rank is None, one.pod.rank or (), one.pod.metadata.name))


def _numbers(group: Group) -> dict[str, int]:
    """Of all pods beneath."""
    found: Counter[str] = Counter()
    for leaf in group.leaves():
        found["placed"] += len(leaf.placed)
        found["finished"] += len(leaf.finished)
        found["pods"] += len(leaf.placed) + len(leaf.pending) + len(leaf.finished)
    return {name: found[name] for name in ("pods", "placed", "finished")}


def _domain(core: SchedulerCore, group: Group, key: str, number: str = "one") -> str:
    values = sorted(set(_values(core, (one for leaf in group.leaves() for one in leaf.placed.values()), key)))
    return f"in {number} {key}" + (f": {', '.join(values)}" if values else "")


def _values(core: SchedulerCore, members: Iterable[PodInfo], key: str) -> Iterator[str]:
    for one in members:
        row = core.cache.state.row(one.node)
        if row is not None:
            yield label_value(core.cache.state.node(row).labels, key) or "?"


# ---- for programs


def _names(found: Found) -> Iterator[tuple[str, str]]:
    """(kind, name) of all that the picture shows, from the top down."""
    yield found.kind, found.name
    for root, member in found.roots:
        if isinstance(root, Group):
            if root.spec is not None and root.spec.workload:
                yield "Workload", root.spec.workload
            yield from _names_below(root)
        elif not isinstance(root, BrokenChain):
            yield "Pod", (member or root).pod.metadata.name


def _names_below(group: Group, level: int = 1) -> Iterator[tuple[str, str]]:
    if group.spec is None or level > DEEPEST:
        return
    if not group.spec.rule:  # else it is of our making, and no object
        yield group.spec.kind, group.spec.name
    for child in group.ordered():
        yield from _names_below(child, level + 1)
    for member in _members(group):
        yield "Pod", member.pod.metadata.name


def _json(core: SchedulerCore, root: Root) -> dict[str, Any]:
    thing, member = root
    if isinstance(thing, Group):
        return _group_json(core, thing)
    if isinstance(thing, BrokenChain):
        return {"kind": "Broken", "why": thing.why}
    return _pod_json(member or thing)


def _group_json(core: SchedulerCore, group: Group, level: int = 1) -> dict[str, Any]:
    spec = group.spec
    assert spec is not None
    made: dict[str, Any] = {"kind": spec.kind, "name": spec.name, "workload": spec.workload, **_numbers(group)}
    made["minimum"] = spec.minimum
    if spec.rule:
        made["rule"] = spec.rule
    asked = group_topology(core.cache.engine, group)
    if asked.required is not None:
        placed = [one for leaf in group.leaves() for one in leaf.placed.values()]
        made |= {"topology": asked.required, "domains": sorted(set(_values(core, placed, asked.required)))}
    if asked.preferred:
        made["preferred"] = list(asked.preferred)
    children: Sequence[Group] = group.ordered()
    if children and level > DEEPEST:
        made["tooDeep"] = True
    elif children:
        made["groups"] = [_group_json(core, one, level + 1) for one in children]
    else:
        standing = group_standing(core.cache, group)
        if standing.levels:
            made |= {"levels": [asdict(one) for one in standing.levels], "ranks": standing.ranks}
        made["members"] = [_pod_json(one) for one in _members(group)]
    return made


def _pod_json(member: PodInfo) -> dict[str, Any]:
    made = {"pod": member.pod.metadata.name, "node": member.node, "phase": member.pod.status.phase or _PENDING}
    return made if member.pod.rank is None else {**made, "rank": list(member.pod.rank)}
