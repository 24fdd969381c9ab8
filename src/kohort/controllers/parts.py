"""What controllers read of objects that others may make large, and what beside it is small; the rest is not kept.

A controller that comes to read another member of a pod names it here: until then it is not there, in tests neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, json

from kohort.kube.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Named(Struct, rename="camel"):
    """All of the metadata but managedFields."""

    name: Any = UNSET
    generate_name: Any = UNSET
    namespace: Any = UNSET
    uid: Any = UNSET
    resource_version: Any = UNSET
    generation: Any = UNSET
    creation_timestamp: Any = UNSET
    deletion_timestamp: Any = UNSET
    deletion_grace_period_seconds: Any = UNSET
    labels: Any = UNSET
    annotations: Any = UNSET
    owner_references: Any = UNSET
    finalizers: Any = UNSET


# ---- pods


class _Port(Struct, rename="camel"):
    name: Any = UNSET
    container_port: Any = UNSET
    protocol: Any = UNSET


class _Container(Struct, rename="camel"):
    name: Any = UNSET
    restart_policy: Any = UNSET
    ports: Raw = Raw(b"")  # until they are read: then a list, or UNSET


_ports: Final = json.Decoder(list[_Port])


def _with_names(containers: list[_Container]) -> list[_Container]:
    """Services find ports by their names, also those of sidecars. No controller looks at other containers, of which
    there may be thousands."""
    found = [one for one in containers if b'"name"' in bytes(one.ports)]
    for one in found:
        named = [port for port in _ports.decode(one.ports) if port.name is not UNSET]
        one.ports = named or UNSET  # type: ignore[assignment]
    return found


class _Volume(Struct, rename="camel"):
    name: Any = UNSET
    persistent_volume_claim: Any = UNSET
    ephemeral: Any = UNSET

    @property
    def claims(self) -> bool:
        return self.persistent_volume_claim is not UNSET or self.ephemeral is not UNSET


class _Term(Struct, rename="camel"):
    match_fields: Any = UNSET


class _Required(Struct, rename="camel"):
    node_selector_terms: list[_Term] | UnsetType | None = UNSET


class _NodeAffinity(Struct, rename="camel"):
    required_during_scheduling_ignored_during_execution: _Required | UnsetType | None = UNSET


class _Affinity(Struct, rename="camel"):
    """By which a DaemonSet says for which node a pod is."""

    node_affinity: _NodeAffinity | UnsetType | None = UNSET


class _PodSpec(Struct, rename="camel"):
    node_name: Any = UNSET
    scheduler_name: Any = UNSET
    priority: Any = UNSET
    priority_class_name: Any = UNSET
    scheduling_group: Any = UNSET
    workload_ref: Any = UNSET
    scheduling_gates: Any = UNSET
    node_selector: Any = UNSET
    affinity: _Affinity | UnsetType | None = UNSET
    tolerations: Any = UNSET
    hostname: Any = UNSET
    subdomain: Any = UNSET
    host_network: Any = UNSET
    restart_policy: Any = UNSET
    termination_grace_period_seconds: Any = UNSET
    active_deadline_seconds: Any = UNSET
    readiness_gates: Any = UNSET
    containers: list[_Container] | UnsetType | None = UNSET
    init_containers: list[_Container] | UnsetType | None = UNSET
    volumes: list[_Volume] | UnsetType | None = UNSET
    resource_claims: Any = UNSET

    def __post_init__(self) -> None:
        if self.containers:
            self.containers = _with_names(self.containers) or UNSET
        if self.init_containers:
            self.init_containers = _with_names(self.init_containers) or UNSET
        if self.volumes:
            self.volumes = [one for one in self.volumes if one.claims] or UNSET


class Pod(Struct, rename="camel"):
    api_version: Any = UNSET
    kind: Any = UNSET
    metadata: _Named | UnsetType = UNSET
    spec: _PodSpec | UnsetType = UNSET
    status: Any = UNSET


_OF_KIND: Final = {("v1", "Pod"): Reading(Pod)}
IN_PART: Final = frozenset(_OF_KIND)  # written whole, such an object would lose what was not read


# ---- who it is


class _Controls(Struct):
    controller: Any = None


_controls: Final = json.Decoder(list[_Controls])
_owners: Final = json.Decoder(list[Raw])


def _controllers(references: Raw) -> list[dict[str, Any]]:
    """Of an object's owners the one that controls it: there may be twenty thousand others."""
    if b'"controller"' not in bytes(references):
        return []
    at = next((at for at, one in enumerate(_controls.decode(references)) if one.controller is True), None)
    return [] if at is None else [json.decode(_owners.decode(references)[at])]


class _Identity(Struct, rename="camel"):
    """An object's names, and who controls it: enough to see that it is a stranger's."""

    name: Any = UNSET
    namespace: Any = UNSET
    uid: Any = UNSET
    resource_version: Any = UNSET
    creation_timestamp: Any = UNSET
    deletion_timestamp: Any = UNSET
    owner_references: Raw = Raw(b"[]")  # until it is read: then a list, or UNSET

    def __post_init__(self) -> None:
        self.owner_references = _controllers(self.owner_references) or UNSET  # type: ignore[assignment]


class WhoItIs(Struct, rename="camel"):
    api_version: Any = UNSET
    kind: Any = UNSET
    metadata: _Identity | UnsetType = UNSET

    @property
    def controlled_by(self) -> object:
        """The kind of its controller."""
        owners: Any = self.metadata.owner_references if self.metadata is not UNSET else ()
        return owners[0].get("kind") if owners else None


def reading(api_version: str, kind: str, contents_of: Iterable[tuple[str, ...]]) -> Reading | None:
    """`contents_of`: of all who watch a kind. None: all of it is read."""
    if all(contents_of):
        kinds = frozenset(one for some in contents_of for one in some)
        return Reading(WhoItIs, lambda found: found.controlled_by in kinds)
    return _OF_KIND.get((api_version, kind))
