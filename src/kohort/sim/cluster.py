"""Cluster files: pools of nodes with racks, zones, GPUs and taints, as people write them; and the Nodes they mean.

pools:
- name: gpu
  count: 64
  capacity: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 8}
  topology:                      # outermost first; each level divides the one above it evenly
  - {key: topology.kubernetes.io/zone, count: 2}
  - {key: example.com/rack, count: 4}
  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
  labels: {tier: training}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import msgspec

from kohort.api import formats
from kohort.api.errors import FieldError, invalid, not_supported, required
from kohort.api.kind import Object
from kohort.yamlread import load

POOL: Final = "kohort.dev/pool"
CREATED_BY: Final = "kohort.dev/created-by"  # the command that made a node, and may take it away again
SPEC_HASH: Final = "kohort.dev/spec-hash"  # of the node as it was asked for
PLAYED_BY: Final = "kohort.dev/played-by"  # the process that plays its kubelet; without: that of the server
HOSTNAME: Final = "kubernetes.io/hostname"
DEFAULT_CAPACITY: Final = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
MAX_NODES: Final = 100_000
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MEMBERS: Final = ("name", "count", "capacity", "topology", "taints", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of topology: so many domains in each domain of the level above."""

    key: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    name: str
    count: int
    capacity: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_CAPACITY))
    topology: tuple[Level, ...] = ()
    taints: tuple[Mapping[str, str], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    created_by: str = ""
    played_by: str = ""

    def nodes(self) -> Iterator[Object]:
        """In order: neighbours share racks."""
        width = len(str(max(0, self.count - 1)))
        for number in range(self.count):
            yield self._node(f"{self.name}-{number:0{width}}", self._domains(number))

    def _domains(self, number: int) -> dict[str, str]:
        """Nodes are dealt out in equal shares, the first ones to the first domain."""
        found: dict[str, str] = {}
        place, room, prefix = number, self.count, ""
        for level in self.topology:
            domain = place * level.count // room
            first = -(-domain * room // level.count)
            place, room = place - first, -(-(domain + 1) * room // level.count) - first
            prefix += f"{'-' if prefix else ''}{level.key.rpartition('/')[2]}-{domain}"
            found[level.key] = prefix
        return found

    def _node(self, name: str, domains: Mapping[str, str]) -> Object:
        labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", POOL: self.name}
        spec = {"taints": [dict(taint) for taint in self.taints]} if self.taints else {}
        given = {**labels, **domains, **self.labels}
        annotations = {**self.annotations, **self._marks(given, spec)}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": given,
                **({"annotations": annotations} if annotations else {}),
            },
            "spec": spec,
            "status": {"capacity": dict(self.capacity), "allocatable": dict(self.capacity)},
        }

    def _marks(self, labels: Mapping[str, str], spec: Object) -> dict[str, str]:
        """By which a later start knows a node of its own, and whether it is still as it is asked for."""
        if not self.created_by:
            return {}
        asked = msgspec.json.encode([labels, dict(self.annotations), spec, dict(self.capacity)], order="sorted")
        marks = {CREATED_BY: self.created_by, SPEC_HASH: blake2b(asked, digest_size=8).hexdigest()}
        return {**marks, PLAYED_BY: self.played_by} if self.played_by else marks


class ClusterFileError(ValueError):
    """All that is wrong with a cluster file."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, errors)))


def plain(count: int) -> tuple[Pool, ...]:
    """So many equal nodes in one pool, when nobody says more."""
    return (Pool(name="node", count=count),) if count else ()


def read(text: str) -> tuple[Pool, ...]:
    """The pools of a cluster file; ClusterFileError tells everything that is wrong."""
    whole, _ = load(text, 1)
    if not isinstance(whole, dict):
        raise ClusterFileError([invalid("pools", whole, "a cluster file is one YAML document with a list of pools")])
    errors = [invalid(str(name), whole[name], "not known; accepted is pools") for name in whole if name != "pools"]
    pools: list[Pool] = []
    given = whole.get("pools")
    if not isinstance(given, list) or not given:
        errors.append(required("pools", "at least one pool of nodes"))
        given = []
    for number, one in enumerate(given):
        pool = _pool(one, f"pools[{number}]", errors)
        if pool is not None:
            pools.append(pool)
    names = [pool.name for pool in pools]
    errors += [
        invalid("pools", name, "this name is given twice") for name in sorted({n for n in names if names.count(n) > 1})
    ]
    if sum(pool.count for pool in pools) > MAX_NODES:
        errors.append(invalid("pools", sum(pool.count for pool in pools), f"at most {MAX_NODES} nodes in all"))
    if errors:
        raise ClusterFileError(errors)
    return tuple(pools)


def _pool(given: Any, path: str, errors: list[FieldError]) -> Pool | None:
    before = len(errors)
    if not isinstance(given, dict):
        errors.append(invalid(path, given, f"a mapping with {', '.join(_MEMBERS)}"))
        return None
    errors += [
        invalid(f"{path}.{name}", given[name], f"not known; accepted are {', '.join(_MEMBERS)}")
        for name in given
        if name not in _MEMBERS
    ]
    name, count = given.get("name"), given.get("count")
    if not isinstance(name, str) or formats.subdomain(name):
        errors.append(
            invalid(f"{path}.name", name, "names of nodes begin with it: lower case letters, digits, - and .")
        )
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        errors.append(invalid(f"{path}.count", count, "the number of nodes, 0 or more"))
    maps = {
        member: _strings(given.get(member), f"{path}.{member}", errors)
        for member in ("capacity", "labels", "annotations")
    }
    topology = tuple(_levels(given.get("topology"), f"{path}.topology", errors))
    taints = tuple(_taints(given.get("taints"), f"{path}.taints", errors))
    if len(errors) > before:
        return None
    return Pool(
        name=str(name),
        count=int(count or 0),
        capacity={**DEFAULT_CAPACITY, **maps["capacity"]},
        topology=topology,
        taints=taints,
        labels=maps["labels"],
        annotations=maps["annotations"],
    )


def _strings(given: Any, path: str, errors: list[FieldError]) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or any(isinstance(value, dict | list) for value in given.values()):
        errors.append(invalid(path, given, "a mapping of names to values"))
        return {}
    return {str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def _levels(given: Any, path: str, errors: list[FieldError]) -> Iterator[Level]:
    for number, one in enumerate(_list(given, path, errors)):
        place = f"{path}[{number}]"
        key, count = (one.get("key"), one.get("count")) if isinstance(one, dict) else (None, None)
        if not isinstance(key, str) or formats.label_key(key):
            errors.append(invalid(f"{place}.key", key, "the label that names the domain"))
        elif not isinstance(count, int) or isinstance(count, bool) or count < 1:
            errors.append(invalid(f"{place}.count", count, "how many domains in each one above, 1 or more"))
        else:
            yield Level(key, count)


def _taints(given: Any, path: str, errors: list[FieldError]) -> Iterator[Mapping[str, str]]:
    for number, one in enumerate(_list(given, path, errors)):
        place = f"{path}[{number}]"
        if not isinstance(one, dict) or not isinstance(one.get("key"), str):
            errors.append(required(f"{place}.key", "a taint has a key and an effect"))
        elif one.get("effect") not in _EFFECTS:
            errors.append(not_supported(f"{place}.effect", one.get("effect"), _EFFECTS))
        else:
            yield {member: str(one[member]) for member in ("key", "value", "effect") if one.get(member) is not None}


def _list(given: Any, path: str, errors: list[FieldError]) -> list[Any]:
    if given is None or isinstance(given, list):
        return given or []
    errors.append(invalid(path, given, "a list"))
    return []
