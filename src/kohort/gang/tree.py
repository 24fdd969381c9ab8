"""The plan: one tree of groups for every workload, whatever its kind and whatever the cluster serves.

A plan says three things: the templates (what a Workload object holds), the groups (the instances of those templates,
each a PodGroup or CompositePodGroup at run time) and the members (which pods belong to which leaf group).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

MAX_DEPTH: Final = 4  # levels, the leaf level included (spec workload-api 3.1)
MAX_WIDTH: Final = 8  # entries of one template list
MAX_CLAIMS: Final = 4

Disruption = Literal["single", "all"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A resource claim that a group shares. Exactly one of the two names is set."""

    name: str
    claim: str | None = None
    template: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What a group is like.

    `minimum` None means basic; a number means gang: so many pods for a leaf, so many child groups for a branch.
    `children` empty: a leaf (PodGroup). Otherwise a branch (CompositePodGroup).
    """

    name: str
    minimum: int | None = None
    topology: str | None = None  # label key: all pods beneath in one domain of it
    disruption: Disruption | None = None
    claims: tuple[Claim, ...] = ()
    priority_class: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    children: tuple[Template, ...] = ()

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def is_gang(self) -> bool:
        return self.minimum is not None

    def walk(self) -> Iterator[Template]:
        """This template and all beneath, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def depth(self) -> int:
        return 1 + max((child.depth for child in self.children), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An ownerReference. `uid` empty: not known before the object exists (the Workload of the same plan)."""

    api_version: str
    kind: str
    name: str
    uid: str = ""
    controller: bool = False
    block_deletion: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group at run time: one instance of a template."""

    name: str  # object name from 1.36 on
    template: str
    parent: str | None = None  # name of the branch above
    minimum: int | None = None  # where it differs from the template's (a resized instance)
    priority_class: str | None = None  # where the templates, which must all agree on 1.37, cannot say it
    replica_key: str | None = None  # tells instances of one template apart on 1.35
    owners: tuple[Owner, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Pods that join a leaf group.

    `source` names them for people ("Job aurora-wrk-0"); `path` is where their pod template stands in the workload
    object, so that a controller can write the link there; `group` None: these pods stay ungrouped.
    """

    source: str
    count: int
    group: str | None
    path: tuple[str | int, ...] = ()
    job: str = field(default="", compare=False)  # name of the Job that makes them, if it is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Workload.spec.controllerRef."""

    api_group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One Workload with its groups and members. `own_workload` False: the Workload is somebody else's (delegation)."""

    workload: str  # name of the Workload object
    namespace: str
    controller: Controller | None
    templates: tuple[Template, ...]
    groups: tuple[Group, ...]  # root first, leaves last: the order of creation
    members: tuple[Member, ...] = ()
    owners: tuple[Owner, ...] = ()  # of the Workload
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    own_workload: bool = True
    hashes_uid: bool = field(default=False, compare=False)  # names of its objects hold a hash of the owner's uid

    def walk(self) -> Iterator[Template]:
        for template in self.templates:
            yield from template.walk()

    def template(self, name: str) -> Template:
        return next(template for template in self.walk() if template.name == name)

    def group(self, name: str) -> Group:
        return next(group for group in self.groups if group.name == name)

    @property
    def roots(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.parent is None)

    def children(self, name: str) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.parent == name)

    @property
    def is_tree(self) -> bool:
        """Whether any level above the leaves exists."""
        return any(not template.is_leaf for template in self.templates)

    def minimum(self, group: Group) -> int | None:
        """The minimum in force for an instance."""
        return group.minimum if group.minimum is not None else self.template(group.template).minimum


Labels = Mapping[str, str]
Json = dict[str, Any]
