"""Templates and groups of a JobSet's gangs: the tree as it is declared, and its instances in order of creation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kohort.gang import blocks
from kohort.gang.tree import Group, Owner, Template
from kohort.kinds.jobset.api import constants
from kohort.kinds.jobset.api.gangs import GangRequest


@dataclass(frozen=True, slots=True)
class Namer:
    """Names of templates and groups (spec jobset 3.4). A dot joins what cannot hold one, so no two names meet."""

    jobset: str

    def template(self, request: GangRequest) -> str:
        if request.children:
            return f"cpg-{request.name}" if request.name else "root"
        return f"pg-{request.name or self.jobset}"

    def group(self, request: GangRequest) -> str:
        whole = f"{'cpg' if request.children else 'pg'}-{self.jobset}"
        return f"{whole}.{request.name}" if request.name else whole


@dataclass(slots=True)
class Tree:
    """Collects the groups while templates are built: branches first, each before what hangs beneath it, leaves last."""

    namer: Namer
    labels: Mapping[str, str]
    owners: tuple[Owner, ...]
    _branches: list[Group] = field(default_factory=list)
    _leaves: list[Group] = field(default_factory=list)
    _shared: dict[int, str] = field(default_factory=dict)  # ReplicatedJob -> group of all its pods
    _single: dict[int, str] = field(default_factory=dict)  # ReplicatedJob -> what groups of its Jobs begin with

    @property
    def groups(self) -> tuple[Group, ...]:
        return (*self._branches, *self._leaves)

    def group_of(self, replicated_job: int, index: int) -> str | None:
        """The leaf group of the pods of one Job."""
        prefix = self._single.get(replicated_job)
        return self._shared.get(replicated_job) if prefix is None else f"{prefix}.{index}"

    def build(self, request: GangRequest, parent: str | None = None) -> Template:
        """The template of a request; its groups are noted on the way."""
        if not request.children:
            self._leaf(request, parent)
            return self._template(request, request.minimum, ())
        name = self.namer.group(request)
        self._branches.append(self._group(name, request, parent))
        children = tuple(self.build(child, name) for child in request.children)
        # Every direct child group counts: one for each ReplicatedJob, or one for each Job of it (3.5).
        below = sum(child.jobs[0].replicas if child.each_job else 1 for child in request.children)
        return self._template(request, below if request.gang else None, children)

    def _template(self, request: GangRequest, minimum: int | None, children: tuple[Template, ...]) -> Template:
        block = dict(request.block)
        return Template(
            name=self.namer.template(request),
            minimum=minimum,
            topology=blocks.topology(block),
            disruption=blocks.disruption(block),
            claims=blocks.claims(block),
            priority_class=_priority_class(request),
            children=children,
        )

    def _leaf(self, request: GangRequest, parent: str | None) -> None:
        name = self.namer.group(request)
        if not request.each_job:
            self._leaves.append(self._group(name, request, parent))
            self._shared |= {job.index: name for job in request.jobs}
            return
        job = request.jobs[0]
        self._single[job.index] = name
        template, labels = self.namer.template(request), {**self.labels, constants.REPLICATED_JOB_NAME: job.name}
        for index in range(job.replicas):
            key = str(index)
            group = Group(
                name=f"{name}.{key}",
                template=template,
                parent=parent,
                replica_key=key,
                owners=self.owners,
                labels={**labels, constants.JOB_INDEX: key},
            )
            self._leaves.append(group)

    def _group(self, name: str, request: GangRequest, parent: str | None) -> Group:
        labels = dict(self.labels)
        if request.name and len(request.jobs) == 1:
            labels[constants.REPLICATED_JOB_NAME] = request.jobs[0].name
        return Group(name=name, template=self.namer.template(request), parent=parent, owners=self.owners, labels=labels)


def _priority_class(request: GangRequest) -> str | None:
    """Of the pods; the rules see to it that those of one group have one class (V9)."""
    return next((str(found) for job in request.jobs if job.pods and (found := job.pod.get("priorityClassName"))), None)
