"""The words of LeaderWorkerSet: its group, its label and annotation keys, its condition types and event reasons."""

from __future__ import annotations

from typing import Final

GROUP: Final = "leaderworkerset.x-k8s.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "LeaderWorkerSet"

PREFIX: Final = "leaderworkerset.sigs.k8s.io/"

# labels of pods and groups
NAME: Final = PREFIX + "name"
GROUP_INDEX: Final = PREFIX + "group-index"
GROUP_KEY: Final = PREFIX + "group-key"
WORKER_INDEX: Final = PREFIX + "worker-index"
SUBGROUP_INDEX: Final = PREFIX + "subgroup-index"
SUBGROUP_KEY: Final = PREFIX + "subgroup-key"
REVISION: Final = PREFIX + "template-revision-hash"
LEVEL: Final = PREFIX + "scheduling-level"
ROLE: Final = PREFIX + "role"
INCARNATION: Final = PREFIX + "incarnation"

# annotations
SIZE: Final = PREFIX + "size"
LEADER_NAME: Final = PREFIX + "leader-name"
EXCLUSIVE_TOPOLOGY: Final = PREFIX + "exclusive-topology"
SUBGROUP_EXCLUSIVE_TOPOLOGY: Final = PREFIX + "subgroup-exclusive-topology"
RECREATE_AFTER_START: Final = PREFIX + "experimental-recreate-group-after-start"
SUBGROUP_SIZE: Final = PREFIX + "subgroup-size"
SUBGROUP_POLICY: Final = PREFIX + "subgroup-policy-type"
SUBDOMAIN_POLICY: Final = PREFIX + "subdomainPolicy"
LEADER_REQUESTS_TPUS: Final = PREFIX + "leader-requests-tpus"
WORKLOAD_NAME: Final = PREFIX + "workload-name"
AWARE: Final = PREFIX + "workload-aware-scheduling"

# Condition types, each with the one reason and message that it ever has
PROGRESSING: Final = ("Progressing", "GroupsProgressing", "Replicas are progressing")
AVAILABLE: Final = ("Available", "AllGroupsReady", "All replicas are ready")
UPDATING: Final = ("UpdateInProgress", "GroupsUpdating", "Rolling Upgrade is in progress")
SCHEDULING_CREATED: Final = "WorkloadSchedulingCreated"

# how a parent hands its Workload down (KEP-6089); the second spelling stands in the proposal's text
TEMPLATE_NAME: Final = "scheduling.k8s.io/group-template-name"
PARENT_GROUP: Final = "scheduling.k8s.io/parent-compositepodgroup"
PARENT_GROUP_TOO: Final = "scheduling.k8s.io/parent-composite-podgroup"

# our gates (see the bundle)
AWARE_GATE: Final = "WorkloadAwareScheduling"
TREE_GATE: Final = "LWSGangOfGangs"
VOLCANO: Final = "LWSVolcano"
