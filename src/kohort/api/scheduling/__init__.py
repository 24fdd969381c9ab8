"""scheduling.k8s.io: Workload, PodGroup, CompositePodGroup and PriorityClass in every version that is served."""

from __future__ import annotations

from typing import Final

from kohort.api.scheduling import groups, v1alpha1, v1alpha2, workload
from kohort.api.scheduling.priority import PRIORITY_CLASS

KINDS: Final = (
    v1alpha1.WORKLOAD,
    v1alpha2.WORKLOAD,
    v1alpha2.POD_GROUP,
    workload.V1ALPHA3,
    groups.V1ALPHA3,
    groups.COMPOSITE,
    workload.V1BETA1,
    groups.V1BETA1,
    PRIORITY_CLASS,
)
