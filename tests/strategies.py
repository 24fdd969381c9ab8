"""Hypothesis strategies that several test modules share: names, templates, arbitrary valid plans."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hypothesis import strategies as st

from kohort.gang.tree import Claim, Controller, Group, Member, Owner, Plan, Template

# Sampled, not composed letter by letter: a tree has many names, and what is tested is what stands around them.
LABELS = st.sampled_from(["a", "0", "pg-0", "w-1--x", "9z", "x" * 55, "y" * 63])
SHORT_LABELS = st.sampled_from(["a", "0", "pg", "w-1--x", "9z", "x" * 55])
SUBDOMAINS = st.sampled_from(["a", "0.1", "a.b-c.d", "w-aurora", "x" * 100, "pg-a.b.0"])
LABEL_KEYS = st.sampled_from(["kubernetes.io/hostname", "example.com/rack", "zone", "example.org/Rack_2"])
MINIMUMS = st.one_of(st.none(), st.integers(1, 2**31 - 1))
UIDS = st.uuids().map(str)

_METADATA = st.dictionaries(LABEL_KEYS, SHORT_LABELS, max_size=2)


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    name, target = draw(SHORT_LABELS), draw(SUBDOMAINS)
    return draw(st.sampled_from([Claim(name, claim=target), Claim(name, template=target)]))


@st.composite
def owners(draw: st.DrawFn, controller: bool = True) -> Owner:
    return Owner(
        api_version=draw(st.sampled_from(["batch/v1", "v1", "jobset.x-k8s.io/v1alpha2"])),
        kind=draw(st.sampled_from(["Job", "JobSet"])),
        name=draw(SUBDOMAINS),
        uid=draw(UIDS),
        controller=controller,
        block_deletion=draw(st.booleans()),
    )


@st.composite
def _template(draw: st.DrawFn, names: count[int], depth: int) -> Template:
    """A template of exactly `depth` levels: leaves first among its children, as an API object lists them."""
    children: tuple[Template, ...] = ()
    if depth > 1:
        leaves = draw(st.integers(0 if depth > 2 else 1, 2))
        branches = draw(st.integers(1, 2)) if depth == 3 else int(depth > 2)
        children = (
            *(draw(_template(names, 1)) for _ in range(leaves)),
            *(draw(_template(names, depth - 1)) for _ in range(branches)),
        )
    return Template(
        name=f"{draw(SHORT_LABELS)}-{next(names)}",
        minimum=draw(MINIMUMS),
        topology=draw(st.none() | LABEL_KEYS),
        disruption=draw(st.sampled_from([None, "single", "all"])),
        claims=() if children else tuple(draw(st.lists(claims(), max_size=4, unique_by=lambda claim: claim.name))),
        preemption_policy=draw(st.sampled_from([None, "PreemptLowerPriority", "Never"])),
        children=children,
    )


@st.composite
def templates(draw: st.DrawFn, max_depth: int = 4) -> tuple[Template, ...]:
    """The templates of one Workload: all flat or all trees, one priority for all."""
    names, depth = count(), draw(st.integers(1, max_depth))
    roots = tuple(draw(_template(names, depth)) for _ in range(draw(st.integers(1, 3 if depth == 1 else 2))))
    priority = draw(st.none() | st.integers(-(2**31), 10**9))
    priority_class = draw(st.none() | SUBDOMAINS)
    return tuple(_with_priority(root, priority_class, priority) for root in roots)


def _with_priority(template: Template, priority_class: str | None, priority: int | None) -> Template:
    children = tuple(_with_priority(child, priority_class, priority) for child in template.children)
    return replace(template, priority_class=priority_class, priority=priority, children=children)


@st.composite
def _groups(draw: st.DrawFn, template: Template, parent: str | None, names: count[int], own: Owner) -> list[Group]:
    made: list[Group] = []
    for index in range(draw(st.integers(1, 2)) if parent is None or template.is_leaf else 1):
        name = f"{draw(SUBDOMAINS)}.{next(names)}"
        made.append(
            Group(
                name=name,
                template=template.name,
                parent=parent,
                minimum=draw(MINIMUMS.filter(lambda n: n != template.minimum)) if template.is_gang else None,
                replica_key=str(index),
                owners=draw(st.sampled_from([(), (own,)])),
                labels=draw(_METADATA),
                annotations=draw(_METADATA),
            )
        )
        for child in template.children:
            made += draw(_groups(child, name, names, own))
    return made


@st.composite
def plans(draw: st.DrawFn, max_depth: int = 4) -> Plan:
    """Any valid plan of an own Workload; `max_depth` 1 for plans that every release can express."""
    workload, roots, names = draw(SUBDOMAINS), draw(templates(max_depth)), count()
    own = Owner(api_version="scheduling.k8s.io/v1beta1", kind="Workload", name=workload)
    groups = [group for root in roots for group in draw(_groups(root, None, names, own))]
    leaves = {template.name for root in roots for template in root.walk() if template.is_leaf}
    controller = Controller(api_group=draw(st.sampled_from(["", "batch"])), kind="Job", name=draw(LABELS))
    return Plan(
        workload=workload,
        namespace=draw(LABELS),
        controller=draw(st.sampled_from([None, controller])),
        templates=roots,
        groups=tuple(groups),
        members=tuple(
            Member(source=f"Job {index}", count=draw(st.integers(0, 3)), group=group.name)
            for index, group in enumerate(groups)
            if group.template in leaves
        ),
        owners=tuple(draw(st.lists(owners(), max_size=1))),
        labels=draw(_METADATA),
        annotations=draw(_METADATA),
    )
