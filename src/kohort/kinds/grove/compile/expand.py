"""A PodCliqueSet written out: which gangs it has, and which PodCliques each holds (spec grove 1.9).

The base gang of a replica holds the standalone cliques and the first minAvailable replicas of every scaling group;
each further replica of a scaling group is a scaled gang of its own. Sizes that a person or an autoscaler has changed
on the children count, so the children's objects are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import namespace_or_default
from kohort.gang.compile import Lookup
from kohort.kinds.grove.compile import names


@dataclass(frozen=True, slots=True)
class Clique:
    """One PodClique to be."""

    name: str
    position: int  # of its template in the set
    template: dict[str, Any]
    replicas: int
    set_index: int
    group: str = ""  # name of its scaling group in the template
    group_name: str = ""  # name of the PodCliqueScalingGroup object
    group_index: int = 0

    @property
    def minimum(self) -> int:
        return int(self.template["spec"]["minAvailable"])


@dataclass(frozen=True, slots=True)
class Gang:
    """One PodGang to be. `base` is None for a base gang, and for a scaled one the gang that comes first."""

    name: str
    set_index: int
    cliques: tuple[Clique, ...]
    base: str | None = None
    group: str = ""  # the scaling group of a scaled gang


MAX_CLIQUES: Final = 10_000  # of one set; counts may be 2^31-1, and every gang of a set is written out in memory


class Sizes:
    """How many replicas the children have now; a child that does not exist yet has what the template says."""

    def __init__(self, lookup: Lookup, namespace: str) -> None:
        self._live = {
            (kind, obj["metadata"]["name"]): (obj.get("spec") or {}).get("replicas")
            for kind in ("PodClique", "PodCliqueScalingGroup")
            for obj in lookup.every(kind, namespace)
        }

    @property
    def largest(self) -> int:
        return max((int(found or 0) for (kind, _), found in self._live.items() if kind != "PodClique"), default=0)

    def of(self, kind: str, name: str, template: int) -> int:
        found = self._live.get((kind, name))
        return template if found is None else int(found)


class Expansion:
    """The gangs of a valid, defaulted PodCliqueSet."""

    def __init__(self, obj: Object, lookup: Lookup | None = None) -> None:
        self.obj = obj
        self.name: str = obj["metadata"]["name"]
        self.template: dict[str, Any] = obj["spec"]["template"]
        self._sizes = Sizes(lookup or Lookup(), namespace_or_default(obj))
        self._templates = {clique["name"]: (at, clique) for at, clique in enumerate(self.template["cliques"])}

    @cached_property
    def scaling_groups(self) -> list[dict[str, Any]]:
        return self.template.get("podCliqueScalingGroups") or []

    @cached_property
    def standalone(self) -> list[str]:
        members = {name for group in self.scaling_groups for name in group["cliqueNames"]}
        return [name for name in self._templates if name not in members]

    @property
    def size(self) -> int:
        """An upper bound of the number of PodCliques, known without writing them out."""
        members = (
            len(group["cliqueNames"]) * max(int(group["replicas"]), int(group["minAvailable"]), self._sizes.largest)
            for group in self.scaling_groups
        )
        return int(self.obj["spec"].get("replicas") or 0) * (len(self.standalone) + sum(members))

    @property
    def is_too_large(self) -> bool:
        return self.size > MAX_CLIQUES

    @cached_property
    def gangs(self) -> tuple[Gang, ...]:
        return tuple(gang for index in range(self.obj["spec"].get("replicas") or 0) for gang in self.replica(index))

    def replica(self, index: int) -> Iterator[Gang]:
        """The base gang of one replica of the set, then its scaled gangs."""
        base = names.base_gang(self.name, index)
        cliques = [self._standalone(index, name) for name in self.standalone]
        for group in self.scaling_groups:
            for replica in range(group["minAvailable"]):
                cliques += self._members(index, group, replica)
        yield Gang(base, index, tuple(cliques))
        for group in self.scaling_groups:
            name = names.scaling_group(self.name, index, group["name"])
            for replica in range(group["minAvailable"], self._group_replicas(name, group)):
                yield Gang(
                    names.scaled_gang(name, replica - group["minAvailable"]),
                    index,
                    tuple(self._members(index, group, replica)),
                    base,
                    group["name"],
                )

    def _group_replicas(self, name: str, group: dict[str, Any]) -> int:
        return self._sizes.of("PodCliqueScalingGroup", name, group["replicas"])

    def _standalone(self, index: int, name: str) -> Clique:
        position, template = self._templates[name]
        full = names.clique(self.name, index, name)
        return Clique(full, position, template, self._pods(full, template), index)

    def _members(self, index: int, group: dict[str, Any], replica: int) -> list[Clique]:
        owner = names.scaling_group(self.name, index, group["name"])
        exists = replica < self._group_replicas(owner, group)
        found = []
        for name in group["cliqueNames"]:
            position, template = self._templates[name]
            full = names.clique(owner, replica, name)
            pods = self._pods(full, template) if exists else 0
            found.append(Clique(full, position, template, pods, index, group["name"], owner, replica))
        return found

    def _pods(self, name: str, template: dict[str, Any]) -> int:
        return self._sizes.of("PodClique", name, template["spec"]["replicas"])
