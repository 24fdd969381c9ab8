"""What grouping is given, and what it answers.

A rule looks at a pod (`Subject`) and at objects that it rests on (`ObjectLister`), and answers with a `Place`: the tree
that the pod belongs to, and its leaf there. What a rule needs and cannot see yet is raised as `UnseenError`, what a pod
says that cannot be meant as `WrongError`.

What is made for each group of pods is a msgspec Struct, not a dataclass: one that is frozen takes ten times as long to
make, and a scheduler makes many. None of them refers to itself, so the collector of cycles need not know them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, Protocol

from msgspec import Struct

Json = dict[str, Any]
NOTHING: Final[Mapping[str, str]] = {}
LONGEST_EXPRESSION: Final = 1024  # characters of a minimum by CEL


class Level(IntEnum):
    """Precedence: the lower counts. `spec.schedulingGroup` stands above all of them, and no rule looks at it."""

    KOHORT = 0  # kohort.dev/pod-group
    OBJECT = 1  # a group object of another scheduler
    KEYS = 2  # labels and annotations of another scheduler
    OWNER = 3  # the kind of the owner


class Kind(Struct, frozen=True, gc=False):
    """A kind of objects that rules look up, whatever version of it is served."""

    group: str
    name: str

    def __str__(self) -> str:
        return self.name


class Reference(Struct, frozen=True, gc=False):
    """An owner, as ownerReferences name it."""

    api_version: str
    kind: str
    name: str
    uid: str = ""

    @property
    def of(self) -> Kind:
        return _kind(self.api_version, self.kind)


@lru_cache(maxsize=1024)
def _kind(api_version: str, kind: str) -> Kind:
    return Kind(api_version.rpartition("/")[0], kind)


class Subject(Struct, frozen=True, gc=False):
    """A pod as rules see it."""

    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner: Reference | None = None  # its controller

    def said(self, key: str) -> str:
        """By a label, or by an annotation; empty: by neither."""
        return self.labels.get(key) or self.annotations.get(key) or ""

    def where(self, key: str) -> str:
        """A key with its value, for people."""
        what = "label" if key in self.labels else "annotation"
        return f"{what} {key}={self.said(key)}"


class Thing(Struct, frozen=True, gc=False):
    """An object that pods rest on: an owner, or a group object of another scheduler."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner: Reference | None = None
    spec: Json = {}

    @property
    def reference(self) -> Reference:
        return Reference(self.api_version, self.kind, self.name, self.uid)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class ObjectLister(Protocol):
    """Objects, by kind and name."""

    def find(self, kind: Kind, namespace: str, name: str, *, wait: bool = True) -> Thing | None:
        """None: the kind may not be read here. Raises UnseenError if the object is not there; without `wait` that is
        only so for a while, and then None."""

    def definition(self, rule: str, namespace: str, name: str) -> str | None:
        """What some pod of an application said (`Rule.defines`)."""


class UnseenError(Exception):
    """A rule needs an object that is not there, or that nobody has told of yet."""

    def __init__(self, kind: str, namespace: str, name: str, *, wait: bool = True) -> None:
        super().__init__(f"{kind} {namespace}/{name} does not exist")
        self.kind, self.namespace, self.name, self.wait = kind, namespace, name, wait


class WrongError(Exception):
    """What a pod or its owner says cannot be meant: says what was found, and what is accepted."""


class Later(Struct, frozen=True, gc=False):
    """Pods that an operator makes once those of a group run. `template`: of the pods, as JSON; an empty schedulerName
    is that of the pods that they follow."""

    name: str  # of the group that they will be
    count: int
    template: bytes
    within: str = ""  # label of nodes: one value for them and for those that they follow


class GroupNode(Struct, frozen=True, gc=False):
    """A group of a tree. `minimum` None: its pods start one by one."""

    name: str
    minimum: int | None
    parent: str | None = None
    branch: bool = False  # it has groups below, and `minimum` counts them
    topology: str | None = None
    disrupt_all: bool = False
    asks: str = ""  # of the network, besides, in the words of kohort.dev/topology
    later: tuple[Later, ...] = ()  # of a root: what must find room beside it, though it is not there yet


class Place(Struct, frozen=True, gc=False):
    """Where a pod belongs. `said`: the key or the owner that says so."""

    rule: str
    level: Level
    namespace: str
    leaf: str
    nodes: tuple[GroupNode, ...]
    said: str
    owner: Reference | None = None
    queue: str = ""
    problem: str = ""

    @property
    def leaf_node(self) -> GroupNode:
        nodes = self.nodes
        return nodes[0] if len(nodes) == 1 else next(one for one in nodes if one.name == self.leaf)

    @property
    def by(self) -> str:
        return f"grouped by rule {self.rule} ({self.said})"


class Absent(Struct, frozen=True, gc=False):
    """A pod that waits for an object. `wait`: for ever; else it is soon taken for gone."""

    rule: str
    kind: str
    namespace: str
    name: str
    said: str
    wait: bool = True


Answer = Place | Absent | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A registration."""

    name: str
    about: str  # whom it is for, for people
    level: Level  # the best that it may answer with
    place: Callable[[Subject, ObjectLister], Place | None]
    keys: tuple[str, ...] = ()  # labels and annotations of pods by which it looks, and whose values it reads
    also: tuple[str, ...] = ()  # further ones that it reads
    zero_keys: Mapping[str, str] = field(default_factory=dict)  # labels of which it reads only whether they are 0,
    # and only of pods with this annotation (empty: of all)
    owners: tuple[Kind, ...] = ()  # kinds of controllers by which it looks
    reads: tuple[Kind, ...] = ()  # objects that it looks up
    defines: Callable[[Subject], tuple[str, str] | None] | None = None  # application and text that only one pod carries
    rank: str = ""  # label of pods that says their rank
    controller: str = ""  # of Kohort's own, which makes groups for the same kind where it runs
