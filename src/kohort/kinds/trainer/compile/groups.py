"""The plan of a TrainJob: the runtime's groups with sizes and names (spec trainjob 3.4, 3.5, 3.8, 3.9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kohort.api.objects import namespace_or_default
from kohort.gang import blocks
from kohort.gang.compile import CompileContext
from kohort.gang.stand_in import uid_of
from kohort.gang.tree import Controller, Disruption, Group, Member, Owner, Plan, Template
from kohort.kinds.jobset.api.reading import job_name
from kohort.kinds.trainer.api.constants import GROUP, pod_spec
from kohort.kinds.trainer.api.groups import Branch, Grouping, Leaf
from kohort.kinds.trainer.api.sequence import first_wave
from kohort.kinds.trainer.compile.draft import Draft
from kohort.kinds.trainer.compile.names import Namer


def plan_of(draft: Draft, grouping: Grouping, ctx: CompileContext) -> Plan:
    """The Workload is named like the job, and the job owns everything."""
    namespace = namespace_or_default(draft.job)
    planner = _Planner(draft, Namer(namespace, draft.name, uid_of(draft.job)), grouping)
    owners = (draft.owner, Owner(api_version=ctx.release.api_version, kind="Workload", name=draft.name))
    templates = tuple(planner.template(node, None) for node in grouping.roots)
    return Plan(
        workload=draft.name,
        namespace=namespace,
        controller=Controller(api_group=GROUP, kind="TrainJob", name=draft.name),
        templates=templates,
        groups=tuple(replace(group, owners=owners) for group in planner.groups()),
        members=tuple(planner.members()),
        owners=(draft.owner,),
        hashes_uid=ctx.release.has_pod_groups,  # the Workload is named like the job, groups are not
    )


class _Planner:
    """Sizes and names for one grouping."""

    def __init__(self, draft: Draft, namer: Namer, grouping: Grouping) -> None:
        self.draft, self.namer, self.grouping = draft, namer, grouping
        self._taken = {name for name in _names(grouping.roots) if name is not None}
        classes = {self.priority_class(leaf) for leaf in grouping.leaves}
        # The templates of a Workload must agree (1.37), groups need not: then only they say it (scenario 39).
        self.common_class = next(iter(classes)) if len(classes) == 1 else None
        self.agreed = len(classes) == 1

    def name(self, node: Leaf | Branch) -> str:
        return self.namer.root(self._taken) if node.name is None else self.namer.template(node.name)

    def priority_class(self, leaf: Leaf) -> str | None:
        """All members have the same, see the rules of groups."""
        value = pod_spec(self.draft.jobs[leaf.members[0]]).get("priorityClassName")
        return str(value) if value else None

    def template(self, node: Leaf | Branch, above: Disruption | None) -> Template:
        disruption = blocks.disruption(dict(node.block)) or ("all" if above == "all" else None)
        shared: dict[str, Any] = {
            "name": self.name(node),
            "topology": blocks.topology(dict(node.block)),
            "disruption": disruption,
            "priority_class": self.common_class,
        }
        gang = blocks.wants_gang(dict(node.block), default=True)
        if isinstance(node, Leaf):
            claims = blocks.claims(dict(node.block))
            return Template(minimum=self.minimum(node) if gang else None, claims=claims, **shared)
        children = tuple(self.template(child, disruption) for child in node.children)
        return Template(minimum=len(children) if gang else None, children=children, **shared)

    def minimum(self, leaf: Leaf) -> int:
        """The pods that exist without waiting for another member; Kubernetes wants at least 1."""
        wave = first_wave(self.draft.runtime, leaf.members)
        return max(1, sum(self.draft.replicas(index) * self.draft.counts[index] for index in wave))

    def groups(self) -> Iterator[Group]:
        """Level by level: a branch before what is beneath it, leaves of the last level last."""
        level: list[tuple[Leaf | Branch, str | None]] = [(node, None) for node in self.grouping.roots]
        while level:
            below: list[tuple[Leaf | Branch, str | None]] = []
            for node, parent in level:
                name = self.namer.group(self.name(node))
                own = self.priority_class(node) if isinstance(node, Leaf) and not self.agreed else None
                yield Group(name=name, template=self.name(node), parent=parent, priority_class=own)
                if isinstance(node, Branch):
                    below += [(child, name) for child in node.children]
            level = sorted(below, key=lambda found: isinstance(found[0], Leaf))

    def members(self) -> Iterator[Member]:
        """One for each Job; the path leads to the Pod template in the JobSet."""
        of = {index: self.namer.group(self.name(leaf)) for leaf in self.grouping.leaves for index in leaf.members}
        for index, job in enumerate(self.draft.jobs):
            path = ("spec", "replicatedJobs", index, "template", "spec", "template")
            replicas = self.draft.replicas(index)
            if not replicas:
                yield Member(source=f"ReplicatedJob {job.get('name')}", count=0, group=of.get(index), path=path)
            for replica in range(replicas):
                source = f"Job {job_name(self.draft.name, str(job.get('name')), replica)}"
                yield Member(source=source, count=self.draft.counts[index], group=of.get(index), path=path)


def _names(nodes: tuple[Leaf | Branch, ...]) -> Iterator[str | None]:
    for node in nodes:
        yield node.name
        if isinstance(node, Branch):
            yield from _names(node.children)


def group_of_job(plan: Plan) -> dict[int, str]:
    """ReplicatedJob (index) -> its group."""
    return {int(member.path[2]): member.group for member in plan.members if member.group is not None}
