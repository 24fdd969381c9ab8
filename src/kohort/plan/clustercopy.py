"""The objects of a cluster that decide whether something starts: read from its API, or from a snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kohort.api.bundle import bundles
from kohort.api.releases import NEWEST
from kohort.apimachinery import times
from kohort.kube.errors import ApiError
from kohort.scheduler.release import discover
from kohort.scheduler.snapshot import VERSION, SnapshotError

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.kube.client import Client

# (name in a snapshot, API group, kind), in the order in which they are needed. Jobs and other workloads are left out:
# their pods and groups are there, and nobody is to make others for them.
_NAMESPACES: Final = ("namespaces", "", "Namespace")
_KINDS: Final = (
    ("priorityclasses", "scheduling.k8s.io", "PriorityClass"),
    ("runtimeclasses", "node.k8s.io", "RuntimeClass"),
    ("storageclasses", "storage.k8s.io", "StorageClass"),
    ("limitranges", "", "LimitRange"),
    ("resourcequotas", "", "ResourceQuota"),
    ("poddisruptionbudgets", "policy", "PodDisruptionBudget"),
    ("persistentvolumes", "", "PersistentVolume"),
    ("persistentvolumeclaims", "", "PersistentVolumeClaim"),
    ("resourceclaims", "resource.k8s.io", "ResourceClaim"),
    ("workloads", "scheduling.k8s.io", "Workload"),
    ("compositepodgroups", "scheduling.k8s.io", "CompositePodGroup"),
    ("podgroups", "scheduling.k8s.io", "PodGroup"),
    ("nodes", "", "Node"),
    ("pods", "", "Pod"),
)
_NEEDED: Final = frozenset({"nodes", "pods"})
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def kinds() -> Iterator[tuple[str, str, str]]:
    """Kubernetes' own, and what workloads name by the bundles of their kinds: runtimes, topology bindings."""
    yield _NAMESPACES
    for group, kind in (one for bundle in bundles() for one in bundle.referenced):
        yield f"{kind.lower()}s", group, kind
    yield from _KINDS


@dataclass(frozen=True, slots=True)
class ClusterCopy:
    """`objects`: by their name in a snapshot; `unread`: kinds that this user may not list, and what the server said.

    `taken`: when. What waits has waited until then, and not until somebody asks.
    """

    minor: str
    objects: Mapping[str, list[Object]]
    unread: list[str] = field(default_factory=list)
    taken: datetime = field(default_factory=lambda: datetime.now(UTC))

    def of(self, name: str) -> list[Object]:
        return self.objects.get(name, [])

    def pods(self) -> Iterable[Object]:
        """Those that have not ended: others take nothing."""
        return (pod for pod in self.of("pods") if (pod.get("status") or {}).get("phase") not in _ENDED)


async def read_cluster(client: Client) -> ClusterCopy:
    release = await discover(client.discovery)
    types = {(one.group, one.kind): one for one in reversed(await client.discovery.all())}  # the preferred version wins
    unread: list[str] = []

    async def read(name: str, group: str, kind: str) -> tuple[str, list[Object]]:
        version = release.versions.get(kind, "")
        type_ = types.get((group, kind))
        if type_ is None and not version:
            return name, []
        resource = client.kind(version, kind) if version else client.resource(type_ or kind)
        try:
            return name, (await resource.list()).items
        except ApiError as error:
            if name in _NEEDED or error.code not in {401, 403, 404}:
                raise
            unread.append(f"{name}: {error.message or error}")
            return name, []

    found = dict(await asyncio.gather(*(read(*one) for one in kinds())))
    return ClusterCopy(release.minor or NEWEST, found, unread, client.clock.now())


def read_snapshot(document: object) -> ClusterCopy:
    """A `/debug/state`: pods and groups are cut to what the scheduler reads, which is what is needed."""
    if not isinstance(document, dict) or not isinstance(document.get("objects"), dict):
        raise SnapshotError("not a snapshot: a JSON object with version and objects is wanted")
    if document.get("version") != VERSION:
        raise SnapshotError(f"version: found {document.get('version')!r}, {VERSION} is known")
    objects: dict[str, Any] = document["objects"]
    for name, items in objects.items():
        if not isinstance(items, list) or not all(isinstance(one, dict) and "metadata" in one for one in items):
            raise SnapshotError(f"objects.{name}: a list of objects with metadata is wanted")
    taken = times.parse(document.get("time")) or _newest(objects.get("pods", ())) or datetime.now(UTC)
    return ClusterCopy(str(document.get("minor") or NEWEST), _without_nulls(objects), taken=taken)


def _newest(pods: Iterable[Object]) -> datetime | None:
    """For snapshots that do not say when they were taken."""
    created = (times.parse(pod["metadata"].get("creationTimestamp")) for pod in pods)
    return max((moment for moment in created if moment is not None), default=None)


def _without_nulls(value: Any) -> Any:
    """The API has no nulls: what is not there is left out."""
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def described(nodes: Iterable[Object], minor: str = NEWEST) -> ClusterCopy:
    """An empty cluster of these nodes."""
    return ClusterCopy(minor, {"nodes": list(nodes)})
