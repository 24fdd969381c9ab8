"""What the rules of companion mode would make of the pods that a cluster has: one line for each rule, one example."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kohort.grouping.model import Kind, Rule
from kohort.grouping.settings import Grouping
from kohort.kube.errors import ApiError
from kohort.run.plan import Line
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.settings import SchedulerSettings
from kohort.scheduler.trees import BrokenChain, Group

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.scheduler.core import SchedulerCore


async def groups(client: Client, grouping: Grouping, names: Iterable[str]) -> list[Line]:
    """Pods of every scheduler are looked at: what would be grouped if they named one of `names`."""
    chosen = SchedulerSettings(names=frozenset(names), grouping=grouping)
    try:
        seen = await list_cluster(client, chosen, grouped=True)
    except ApiError as error:
        return [Line("rules", "missing", f"what they would group cannot be read: {error}", "see deploy/rbac.yaml")]
    served = {Kind(one.group, one.kind) for one in await client.discovery.all()}
    return list(lines(seen.core, grouping, served))


def lines(core: SchedulerCore, grouping: Grouping, served: set[Kind]) -> Iterator[Line]:
    found: dict[str, dict[str, Group]] = {}
    for entry, place in core.cache.companion.grouped():
        group = core.cache.trees.get(entry.key or "")
        root = core.cache.trees.root(group) if group is not None else None
        if root is not None and not isinstance(root, BrokenChain):
            found.setdefault(place.rule, {})[root.key] = root
    for rule in grouping.rules:
        what = f"rule {rule.name}"
        made = found.get(rule.name)
        if made:
            number = f"{len(made)} group{'s' if len(made) > 1 else ''}"
            yield Line(what, "does", f"{rule.about}: {number}, such as {_example(next(iter(made.values())))}")
        elif _is_there(rule, served):
            yield Line(what, "does", f"{rule.about}: served here, and nothing of it asks for a gang now")


def _is_there(rule: Rule, served: set[Kind]) -> bool:
    """Kinds that every cluster has are not worth a line as long as nobody asks."""
    return any(kind in served and kind.group not in {"batch", "apps", ""} for kind in rule.reads)


def _example(root: Group) -> str:
    spec = root.spec
    assert spec is not None
    leaves = [leaf for leaf in root.leaves() if leaf.spec is not None]
    pods = sum(leaf.members for leaf in leaves)
    name = f"{spec.namespace}/{spec.name} by {spec.said}"
    if spec.problem:
        return f"{name}: Misconfigured, {spec.problem}"
    if spec.composite:
        below = ", ".join(f"{leaf.spec.name} {_least(leaf)}" for leaf in leaves if leaf.spec is not None)
        return f"{name}: a tree of {below}; {pods} pods are there"
    return f"{name}: {_least(root)}; {pods} are there"


def _least(group: Group) -> str:
    minimum = group.spec.minimum if group.spec is not None else None
    return "pods one by one" if minimum is None else f"at least {minimum} pod{'s' if minimum > 1 else ''} together"
