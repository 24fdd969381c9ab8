"""From a controller's tree of building blocks to templates: the resolution and compilation of KEP-6089 (spec job 5.3).

A controller describes each level of its workload as an Item: a default, what the user wrote there, and callbacks that
fill what only the controller knows. The builder checks the blocks, resolves them and compiles the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from kohort.api.errors import FieldError, at, forbidden, invalid
from kohort.api.kind import Context
from kohort.api.rules import Operation, check_value
from kohort.api.scheduling.blocks import COMPOSITE_POLICY, EMBEDDED
from kohort.api.schema import Node, Update, but
from kohort.gang import blocks
from kohort.gang.tree import Controller, Group, Owner, Plan, Template

Block = dict[str, Any]  # schedulingPolicy, schedulingConstraints, disruptionMode, resourceClaims

_LEAF: Mapping[str, Node] = EMBEDDED
_BRANCH: Mapping[str, Node] = {
    "schedulingPolicy": but(COMPOSITE_POLICY, update=Update.FROZEN),
    "schedulingConstraints": EMBEDDED["schedulingConstraints"],
    "disruptionMode": EMBEDDED["disruptionMode"],
}


class BuilderError(Exception):
    """A mistake of the controller that uses the builder, not of the user whose workload it compiles."""


@dataclass(slots=True)
class Config:
    """What applies to one level. `minimum` counts pods on a leaf and child groups on a branch; None is basic."""

    gang: bool = False
    minimum: int | None = None
    topology: str | None = None
    disruption: Any = None
    claims: tuple[Any, ...] = ()
    priority_class: str | None = None


Callback = Callable[[Config], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One level of a workload. With children it is a branch; `leaf` and `branch` are what the user wrote.

    `path` is where the block stands in the workload; `paths` where single members of it stand elsewhere.
    """

    name: str
    path: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)
    default: Config = field(default_factory=Config)
    leaf: Block | None = None
    branch: Block | None = None
    callbacks: tuple[Callback, ...] = ()
    children: tuple[Item, ...] = ()

    @property
    def block(self) -> Block:
        return (self.branch if self.children else self.leaf) or {}

    def place(self, member: str) -> str:
        return self.paths.get(member) or at(self.path, member)

    def walk(self) -> Iterator[Item]:
        yield self
        for child in self.children:
            yield from child.walk()


def check_tree(root: Item) -> None:
    """Raise for what only a caller can get wrong."""
    seen: set[str] = set()
    waiting: list[Any] = [root]
    while waiting:
        item = waiting.pop(0)
        if not isinstance(item, Item):
            raise BuilderError(f"a tree holds items, not {item!r}")
        if not item.name:
            raise BuilderError("an item of the tree has no name")
        if item.name in seen:
            raise BuilderError(f'two items of the tree are called "{item.name}"')
        if item.children and item.leaf is not None:
            raise BuilderError(f'item "{item.name}" has children, but the block of a leaf')
        if not item.children and item.branch is not None:
            raise BuilderError(f'item "{item.name}" has no children, but the block of a branch')
        seen.add(item.name)
        waiting += item.children


def resolve(item: Item) -> Config:
    """The default with whole fields replaced by what the user wrote, then completed. Nothing given is changed."""
    config, block = deepcopy(item.default), item.block
    policy = block.get("schedulingPolicy") or {}
    if policy.get("basic") is not None or policy.get("gang") is not None:
        config.gang = policy.get("gang") is not None
        config.minimum = blocks.explicit_minimum(block, _counter(item)) if config.gang else None
    config.topology = blocks.topology(block) or config.topology
    config.disruption = blocks.disruption(block) or config.disruption
    config.claims = blocks.claims(block) or config.claims
    for callback in item.callbacks:
        callback(config)
    return config


def compile_item(item: Item) -> Template:
    """The template of an item and of all beneath."""
    config = resolve(item)
    if config.gang and config.minimum is None:
        raise BuilderError(f'item "{item.name}" is a gang, and nothing says of how many')
    return Template(
        name=item.name,
        minimum=config.minimum if config.gang else None,
        topology=config.topology,
        disruption=config.disruption,
        claims=() if item.children else config.claims,
        priority_class=config.priority_class,
        children=tuple(compile_item(child) for child in item.children),
    )


def _counter(item: Item) -> str:
    return "minGroupCount" if item.children else "minCount"


@dataclass(slots=True)
class Builder:
    """Checks and compiles one workload. Made from an existing plan it only makes groups."""

    root: Item | None
    name: str
    namespace: str
    owner: Owner | None
    allowed_policies: Sequence[str] = ()
    allowed_modes: Sequence[str] = ()
    run_block_rules: bool = True
    ctx: Context = field(default_factory=Context)
    _built: Plan | None = None
    _existing: bool = False

    @classmethod
    def from_existing(cls, plan: Plan, owner: Owner) -> Builder:
        """For groups of a Workload that is there already."""
        return cls(None, plan.workload, plan.namespace, owner, _built=plan, _existing=True)

    def validate(self, old_root: Item | None = None) -> list[FieldError]:
        """What is wrong with the user's blocks; with `old_root`, also what may not have changed."""
        root = self._checked("validate")
        found: list[FieldError] = []
        for item, before in _pairs(root, old_root):
            if self.run_block_rules:
                found += _rules(item, before, self.ctx)
            found += self._allowed(item)
            found += _agrees(item)
        return found

    def build_workload(self) -> Plan:
        """The Workload without its groups. Asked twice, the same."""
        root = self._checked("compile")
        if self._built is None:
            owner = self._owner()
            group = owner.api_version.rpartition("/")[0]
            self._built = Plan(
                workload=self.name,
                namespace=self.namespace,
                controller=Controller(api_group=group, kind=owner.kind, name=owner.name),
                templates=(compile_item(root),),
                groups=(),
                owners=(owner,),
            )
        return self._built

    def new_pod_group(self, name: str, template: str, parent: str | None = None) -> Group:
        return self._group(name, template, parent, leaf=True)

    def new_composite_pod_group(self, name: str, template: str, parent: str | None = None) -> Group:
        return self._group(name, template, parent, leaf=False)

    def _group(self, name: str, template: str, parent: str | None, *, leaf: bool) -> Group:
        plan = self._built or self.build_workload()
        found = next((one for one in plan.walk() if one.name == template and one.is_leaf is leaf), None)
        if found is None:
            raise BuilderError(f'Workload "{self.name}" has no template "{template}" for a group of this sort')
        return Group(name=name, template=template, parent=parent, owners=(self._owner(),))

    def _owner(self) -> Owner:
        if self.owner is None:
            raise BuilderError(f'Workload "{self.name}" needs an owner')
        return self.owner

    def _checked(self, what: str) -> Item:
        if self._existing or self.root is None:
            raise BuilderError(f'Workload "{self.name}" exists: there is nothing to {what}')
        check_tree(self.root)
        return self.root

    def _allowed(self, item: Item) -> Iterator[FieldError]:
        block = item.block
        for member, allowed in (("schedulingPolicy", self.allowed_policies), ("disruptionMode", self.allowed_modes)):
            for variant in block.get(member) or {}:
                if block[member][variant] is not None and variant not in allowed:
                    words = ", ".join(f"`{word}`" for word in allowed) or "none"
                    yield forbidden(item.place(member), f"`{variant}` is not supported here; supported: {words}")


def _pairs(root: Item, old: Item | None) -> Iterator[tuple[Item, Item | None]]:
    """Each item with its predecessor: of the same name on the same level. One that moved counts as new."""
    before = old if old is not None and old.name == root.name else None
    yield root, before
    known = {child.name: child for child in before.children} if before is not None else {}
    for child in root.children:
        yield from _pairs(child, known.get(child.name))


def _rules(item: Item, old: Item | None, ctx: Context) -> Iterator[FieldError]:
    stored = old.block if old is not None else {}
    look = Operation(ctx, update=old is not None)
    for member, node in (_BRANCH if item.children else _LEAF).items():
        yield from check_value(node, item.block.get(member), item.place(member), look, stored.get(member))


def _agrees(item: Item) -> Iterator[FieldError]:
    """Pods that come and go one by one cannot be disrupted all together."""
    block, mode = item.block, blocks.disruption(item.block)
    if mode == "all" and not blocks.wants_gang(block, default=item.default.gang):
        text = "the disruptionMode `all` is not supported with the Basic scheduling policy"
        yield invalid(item.place("disruptionMode"), "", text)
