"""The kinds that the scheduler reads: one table for the live watches, for a single look, and for snapshots.

In the order in which they must be told: whatever a pod rests on comes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kohort.api.releases import SCHEDULING_GROUP
from kohort.grouping.model import Kind
from kohort.grouping.owners.sizes import JOB
from kohort.kube.codec import identify
from kohort.scheduler.model import (
    DisruptionBudget,
    GroupObject,
    Job,
    Namespace,
    Node,
    Owning,
    Pod,
    Service,
    Workload,
    composite_key,
    lean,
)

if TYPE_CHECKING:
    from kohort.grouping.settings import Grouping
    from kohort.kube.discovery import Discovery
    from kohort.scheduler.core import SchedulerCore
    from kohort.scheduler.release import ServedRelease

Json = dict[str, Any]
Tell = Callable[["SchedulerCore", str, "Json | None"], None]


@dataclass(frozen=True, slots=True)
class Source:
    """A kind: what of it is read, and whom to tell."""

    name: str  # in a snapshot
    group: str
    kind: str
    decode: Any
    put: Callable[[SchedulerCore, Any], None]
    drop: Callable[[SchedulerCore, Any], None]
    needed: bool = False  # without it nothing can be scheduled
    default_spread: bool = False  # read for the profile's default spread constraints only
    optional: bool = False  # without the right to read it, it is left out
    keep: Callable[[Any], Any] | None = None  # what stays of an object

    @property
    def whole(self) -> bool:
        """Whether all of an object is read, as JSON."""
        return bool(self.decode is Json)


def _key(one: Any) -> str:
    return str(identify(one).key)


def _raw(name: str, group: str, kind: str, tell: Tell, *, optional: bool = False) -> Source:
    """Read as it is."""
    return Source(
        name,
        group,
        kind,
        Json,
        lambda core, one: tell(core, _key(one), one),
        lambda core, one: tell(core, _key(one), None),
        optional=optional,
    )


def _controller(name: str, group: str, kind: str) -> Source:
    of = Kind(group, kind)

    def put(core: SchedulerCore, one: Owning) -> None:
        core.cache.default_selectors.set_controller(kind, _key(one), one.spec.get("selector"))
        if of in core.cache.companion.settings.reads:
            core.cache.companion.put(of, one, f"{group}/v1")

    def drop(core: SchedulerCore, one: Owning) -> None:
        core.cache.default_selectors.set_controller(kind, _key(one), None)
        if of in core.cache.companion.settings.reads:
            core.cache.companion.drop(of, one.metadata.namespace, one.metadata.name)

    return Source(name, group, kind, Owning, put, drop, default_spread=True, optional=True)


def _drop_job(core: SchedulerCore, job: Job) -> None:
    core.cache.drop_job(job.metadata.uid)
    core.cache.companion.drop(JOB, job.metadata.namespace, job.metadata.name)


def resting(kind: Kind, api_version: str = "") -> Source:
    """A kind that only grouping reads."""

    def put(core: SchedulerCore, one: Owning) -> None:
        one.api_version = one.api_version or api_version
        core.cache.companion.put(kind, one, api_version)

    def drop(core: SchedulerCore, one: Owning) -> None:
        core.cache.companion.drop(kind, one.metadata.namespace, one.metadata.name)

    return Source(f"{kind.name.lower()}s.{kind.group}", kind.group, kind.name, Owning, put, drop, optional=True)


RULES: Final = _raw(
    "groupingrules",
    "kohort.dev",
    "GroupingRule",
    lambda core, key, body: core.cache.set_grouping_rule(key.rpartition("/")[2], body),
    optional=True,
)
SOURCES: Final = (
    Source(
        "nodes",
        "",
        "Node",
        Node,
        lambda core, one: core.cache.set_node(one),
        lambda core, one: core.cache.drop_node(one.metadata.name),
        needed=True,
    ),
    Source(
        "namespaces",
        "",
        "Namespace",
        Namespace,
        lambda core, one: core.cache.set_namespace(one.metadata.name, one.metadata.labels or {}),
        lambda core, one: core.cache.set_namespace(one.metadata.name, None),
    ),
    Source(
        "poddisruptionbudgets",
        "policy",
        "PodDisruptionBudget",
        DisruptionBudget,
        lambda core, one: core.cache.budgets.set(one),
        lambda core, one: core.cache.budgets.drop(_key(one)),
    ),
    _raw("storageclasses", "storage.k8s.io", "StorageClass", lambda c, k, body: c.cache.storage.set_class(k, body)),
    _raw("persistentvolumes", "", "PersistentVolume", lambda c, k, body: c.cache.storage.set_volume(k, body)),
    _raw("persistentvolumeclaims", "", "PersistentVolumeClaim", lambda c, k, body: c.cache.storage.set_claim(k, body)),
    _raw("resourceclaims", "resource.k8s.io", "ResourceClaim", lambda c, k, body: c.cache.storage.set_devices(k, body)),
    _raw("resourcequotas", "", "ResourceQuota", lambda c, k, body: c.cache.quotas.set(k, body), optional=True),
    Source(
        "services",
        "",
        "Service",
        Service,
        lambda core, one: core.cache.default_selectors.set_service(_key(one), one.spec.selector),
        lambda core, one: core.cache.default_selectors.set_service(_key(one), None),
        default_spread=True,
        optional=True,
    ),
    RULES,
    _controller("replicationcontrollers", "", "ReplicationController"),
    _controller("replicasets", "apps", "ReplicaSet"),
    _controller("statefulsets", "apps", "StatefulSet"),
    Source(
        "compositepodgroups",
        "scheduling.k8s.io",
        "CompositePodGroup",
        GroupObject,
        lambda core, one: core.cache.set_group(one, composite=True),
        lambda core, one: core.drop_group(composite_key(one.metadata.namespace, one.metadata.name)),
    ),
    Source(
        "podgroups",
        "scheduling.k8s.io",
        "PodGroup",
        GroupObject,
        lambda core, one: core.cache.set_group(one),
        lambda core, one: core.drop_group(_key(one)),
    ),
    Source(
        "workloads",
        "scheduling.k8s.io",
        "Workload",
        Workload,
        lambda core, one: core.cache.set_workload(one),
        lambda core, one: core.cache.drop_workload(_key(one)),
    ),
    Source(
        "jobs",
        "batch",
        "Job",
        Job,
        lambda core, one: core.cache.set_job(one),
        _drop_job,
        optional=True,
    ),
    Source(
        "pods",
        "",
        "Pod",
        Pod,
        lambda core, one: core.cache.set_pod(one),
        lambda core, one: core.drop_pod(one),
        needed=True,
        keep=lean,
    ),
)
_GROUPS: Final = frozenset({"CompositePodGroup", "PodGroup", "Workload"})  # in the version that the release says
_READ: Final = frozenset(Kind(one.group, one.kind) for one in SOURCES)


def for_grouping(grouping: Grouping) -> list[Source]:
    """The kinds that only grouping reads."""
    return [resting(kind) for kind in grouping.reads if kind not in _READ]


def all_sources(grouping: Grouping) -> list[Source]:
    """In the order in which they must be told."""
    return [*SOURCES[:-1], *for_grouping(grouping), SOURCES[-1]]


async def served(
    discovery: Discovery, release: ServedRelease, *, default_spread: bool, grouping: Grouping
) -> list[tuple[Source, str]]:
    """Those that a server has, with their apiVersion. `default_spread`: whether the profile spreads pods by default."""
    found: list[tuple[Source, str]] = []
    types = await discovery.all()
    for source in all_sources(grouping):
        kind = Kind(source.group, source.kind)
        if source.group == SCHEDULING_GROUP and source.kind in _GROUPS:
            version = release.versions.get(source.kind, "")
        else:
            eq_classes = (one for one in types if (one.group, one.kind) == (source.group, source.kind))
            version = next((one.api_version for one in eq_classes), "")
        if source.default_spread and not default_spread and kind not in grouping.reads:
            continue
        if version or source.needed:
            found.append((resting(kind, version) if kind not in _READ else source, version or "v1"))
    return found


def read_kinds(found: Iterable[Source], grouping: Grouping) -> set[Kind]:
    """Of those that grouping looks up, the ones that are read."""
    return {Kind(one.group, one.kind) for one in found} & set(grouping.reads)
