"""Topology constraints: from the domains of a ClusterTopologyBinding to node label keys (spec grove 1.10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kohort.api.errors import FieldError
from kohort.api.kind import Object
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.api import options, parts
from kohort.kinds.grove.api import topology as validation
from kohort.kinds.grove.compile.expand import Gang


@dataclass(frozen=True, slots=True)
class Pack:
    """Label keys; empty where there is none."""

    required: str = ""
    preferred: str = ""

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred)


NONE = Pack()


@dataclass(frozen=True, slots=True)
class Topology:
    """The translation for one set: what each level asks for."""

    name: str = ""  # of the binding
    keys: dict[str, str] = field(default_factory=dict)
    of_set: dict[str, Any] | None = None
    of_groups: dict[str, dict[str, Any]] = field(default_factory=dict)

    def pack(self, constraint: dict[str, Any] | None) -> Pack:
        """A domain that the binding does not have asks for nothing."""
        return Pack(
            self.keys.get(parts.required_domain(constraint), ""), self.keys.get(parts.preferred_domain(constraint), "")
        )

    def of_gang(self, gang: Gang) -> Pack:
        """A scaled gang takes its scaling group's constraint instead of the set's, where there is one."""
        return self.pack(self.of_groups.get(gang.group) or self.of_set)

    def of_group(self, name: str) -> Pack:
        return self.pack(self.of_groups.get(name))

    def constrains(self, group: str) -> bool:
        return bool(self.keys) and group in self.of_groups


def resolve(
    obj: Object, ctx: CompileContext, *, existing: bool = False
) -> tuple[Topology, list[FieldError], list[str]]:
    """The translation, what is wrong with the constraints, and what is unwise about them.

    `existing`: a set that is there already does without what its binding has lost; a new one is refused.
    """
    name = validation.topology_name(obj)
    if not name or not ctx.on(options.TOPOLOGY):
        return Topology(), [], []
    binding = ctx.lookup.find("ClusterTopologyBinding", name)
    errors = [] if existing else validation.check_binding(obj, binding)
    if binding is None or errors:
        return Topology(), errors, []
    found = Topology(
        name,
        validation.levels(binding),
        parts.template(obj).get("topologyConstraint"),
        {
            group["name"]: group["topologyConstraint"]
            for _, group in parts.scaling_groups(obj)
            if group.get("topologyConstraint")
        },
    )
    return found, [], validation.redundant(obj, binding)
