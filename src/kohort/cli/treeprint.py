"""A compiled workload as a tree that people read: groups with their minimum, and the pods that join them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from kohort.api.releases import Release, release
from kohort.cli.common import count
from kohort.cli.lines import Hanging
from kohort.gang.tree import Group, Member, Plan, Template
from kohort.library import Compiled

_SHOWN = 4  # siblings alike beyond this are told, not listed
_DIM = "dim"


def tree(done: Compiled) -> RenderableType:
    """Everything about one workload: its plans, and the pods that stay ungrouped."""
    made = release(done.minor)
    title = Text.assemble((done.document.name, "bold"), f" on Kubernetes {done.minor}")
    parts: list[RenderableType] = [title]
    if done.reason and not done.plans:
        parts.append(Hanging(f"no groups: {done.reason}"))
    parts += [_plan(plan, made) for plan in done.plans]
    if done.links:
        parts.append(Hanging(Text(_legend(done, made), _DIM)))
    if done.stand_in_uid and any(plan.hashes_uid for plan in done.plans):
        parts.append(Hanging(Text("names with a hash are computed from a stand-in for metadata.uid", _DIM)))
    return Lines(*parts)


def _legend(done: Compiled, made: Release) -> str:
    """How pods join: the same for all of them, so it is said once, with the first as the example."""
    link = next(iter(done.links.values()))
    ((member, inner),) = link.items()
    example = ", ".join(f"{name}: {value}" for name, value in inner.items())
    what = "their PodGroup" if made.has_pod_groups else "their group in the Workload"
    return f"pods name {what} in spec.{member}: {{{example}}}"


def _plan(plan: Plan, made: Release) -> Tree:
    whose = "" if plan.own_workload else "  somebody else's"
    top = Tree(Text.assemble("Workload ", (plan.workload, "bold cyan"), (whose, _DIM)), guide_style=_DIM)
    for root, more in _few(plan.roots, plan):
        _group(top, root, plan, made)
        _more(top, more)
    loose = [member for member in plan.members if member.group is None]
    if loose:
        branch = top.add(Text.assemble("ungrouped  ", (count(sum(m.count for m in loose), "pod"), "")))
        _members(branch, loose)
    return top


def _group(above: Tree, group: Group, plan: Plan, made: Release) -> None:
    template = plan.template(group.template)
    children = plan.children(group.name)
    members = [member for member in plan.members if member.group == group.name]
    have = len(children) if children else sum(member.count for member in members)
    branch = above.add(_label(group, template, plan.minimum(group), have, made))
    for child, more in _few(children, plan):
        _group(branch, child, plan, made)
        _more(branch, more)
    _members(branch, members)


def _label(group: Group, template: Template, minimum: int | None, have: int, made: Release) -> Text:
    unit = "pod" if template.is_leaf else "group"
    if minimum is None:
        policy = Text.assemble(("basic", "blue"), f"  {count(have, unit)}")
    else:
        policy = Text.assemble(("gang", "green"), f"  {minimum} of {count(have, unit)}")
    origin = "" if template.name == group.name or not made.has_pod_groups else f"  from {template.name}"
    return Text.assemble(*_identity(group, template, made), "  ", policy, _extras(template), (origin, _DIM))


def _identity(group: Group, template: Template, made: Release) -> tuple[Any, ...]:
    if not made.has_pod_groups:
        key = f" key {group.replica_key}" if group.replica_key is not None else ""
        return ("group ", (template.name, "bold"), key)
    kind = "PodGroup " if template.is_leaf else "CompositePodGroup "
    return (kind, (group.name, "bold"))


def _extras(template: Template) -> str:
    said = [
        template.topology and f"in one {template.topology}",
        template.disruption == "all" and "disrupted together",
        template.priority_class and f"priority {template.priority_class}",
        template.claims and f"claims {', '.join(claim.name for claim in template.claims)}",
    ]
    return "".join(f"  {text}" for text in said if text)


def _members(branch: Tree, members: Sequence[Member]) -> None:
    if len(members) > _SHOWN:
        hidden = members[2:-1]
        for member in members[:2]:
            branch.add(_member(member))
        branch.add(Text(f"… {len(hidden)} more, {count(sum(m.count for m in hidden), 'pod')}", _DIM))
        members = members[-1:]
    for member in members:
        branch.add(_member(member))


def _member(member: Member) -> Text:
    return Text.assemble(member.source, f"  {count(member.count, 'pod')}")


def _few(groups: Sequence[Group], plan: Plan) -> Iterable[tuple[Group, int]]:
    """Groups to show, each with the number of like ones left out after it."""
    position = 0
    while position < len(groups):
        run = position
        while run < len(groups) and _alike(groups[position], groups[run], plan):
            run += 1
        length = run - position
        if length > _SHOWN:
            yield groups[position], 0
            yield groups[position + 1], length - 3
            yield groups[run - 1], 0
        else:
            for group in groups[position:run]:
                yield group, 0
        position = run


def _alike(one: Group, other: Group, plan: Plan) -> bool:
    return one.template == other.template and plan.minimum(one) == plan.minimum(other)


def _more(branch: Tree, number: int) -> None:
    if number:
        branch.add(Text(f"… {number} more like these", _DIM))
