"""The three Kubernetes releases that have a Workload API: what each minor serves, and which gates it knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEDULING_GROUP: Final = "scheduling.k8s.io"


class Gate(StrEnum):
    """Feature gates of Kubernetes that this project reads."""

    GENERIC_WORKLOAD = "GenericWorkload"
    GANG_SCHEDULING = "GangScheduling"
    PREEMPTION = "WorkloadAwarePreemption"
    TOPOLOGY = "TopologyAwareWorkloadScheduling"
    CLAIMS = "DRAWorkloadResourceClaims"
    JOB = "WorkloadWithJob"
    COMPOSITE = "CompositePodGroup"
    PREEMPTION_POLICY = "PodGroupPreemptionPolicy"
    EVICTION_REQUEST = "EvictionRequestAPI"


@dataclass(frozen=True, slots=True)
class Release:
    """One Kubernetes minor as the Workload API sees it."""

    minor: str
    workload_version: str  # of Workload and PodGroup
    composite_version: str | None  # of CompositePodGroup
    pod_field: str  # the member of a pod's spec that names its group
    scheduled_condition: str | None  # of PodGroup.status
    gates: Mapping[Gate, tuple[Gate, ...]]  # known gates and what each requires

    @property
    def api_version(self) -> str:
        return f"{SCHEDULING_GROUP}/{self.workload_version}"

    @property
    def composite_api_version(self) -> str | None:
        return f"{SCHEDULING_GROUP}/{self.composite_version}" if self.composite_version else None

    @property
    def has_pod_groups(self) -> bool:
        """Whether groups are objects of their own (from 1.36 on)."""
        return self.workload_version != "v1alpha1"

    @property
    def has_composites(self) -> bool:
        return self.composite_version is not None

    @property
    def min_count_mutable(self) -> bool:
        return self.workload_version not in {"v1alpha1", "v1alpha2"}


_G = Gate
RELEASES: Final[Mapping[str, Release]] = {
    "1.35": Release(
        "1.35",
        "v1alpha1",
        None,
        "workloadRef",
        None,
        {_G.GENERIC_WORKLOAD: (), _G.GANG_SCHEDULING: (_G.GENERIC_WORKLOAD,)},
    ),
    "1.36": Release(
        "1.36",
        "v1alpha2",
        None,
        "schedulingGroup",
        "PodGroupScheduled",
        {
            _G.GENERIC_WORKLOAD: (),
            _G.GANG_SCHEDULING: (_G.GENERIC_WORKLOAD,),
            _G.PREEMPTION: (_G.GANG_SCHEDULING,),
            _G.TOPOLOGY: (_G.GENERIC_WORKLOAD,),
            _G.CLAIMS: (_G.GENERIC_WORKLOAD,),
            _G.JOB: (_G.GENERIC_WORKLOAD,),
        },
    ),
    "1.37": Release(
        "1.37",
        "v1beta1",
        "v1alpha3",
        "schedulingGroup",
        "PodGroupInitiallyScheduled",
        {
            _G.GENERIC_WORKLOAD: (),
            _G.TOPOLOGY: (_G.GENERIC_WORKLOAD,),
            _G.CLAIMS: (_G.GENERIC_WORKLOAD,),
            _G.JOB: (_G.GENERIC_WORKLOAD,),
            _G.COMPOSITE: (_G.GENERIC_WORKLOAD, _G.TOPOLOGY),
            _G.PREEMPTION_POLICY: (_G.GENERIC_WORKLOAD,),
            _G.EVICTION_REQUEST: (),
        },
    ),
}
NEWEST: Final = "1.37"
_BETA: Final[Mapping[str, frozenset[Gate]]] = {"1.37": frozenset({_G.GENERIC_WORKLOAD, _G.CLAIMS})}


def stage(minor: str, gate: Gate) -> str:
    """How mature a feature is in a release, in the word of kubernetes_feature_enabled."""
    return "BETA" if gate in _BETA.get(minor, ()) else "ALPHA"


# People come here for the Workload family, so all of it is on unless they say otherwise.
# The eviction-request API is not of that family, and the preemption policy gate changes what
# classes with policy Never mean for groups (spec workload-api 3.5), so these two stay opt-in.
_OFF_HERE: Final = {_G.PREEMPTION_POLICY, _G.EVICTION_REQUEST}


def release(minor: str) -> Release:
    """The release of a minor such as "1.37" (also "v1.37.1")."""
    short = ".".join(minor.removeprefix("v").split(".")[:2])
    try:
        return RELEASES[short]
    except KeyError:
        raise ValueError(f'Kubernetes "{minor}": not known; accepted are {", ".join(RELEASES)}') from None


def default_gates(minor: str) -> frozenset[Gate]:
    """The gates that are on unless somebody says otherwise."""
    return frozenset(gate for gate in release(minor).gates if gate not in _OFF_HERE)


def parse_gates(minor: str, settings: Mapping[str, bool]) -> frozenset[Gate]:
    """The default gates with some switched; unknown gates and unmet requirements are refused, as a server does."""
    known = release(minor).gates
    unknown = [name for name in settings if name not in set(known)]
    if unknown:
        accepted = ", ".join(known)
        raise ValueError(
            f"feature gate {', '.join(unknown)}: Kubernetes {minor} does not know it; known are {accepted}"
        )
    on = {gate for gate in default_gates(minor) if settings.get(gate, True)}
    on |= {gate for gate in known if settings.get(gate, False)}
    missing = _unmet(known, on)
    if missing:
        raise ValueError("; ".join(missing))
    return frozenset(on)


def _unmet(known: Mapping[Gate, tuple[Gate, ...]], on: Iterable[Gate]) -> list[str]:
    chosen = set(on)
    return [
        f"feature gate {gate} requires {', '.join(absent)}"
        for gate in known
        if gate in chosen and (absent := [need for need in known[gate] if need not in chosen])
    ]
