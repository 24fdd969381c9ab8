"""What differs between the Kubernetes minors that can be run: gates and API switches (spec workload-api 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Minor:
    """One minor version: which gates it knows, which are turned on, which API versions have to be switched on."""

    gates: tuple[str, ...]
    on: tuple[str, ...]
    runtime_config: tuple[str, ...]

    @property
    def workload_api(self) -> str:
        """Group and version of Workload and, if it has them, PodGroup."""
        return self.runtime_config[0].partition("=")[0]


_TAS = "TopologyAwareWorkloadScheduling"
_DRA = "DRAWorkloadResourceClaims"

MINORS: Mapping[str, Minor] = {
    "1.37": Minor(
        gates=(
            "GenericWorkload",
            _TAS,
            "CompositePodGroup",
            _DRA,
            "WorkloadWithJob",
            "PodGroupPreemptionPolicy",
            "EvictionRequestAPI",
        ),
        on=("GenericWorkload", _TAS, "CompositePodGroup", _DRA, "WorkloadWithJob"),
        runtime_config=("scheduling.k8s.io/v1beta1=true", "scheduling.k8s.io/v1alpha3=true"),
    ),
    "1.36": Minor(
        gates=("GenericWorkload", "GangScheduling", _TAS, "WorkloadAwarePreemption", _DRA, "WorkloadWithJob"),
        on=("GenericWorkload", "GangScheduling", _TAS, "WorkloadAwarePreemption", _DRA, "WorkloadWithJob"),
        runtime_config=("scheduling.k8s.io/v1alpha2=true",),
    ),
    "1.35": Minor(
        gates=("GenericWorkload", "GangScheduling"),
        on=("GenericWorkload", "GangScheduling"),
        runtime_config=("scheduling.k8s.io/v1alpha1=true",),
    ),
}


def minor_of(version: str) -> str:
    """`1.37`, `v1.37.1` or `1.37.1` -> `1.37`; an unknown minor is an error that lists the known ones."""
    minor = ".".join(version.removeprefix("v").split(".")[:2])
    if minor not in MINORS:
        raise ValueError(f"kubernetes: found {version!r}, accepted are {', '.join(MINORS)}")
    return minor


def default_gates(minor: str) -> dict[str, bool]:
    """The gates of an environment nobody said anything about: all of the Workload API on, alternatives off."""
    return gates_exactly(minor, MINORS[minor].on)


def gates_exactly(minor: str, on: Iterable[str]) -> dict[str, bool]:
    """Every gate we speak of, stated: those named on, all others off (how recorded answers state them)."""
    wanted = set(on)
    known = MINORS[minor].gates
    gates = {name: name in wanted for name in known}
    return gates | dict.fromkeys(sorted(wanted - set(known)), True)


def parse_gates(text: str) -> dict[str, bool]:
    """`A=true,B=false` as typed on a command line."""
    gates: dict[str, bool] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = part.partition("=")
        if value.lower() not in {"true", "false"}:
            raise ValueError(f"gates: found {part!r}, accepted is NAME=true or NAME=false, separated by commas")
        gates[name] = value.lower() == "true"
    return gates
