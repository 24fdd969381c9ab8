"""The runtime groups of a LeaderWorkerSet and the pods in them, for each shape of scheduling (spec lws 4.5, 4.8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kohort.api.kind import Object
from kohort.gang.tree import Group, Member, Owner, Template
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import ROLES, Level, Role, Shape, template_name
from kohort.kinds.leaderworkerset.compile.names import Instance, replica_group, role_group, set_group


@dataclass(frozen=True, slots=True)
class Site:
    """What all groups of one set have in common.

    `templates` are those the Workload holds; a group whose minimum differs from its template's says so.
    `parent` is a branch above that somebody else made (delegation).
    """

    obj: Object
    base: str
    owners: tuple[Owner, ...]
    templates: dict[str, Template]
    parent: str | None = None

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    def minimum(self, template: str, pods: int) -> int | None:
        """The minimum of an instance with that many pods, where it is not its template's."""
        stated = self.templates[template].minimum
        return None if stated is None or stated == pods else pods


def groups_of(shape: Shape, site: Site, instances: Sequence[Instance]) -> tuple[Group, ...]:
    """Root first, leaves last. A set without replicas has no groups."""
    if not instances:
        return ()
    if not shape.flat:
        return tuple(_tree(site, instances))
    level = shape.active[0]
    if level == "lws":
        return (whole_set(site, "lws"),)
    if level == "replica":
        return tuple(replica(site, one, "replica") for one in instances)
    return tuple(_role(site, one, role, None) for one in instances for role in ROLES)


def whole_set(site: Site, template: str) -> Group:
    labels = {constants.NAME: site.name, constants.LEVEL: "lws"}
    return Group(name=set_group(site.base), template=template, parent=site.parent, owners=site.owners, labels=labels)


def replica(site: Site, one: Instance, template: str) -> Group:
    return Group(
        name=replica_group(site.base, one),
        template=template,
        parent=site.parent,
        minimum=site.minimum(template, one.size),
        replica_key=one.key,
        owners=site.owners,
        labels=one.labels(site.name, "replica"),
    )


def _role(site: Site, one: Instance, role: Role, parent: str | None) -> Group:
    return Group(
        name=role_group(site.base, one, role),
        template=role,
        parent=parent,
        minimum=site.minimum(role, 1 if role == "leader" else one.size - 1),
        replica_key=one.key,
        owners=site.owners,
        labels=one.labels(site.name, "role") | {constants.ROLE: role},
    )


def _tree(site: Site, instances: Sequence[Instance]) -> Iterator[Group]:
    root = whole_set(site, "lws")
    yield root
    for one in instances:
        yield Group(
            name=replica_group(site.base, one),
            template="replica",
            parent=root.name,
            owners=site.owners,
            labels=one.labels(site.name, "replica"),
        )
    for one in instances:
        for role in ROLES:
            yield _role(site, one, role, replica_group(site.base, one))


# ---- pods


def members_of(level: Level, site: Site, instances: Sequence[Instance]) -> tuple[Member, ...]:
    """Which pods join which leaf; `level` is that of the leaves."""
    if level == "lws":
        return tuple(_everybody(site, instances))
    return tuple(member for one in instances for member in _group_members(level, site, one))


def _everybody(site: Site, instances: Sequence[Instance]) -> Iterator[Member]:
    pods = {"leader": len(instances), "worker": sum(one.size - 1 for one in instances)}
    for role in ROLES:
        if pods[role]:
            source = f"{role} pods of {site.name}"
            yield Member(source=source, count=pods[role], group=set_group(site.base), path=_path(site.obj, role))


def _group_members(level: Level, site: Site, one: Instance) -> Iterator[Member]:
    leader, last = f"{site.name}-{one.index}", one.size - 1
    sources = {"leader": (f"leader {leader}", 1), "worker": (_workers(leader, last), last)}
    for role in ROLES:
        source, count = sources[role]
        group = role_group(site.base, one, role) if level == "role" else replica_group(site.base, one)
        if count:
            yield Member(source=source, count=count, group=group, path=_path(site.obj, role))


def _workers(leader: str, last: int) -> str:
    return f"worker {leader}-1" if last == 1 else f"workers {leader}-1 to {leader}-{last}"


def _path(obj: Object, role: Role) -> tuple[str | int, ...]:
    return ("spec", "leaderWorkerTemplate", template_name(obj, role))
