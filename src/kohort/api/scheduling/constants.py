"""Words of scheduling.k8s.io that controllers, the scheduler and people read: conditions, reasons, names, limits."""

from __future__ import annotations

from typing import Final

# ---- conditions of PodGroup and CompositePodGroup (spec workload-api 2.8)
POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"  # 1.36
POD_GROUP_INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"  # 1.37
COMPOSITE_INITIALLY_SCHEDULED: Final = "CompositePodGroupInitiallyScheduled"
POD_GROUP_SATISFIED: Final = "PodGroupSatisfied"  # ours: whether it has its minimum now, and not only once
COMPOSITE_SATISFIED: Final = "CompositePodGroupSatisfied"
DISRUPTION_TARGET: Final = "DisruptionTarget"
SCHEDULED_CONDITIONS: Final = (POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED)  # either is understood when read

REASON_SCHEDULED: Final = "Scheduled"
REASON_SATISFIED: Final = "Satisfied"
REASON_BELOW_MINIMUM: Final = "BelowMinimum"
REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"
REASON_INVALID: Final = "Invalid"  # of a composite: a failure, whatever the condition's status
REASON_PREEMPTION: Final = "PreemptionByScheduler"

# ---- names
PROTECTION_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"

# ---- values
PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
NEVER: Final = "Never"
PREEMPTION_POLICIES: Final = (PREEMPT_LOWER_PRIORITY, NEVER)
DISRUPT_POD: Final = "Pod"  # 1.36; from 1.37 on {single: {}}
DISRUPT_POD_GROUP: Final = "PodGroup"  # 1.36; from 1.37 on {all: {}}

# ---- limits
MOST_TEMPLATES: Final = 8
MOST_CLAIMS: Final = 4
MOST_COMPOSITE_LEVELS: Final = 3  # the leaves are the fourth level
HIGHEST_USER_PRIORITY: Final = 1_000_000_000

# ---- priority classes that every server has
SYSTEM_PREFIX: Final = "system-"
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
