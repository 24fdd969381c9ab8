"""Members that cannot be scheduled as one: another scheduler, priority or preemption policy than the root's.

Checked over pending and placed members of the whole tree, by what they have in common, not one by one
(spec scheduler 1.7).
"""

from __future__ import annotations

from collections.abc import Iterator

from kohort.scheduler.grouphealing import healing_mistakes
from kohort.scheduler.grouptopology import topology_mistakes
from kohort.scheduler.model import shown
from kohort.scheduler.trees import Group, Traits

MOST_LEVELS = 4
DEEPEST = 16  # whatever walks a tree by recursion stays far from its limit


def problems(root: Group) -> list[str]:
    """Everything that is wrong with a tree; empty if it may be decided."""
    if _is_simple(root):
        return []
    deep = too_deep(root)
    found = list(_members(root))
    for group in root.walk():
        found += (*topology_mistakes(group), *healing_mistakes(group))
    return [*found, deep] if deep else found


def _is_simple(root: Group) -> bool:
    """A group without groups, whose pods have everything in common and say nothing: most are."""
    spec = root.spec
    if spec is None or root.children or root.annotated or spec.annotations or spec.problem or len(root.traits) != 1:
        return False
    ((_, priority, policy),) = root.traits
    return spec.priority in (None, priority) and spec.policy in (None, policy)


def _members(root: Group) -> Iterator[str]:
    spec = root.spec
    assert spec is not None
    yield from dict.fromkeys(one.spec.problem for one in root.walk() if one.spec is not None and one.spec.problem)
    found = list(_traits(root))
    schedulers = sorted({one[1][0] for one in found})
    if len(schedulers) > 1:
        yield f"pods have schedulerName {_list(schedulers)}; all pods of {shown(root.key)} must have the same"
    for leaf, (_, priority, _) in found:
        if spec.priority is not None and priority != spec.priority:
            yield (
                f"pods of {shown(leaf.key)} have priority {priority}; accepted is {spec.priority}, "
                f"the priority of {shown(root.key)}"
            )
    policies = sorted({one[1][2] for one in found})
    if spec.policy is None and len(policies) > 1:
        yield f"pods have preemptionPolicy {_list(policies)}; all pods of {shown(root.key)} must have the same"
    for policy in policies:
        if spec.policy is not None and policy != spec.policy:
            yield f"pods have preemptionPolicy {policy}; accepted is {spec.policy}, the policy of {shown(root.key)}"


def _traits(root: Group) -> Iterator[tuple[Group, Traits]]:
    for leaf in root.leaves():
        for traits in sorted(leaf.traits):
            yield leaf, traits


def too_deep(root: Group) -> str:
    """What is said of a tree with more levels than anybody means; empty if it has not. Four are what the API allows.
    kube-scheduler refuses a fifth only where topology is involved (X15, X16), and what it binds we bind."""
    levels = root.levels()
    if levels > DEEPEST:
        return f"{shown(root.key)} has {levels} levels; at most {DEEPEST} are accepted"
    if levels > MOST_LEVELS and any(one.spec is not None and one.spec.topology is not None for one in root.walk()):
        return f"{shown(root.key)} has {levels} levels; with a topology constraint at most {MOST_LEVELS} are accepted"
    return ""


def _list(values: list[str]) -> str:
    return " and ".join(values)
