"""Which of the Workload APIs a server has: found by discovery, the newest wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kohort.api.releases import RELEASES, SCHEDULING_GROUP
from kohort.api.scheduling.constants import POD_GROUP_INITIALLY_SCHEDULED

if TYPE_CHECKING:
    from kohort.kube.discovery import Discovery

_POD_GROUPS: Final = (("v1beta1", "1.37"), ("v1alpha3", "1.37"), ("v1alpha2", "1.36"))


@dataclass(frozen=True, slots=True)
class ServedRelease:
    """`versions`: kind -> apiVersion, of the kinds that the scheduler reads and writes."""

    minor: str  # empty: no groups at all, single pods only
    versions: dict[str, str]
    condition: str = POD_GROUP_INITIALLY_SCHEDULED


async def discover(discovery: Discovery) -> ServedRelease:
    group = SCHEDULING_GROUP
    served = await discovery.versions(group, "PodGroup")
    for version, minor in _POD_GROUPS:
        if version in served:
            versions = {"PodGroup": f"{group}/{version}"}
            composite = await discovery.versions(group, "CompositePodGroup")
            if composite:
                versions["CompositePodGroup"] = f"{group}/{composite[0]}"
            return ServedRelease(minor, versions, RELEASES[minor].scheduled_condition or POD_GROUP_INITIALLY_SCHEDULED)
    if "v1alpha1" in await discovery.versions(group, "Workload"):
        return ServedRelease("1.35", {"Workload": f"{group}/v1alpha1"})
    return ServedRelease("", {})
