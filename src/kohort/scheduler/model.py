"""The API objects that the scheduler reads, decoded to the fields it reads and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec

from kohort.api.scheduling import ranks
from kohort.api.scheduling.constants import COMPOSITE_INITIALLY_SCHEDULED, DISRUPT_POD_GROUP, SCHEDULED_CONDITIONS
from kohort.api.scheduling.healing import is_healing
from kohort.api.scheduling.topology import is_topology
from kohort.grouping.registry import READ
from kohort.kube import codec
from kohort.place.rulelimits import MOST_REQUIREMENTS, TOO_MANY, too_many_rules

Json = dict[str, Any]
FINISHED: Final = frozenset({"Succeeded", "Failed"})
COMPOSITE_PREFIX: Final = "composite/"
MADE_LEAF: Final = "Gang"  # kinds of groups that a rule made, and no object stands for
MADE_BRANCH: Final = "GangTree"
_BRANCHES: Final = frozenset({"CompositePodGroup", MADE_BRANCH})
POD_PREFIX: Final = "pod/"
SCHEDULED_ONCE: Final = frozenset({*SCHEDULED_CONDITIONS, COMPOSITE_INITIALLY_SCHEDULED})


class Owner(msgspec.Struct, rename="camel", omit_defaults=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(codec.Meta, rename="camel"):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None  # those that are read, no others
    owner_references: list[Owner] | None = None
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    generation: int = 0

    def __post_init__(self) -> None:
        if self.annotations is not None:
            self.annotations = {key: self.annotations[key] for key in self.annotations if _is_read(key)} or None


@lru_cache(maxsize=1024)  # few are in use, and each pod is read three times
def _is_read(annotation: str) -> bool:
    return annotation in READ or annotation in ranks.ANNOTATIONS or is_topology(annotation) or is_healing(annotation)


class Condition(msgspec.Struct, rename="camel", omit_defaults=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


# ---- pods


class Port(msgspec.Struct, rename="camel", omit_defaults=True):
    container_port: int | None = None
    host_port: int | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class Container(msgspec.Struct, rename="camel", omit_defaults=True):
    resources: Json | None = None
    restart_policy: str | None = None
    ports: list[Port] | None = None


class ClaimReference(msgspec.Struct, rename="camel", omit_defaults=True):
    claim_name: str = ""
    read_only: bool = False


class Volume(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    persistent_volume_claim: ClaimReference | None = None
    ephemeral: Json | None = None


class SchedulingGroup(msgspec.Struct, rename="camel", omit_defaults=True):
    pod_group_name: str | None = None


class WorkloadRef(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str | None = None


class PodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    preemption_policy: str | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadRef | None = None
    scheduling_gates: list[Json] | None = None
    # what the engine looks at
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Json | None = None
    tolerations: list[Json] | None = None
    topology_spread_constraints: list[Json] | None = None
    overhead: Json | None = None
    resources: Json | None = None
    host_network: bool = False
    volumes: list[Volume] | None = None
    resource_claims: list[Json] | None = None
    too_many: str | None = msgspec.field(default=None, name=TOO_MANY)

    def __post_init__(self) -> None:
        """Of ports only those that a node has once are kept: a pod may name thousands of others."""
        if not self.host_network:
            for container in (*self.containers, *(self.init_containers or ())):
                if container.ports:
                    container.ports = [port for port in container.ports if port.host_port] or None


class ClaimStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    resource_claim_name: str | None = None


class PodStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    phase: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: list[Condition] | None = None
    resource_claim_statuses: list[ClaimStatus] | None = None


class Pod(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"

    @property
    def group(self) -> str | None:
        """The group it names."""
        return named_group(self.metadata.namespace, self.spec)

    @property
    def rank(self) -> ranks.Rank | None:
        """Its place in the order of its group's pods."""
        return ranks.rank_of(self.metadata.labels or {}, self.metadata.annotations or {})

    @property
    def job(self) -> str:
        """The uid of the Job that it is of; empty: of none."""
        owners = self.metadata.owner_references
        return next((one.uid for one in owners if one.controller and one.kind == "Job"), "") if owners else ""


# By field: rules about nodes and pods, of which a tenant may write megabytes.
_RULES: Final = {
    "node_selector": "nodeSelector",
    "affinity": "affinity",
    "tolerations": "tolerations",
    "topology_spread_constraints": "topologySpreadConstraints",
}
_NO_RULES: Final = dict.fromkeys(_RULES)


def lean(pod: Pod) -> Pod:
    """Without rules that are more than is accepted: only what they are is kept. A hundred such pods were a gigabyte."""
    spec = pod.spec
    few = len(spec.tolerations or ()) + len(spec.node_selector or ()) <= MOST_REQUIREMENTS
    if few and not spec.affinity and not spec.topology_spread_constraints:
        return pod
    given = {name: rule for field, name in _RULES.items() if (rule := getattr(spec, field))}
    said = too_many_rules(given, spec.topology_spread_constraints or ())
    if not said:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, **_NO_RULES, too_many=said))


def asked(pod: Pod) -> Json:
    """What the engine reads of a pod that waits. Its rules are handed over as they are: nobody changes them, and a copy
    of many would hold the event loop twice, when it is made and when it goes."""
    meta, given = pod.metadata, pod.spec
    if not (given.affinity or given.tolerations or given.topology_spread_constraints or given.node_selector):
        whole: Json = msgspec.to_builtins(pod)
        return whole
    spec: Json = msgspec.to_builtins(msgspec.structs.replace(given, **_NO_RULES))
    rules = ((name, getattr(given, field)) for field, name in _RULES.items())
    spec |= {name: rule for name, rule in rules if rule is not None}
    named = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "labels": meta.labels or {}}
    return {"metadata": named, "spec": spec}


def named_group(namespace: str, spec: PodSpec) -> str | None:
    """namespace/name, or namespace/workload/group/replica (1.35)."""
    joined, old = spec.scheduling_group, spec.workload_ref
    if joined is not None and joined.pod_group_name:
        return f"{namespace or 'default'}/{joined.pod_group_name}"
    if old is not None and old.name:
        return "/".join((namespace or "default", old.name, old.pod_group, old.pod_group_replica_key or ""))
    return None


class PodTemplate(msgspec.Struct, rename="camel"):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class JobSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)
    parallelism: int | None = None
    completions: int | None = None


class JobStatus(msgspec.Struct, rename="camel"):
    succeeded: int = 0


class Job(msgspec.Struct, rename="camel"):
    """Read for what it has recorded as done: the pods may be gone since."""

    metadata: ObjectMeta
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)

    @property
    def group(self) -> str | None:
        """That its template names. Pods of a Job that is a gang by itself name one that the template does not."""
        return named_group(self.metadata.namespace, self.spec.template.spec)

    @property
    def succeeded(self) -> int:
        """None of one that goes: what comes after it begins anew."""
        return self.status.succeeded if self.metadata.deletion_timestamp is None else 0


class Owning(msgspec.Struct, rename="camel"):
    """What grouping reads of an object that pods rest on: an owner of any kind, a group object of another scheduler."""

    metadata: ObjectMeta
    api_version: str = ""
    spec: Json = {}


# ---- nodes, budgets, namespaces, services


class NodeSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    taints: list[Json] | None = None
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    allocatable: Json | None = None
    capacity: Json | None = None


class Node(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class BudgetSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    selector: Json | None = None


class BudgetStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    disruptions_allowed: int = 0
    disrupted_pods: Json | None = None


class DisruptionBudget(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


class Namespace(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta


class ServiceSpec(msgspec.Struct, omit_defaults=True):
    selector: dict[str, str] | None = None


class Service(msgspec.Struct):
    metadata: ObjectMeta
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


# ---- groups


class Gang(msgspec.Struct, rename="camel", omit_defaults=True):
    min_count: int | None = None
    min_group_count: int | None = None


class Policy(msgspec.Struct, rename="camel", omit_defaults=True):
    gang: Gang | None = None


class Constraints(msgspec.Struct, rename="camel", omit_defaults=True):
    topology: list[Json] | None = None


class GroupObjectSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    scheduling_policy: Policy | None = None
    scheduling_constraints: Constraints | None = None
    disruption_mode: Json | str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None
    resource_claims: list[Json] | None = None
    workload_ref: Json | None = None  # 1.37
    pod_group_template_ref: Json | None = None  # 1.36


class GroupStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    conditions: list[Condition] | None = None
    resource_claim_statuses: list[ClaimStatus] | None = None


class GroupObject(msgspec.Struct, rename="camel"):
    """A PodGroup of 1.36 or 1.37, or a CompositePodGroup."""

    metadata: ObjectMeta
    spec: GroupObjectSpec = msgspec.field(default_factory=GroupObjectSpec)
    status: GroupStatus = msgspec.field(default_factory=GroupStatus)


class WorkloadPodGroup(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    policy: Policy | None = None


class WorkloadSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    pod_groups: list[WorkloadPodGroup] | None = None


class Workload(msgspec.Struct, rename="camel"):
    """Of 1.35, where a Workload holds the groups that pods name; later ones hold templates, which nobody here reads."""

    metadata: ObjectMeta
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)


ClaimSource = tuple[str | None, str | None, str | None]  # name, claim, template


def claim_source(entry: Json) -> ClaimSource:
    """What an entry of resourceClaims rests on: a pod that has the same as its PodGroup uses the group's claim."""
    return entry.get("name"), entry.get("resourceClaimName"), entry.get("resourceClaimTemplateName")


@dataclass(frozen=True, slots=True)
class LaterPart:
    """Pods that an operator makes once those of a group run: see `kohort.grouping.model.Later`."""

    key: str  # of the group that they will be
    name: str
    count: int
    template: bytes
    within: str = ""


@dataclass(slots=True, unsafe_hash=True)  # never changed; with frozen=True one of so many fields is slow to make
class GroupSpec:
    """A group as the scheduler sees it, whatever version it was written in. `minimum` None: basic."""

    key: str
    namespace: str
    name: str
    uid: str = ""
    kind: str = "PodGroup"  # of the API object: PodGroup, CompositePodGroup, Workload (1.35)
    minimum: int | None = None
    topology: str | None = None
    disrupt_all: bool = False
    priority: int | None = None
    policy: str | None = None  # preemptionPolicy
    parent: str | None = None
    created: str = ""
    generation: int = 0
    claims: tuple[tuple[ClaimSource, str | None], ...] = ()  # shared by its pods, with the names of those that exist
    workload: str = ""  # that it was made from
    family: str = ""  # what it shares with other groups of the same owner
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)  # those that are read
    rule: str = ""  # that made it; no object stands for it then
    said: str = ""  # by which key or owner
    problem: str = ""  # what is wrong with that
    queue: str = ""
    later: tuple[LaterPart, ...] = ()  # that must find room beside it, though it is not there yet
    owners: tuple[Owner, ...] = field(default=(), compare=False)
    conditions: tuple[Condition, ...] = field(default=(), compare=False)
    composite: bool = field(init=False, compare=False)
    need: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self.composite = self.kind in _BRANCHES
        self.need = 1 if self.minimum is None else self.minimum

    @property
    def by(self) -> str:
        """Which rule made it, for people; empty: none."""
        return f"grouped by rule {self.rule} ({self.said})" if self.rule else ""

    @property
    def has_status(self) -> bool:
        """1.35 has no objects for groups, and no object stands for a group that a rule made."""
        return self.kind != "Workload" and not self.rule

    @property
    def once(self) -> bool:
        """Whether its conditions say that it has had its minimum."""
        return any(one.type in SCHEDULED_ONCE and one.status == "True" for one in self.conditions)


def group_spec(obj: GroupObject, *, composite: bool = False) -> GroupSpec:
    """Of a PodGroup or a CompositePodGroup. Missing priority means 0."""
    meta, spec = obj.metadata, obj.spec
    gang = spec.scheduling_policy.gang if spec.scheduling_policy else None
    minimum = None if gang is None else (gang.min_group_count if composite else gang.min_count) or 1
    topology = (spec.scheduling_constraints.topology if spec.scheduling_constraints else None) or ()
    parent = spec.parent_composite_pod_group_name
    mode = spec.disruption_mode
    claims: tuple[tuple[ClaimSource, str | None], ...] = ()
    if spec.resource_claims:
        made = {one.name: one.resource_claim_name for one in obj.status.resource_claim_statuses or ()}
        claims = tuple((claim_source(one), made.get(one["name"])) for one in spec.resource_claims)
    return GroupSpec(
        key=composite_key(meta.namespace, meta.name) if composite else f"{meta.namespace}/{meta.name}",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        kind="CompositePodGroup" if composite else "PodGroup",
        minimum=minimum,
        topology=str(topology[0]["key"]) if topology else None,
        disrupt_all=mode == DISRUPT_POD_GROUP if isinstance(mode, str) else "all" in (mode or {}),
        priority=spec.priority or 0,
        policy=spec.preemption_policy,
        parent=composite_key(meta.namespace, parent) if parent else None,
        created=meta.creation_timestamp,
        generation=meta.generation,
        claims=claims,
        workload=_workload(spec),
        family=_family(meta),
        annotations=meta.annotations or {},
        owners=tuple(meta.owner_references or ()),
        conditions=tuple(obj.status.conditions or ()),
    )


def _family(meta: ObjectMeta) -> str:
    """The application that it is part of, by the label that Kubernetes recommends for it; else its controller.

    A PodCliqueSet owns its groups through PodGangs, which nobody here reads: the label says what owners do not.
    """
    part_of = meta.labels.get("app.kubernetes.io/part-of") if meta.labels else ""
    if part_of:
        return f"{meta.namespace}/{part_of}"
    owners = meta.owner_references
    return next((owner.uid for owner in owners if owner.controller), "") if owners else ""


def _workload(spec: GroupObjectSpec) -> str:
    if spec.workload_ref is not None:
        return str(spec.workload_ref.get("workloadName") or "")
    return str(((spec.pod_group_template_ref or {}).get("workload") or {}).get("workloadName") or "")


def workload_group_spec(workload: Workload, key: str) -> GroupSpec | None:
    """The group that pods of 1.35 name by a tuple; None if the Workload has none of that name."""
    name = key.split("/")[2]
    found = next((one for one in workload.spec.pod_groups or () if one.name == name), None)
    if found is None:
        return None
    meta = workload.metadata
    gang = found.policy.gang if found.policy else None
    return GroupSpec(
        key=key,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        kind="Workload",
        workload=meta.name,
        family=_family(meta),
        owners=tuple(meta.owner_references or ()),
        minimum=None if gang is None else gang.min_count or 1,
        created=meta.creation_timestamp,
        generation=meta.generation,
    )


def composite_key(namespace: str, name: str) -> str:
    """Apart from the key of a PodGroup of the same name."""
    return f"{COMPOSITE_PREFIX}{namespace}/{name}"


def is_pod_key(key: str) -> bool:
    """Whether a root's key stands for a pod without a group."""
    return key.startswith(POD_PREFIX)


def described(key: str) -> str:
    """A group's key as people read it, with the kind where the name alone would be taken for a PodGroup's."""
    return f"CompositePodGroup {shown(key)}" if key.startswith(COMPOSITE_PREFIX) else key


def shown(key: str) -> str:
    """A key as people read it."""
    if ":" in key:  # made by a rule
        return key.partition(":")[2].replace(":", "/")
    return key.removeprefix(COMPOSITE_PREFIX).removeprefix(POD_PREFIX)
