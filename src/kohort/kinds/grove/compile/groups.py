"""PodGangs onto the Workload API: flat (one group per PodClique) or a tree (spec grove 3.3, 3.5).

Flat, each group is a gang of its own: nothing ties the groups of a PodGang together. In a tree a branch stands above
them, and every child of every branch is needed, since a base gang holds exactly the minimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.api.scheduling.topology import TOPOLOGY
from kohort.gang.compile import CompileContext
from kohort.gang.stand_in import stand_in, uid_of
from kohort.gang.tree import Controller, Group, Member, Owner, Plan, Template
from kohort.kinds.grove.api import backend, constants, options
from kohort.kinds.grove.compile import names
from kohort.kinds.grove.compile.expand import Clique, Expansion, Gang
from kohort.kinds.grove.compile.podgang import part_of
from kohort.kinds.grove.compile.topology import Pack, Topology


def plans(expansion: Expansion, topology: Topology, ctx: CompileContext) -> tuple[Plan, ...]:
    """One for each gang that has pods."""
    obj = expansion.obj
    live = {found["metadata"]["name"]: found for found in ctx.lookup.every("PodGang", namespace_or_default(obj))}
    return tuple(
        plan(obj, gang, _uid(live.get(gang.name), gang.name, obj), topology, ctx)
        for gang in expansion.gangs
        if gang.cliques
    )


def plan(obj: Object, gang: Gang, podgang_uid: str, topology: Topology, ctx: CompileContext) -> Plan:
    """Of one gang of a set."""
    priority = obj["spec"]["template"].get("priorityClassName") if backend.has_priorities(ctx) else None
    mapper = Mapper(obj, gang, podgang_uid, topology, priority or None)
    return mapper.tree() if options.is_tree(ctx) else mapper.flat()


def _uid(podgang: Object | None, name: str, obj: Object) -> str:
    if podgang is not None:
        return uid_of(podgang)
    return stand_in(constants.SCHEDULER_API_VERSION, "PodGang", {"namespace": namespace_or_default(obj), "name": name})


@dataclass(frozen=True, slots=True)
class Mapper:
    """One PodGang of one set. `priority_class` only where a group has a field for it."""

    obj: Object
    gang: Gang
    podgang_uid: str
    topology: Topology
    priority_class: str | None = None

    # ---- flat

    def flat(self) -> Plan:
        templates = tuple(self._leaf(clique.name, clique) for clique in self.gang.cliques)
        groups = tuple(self._runtime(clique.name, clique.name, None) for clique in self.gang.cliques)
        return self._plan(templates, groups)

    # ---- tree

    def tree(self) -> Plan:
        if len(self.gang.cliques) == 1 and len(self._keys()) <= 1:
            return self._collapsed()
        return self._plan((self._root(),), (*self._branches(), *self._leaves()))

    def _keys(self) -> list[str]:
        """All required keys on the way from the root to the only group."""
        clique = self.gang.cliques[0]
        found = [self.topology.of_gang(self.gang), self.topology.pack(clique.template.get("topologyConstraint"))]
        if self.gang.base is None:
            found.append(self.topology.of_group(clique.group))
        return sorted({pack.required for pack in found if pack.required})

    def _collapsed(self) -> Plan:
        """A single group needs no branch above it; the key, wherever it was asked for, becomes its own."""
        clique = self.gang.cliques[0]
        template = names.clique_template(clique.template["name"])
        leaf = self._leaf(template, clique, topology=next(iter(self._keys()), None))
        packs = [self.topology.of_gang(self.gang), self.topology.pack(clique.template.get("topologyConstraint"))]
        if self.gang.base is None:
            packs.append(self.topology.of_group(clique.group))
        return self._plan((leaf,), (self._runtime(clique.name, template, None, packs),))

    def _root(self) -> Template:
        leaves = tuple(self._structural(clique) for clique in self.gang.cliques if self._under_root(clique))
        branches = tuple(self._scaling_group(members) for members in self._scaling_groups().values())
        children = (*leaves, *branches)
        return self._branch(names.ROOT_TEMPLATE, len(children), self.topology.of_gang(self.gang).required, children)

    def _scaling_group(self, members: list[Clique]) -> Template:
        """One template serves all replicas, so eight entries of a list mean structure, not size."""
        group = members[0].group
        leaves = tuple(self._structural(clique) for clique in members if clique.group_index == 0)
        replica = self._branch(
            names.replica_template(group), len(leaves), self.topology.of_group(group).required, leaves
        )
        replicas = len({clique.group_index for clique in members})  # a base gang holds minAvailable of them
        return self._branch(names.scaling_group_template(group), replicas, "", (replica,))

    def _under_root(self, clique: Clique) -> bool:
        """In a scaled gang the root plays the part of the replica."""
        return not clique.group or self.gang.base is not None

    def _scaling_groups(self) -> dict[str, list[Clique]]:
        found: dict[str, list[Clique]] = {}
        for clique in self.gang.cliques:
            if not self._under_root(clique):
                found.setdefault(clique.group_name, []).append(clique)
        return found

    def _branches(self) -> list[Group]:
        root = self.gang.name
        wish = _wish([self.topology.of_gang(self.gang)])
        found = [self._group(root, names.ROOT_TEMPLATE, None, "compositepodgroup", wish)]
        for name, members in self._scaling_groups().items():
            above = names.runtime(root, name)
            group = members[0].group
            found.append(self._group(above, names.scaling_group_template(group), root, "compositepodgroup"))
            for index in dict.fromkeys(clique.group_index for clique in members):
                replica = names.runtime(root, names.replica(name, index))
                wish = _wish([self.topology.of_group(group)])
                found.append(self._group(replica, names.replica_template(group), above, "compositepodgroup", wish))
        return found

    def _leaves(self) -> list[Group]:
        return [
            self._runtime(
                clique.name,
                names.clique_template(clique.template["name"]),
                self._parent(clique),
                [self.topology.pack(clique.template.get("topologyConstraint"))],
            )
            for clique in self.gang.cliques
        ]

    def _parent(self, clique: Clique) -> str:
        if self._under_root(clique):
            return self.gang.name
        return names.runtime(self.gang.name, names.replica(clique.group_name, clique.group_index))

    # ---- both

    def _structural(self, clique: Clique) -> Template:
        own = self.topology.pack(clique.template.get("topologyConstraint")).required
        return self._leaf(names.clique_template(clique.template["name"]), clique, topology=own or None)

    def _leaf(self, name: str, clique: Clique, topology: str | None = None) -> Template:
        return Template(name=name, minimum=clique.minimum, topology=topology, priority_class=self.priority_class)

    def _branch(self, name: str, minimum: int, key: str, children: tuple[Template, ...]) -> Template:
        return Template(
            name=name,
            minimum=minimum,
            topology=key or None,
            priority_class=self.priority_class,
            children=children,
        )

    def _runtime(self, name: str, template: str, parent: str | None, packs: Sequence[Pack] = ()) -> Group:
        return self._group(names.runtime(self.gang.name, name), template, parent, "podgroup", _wish(packs))

    def _group(
        self, name: str, template: str, parent: str | None, component: str, wish: Mapping[str, str] | None = None
    ) -> Group:
        return Group(
            name=name,
            template=template,
            parent=parent,
            owners=(self._owner(),),
            labels=self._labels(component),
            annotations=wish or {},
        )

    def _labels(self, component: str) -> dict[str, str]:
        return {**part_of(self.obj, component), constants.PODGANG: self.gang.name}

    def _owner(self) -> Owner:
        return Owner(
            api_version=constants.SCHEDULER_API_VERSION,
            kind="PodGang",
            name=self.gang.name,
            uid=self.podgang_uid,
            controller=True,
            block_deletion=True,
        )

    def _plan(self, templates: tuple[Template, ...], groups: tuple[Group, ...]) -> Plan:
        return Plan(
            workload=self.gang.name,
            namespace=namespace_or_default(self.obj),
            controller=Controller(api_group=constants.GROUP, kind="PodCliqueSet", name=self.obj["metadata"]["name"]),
            templates=templates,
            groups=groups,
            members=tuple(self._member(clique) for clique in self.gang.cliques),
            owners=(self._owner(),),
            labels=self._labels("workload"),
        )

    def _member(self, clique: Clique) -> Member:
        return Member(
            source=f"PodClique {clique.name}",
            count=clique.replicas,
            group=names.runtime(self.gang.name, clique.name),
            path=("spec", "template", "cliques", clique.position, "spec", "podSpec"),
        )


def _wish(packs: Sequence[Pack]) -> dict[str, str]:
    """What is preferred, which the Workload API has no field for: our scheduler reads it from the group."""
    keys = dict.fromkeys(pack.preferred for pack in packs if pack.preferred)
    return {TOPOLOGY: ",".join(f"{key}=preferred" for key in keys)} if keys else {}
