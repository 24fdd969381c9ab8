"""What a JobSet consists of: Jobs, a headless Service, volume claims (spec jobset 1.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import meta_of, namespace_of, owner_reference
from kohort.kinds.jobset.api import constants, placement
from kohort.kinds.jobset.api.reading import (
    ReplicatedJob,
    coordinator_endpoint,
    entries,
    exclusive_placement,
    job_name,
    replicated_jobs,
    spec_of,
    subdomain_of,
)
from kohort.kinds.jobset.api.volumes import claim_name, mounts

PREFIX: Final = "jobset.sigs.k8s.io/"
RESTART_ATTEMPT: Final = f"{PREFIX}restart-attempt"
JOB_RESTART_ATTEMPT: Final = f"{PREFIX}job-restart-attempt"
GROUP_TEMPLATE: Final = "scheduling.k8s.io/group-template-name"  # to trace a Job to its group; nobody acts on it
_NAMESPACED_JOB: Final = "alpha.jobset.sigs.k8s.io/namespaced-job"
_NO_SCHEDULE: Final = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "operator": "Exists", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a Job is given beside its template.

    `link`: the member of its pods' spec that names their group, `template`: of that group; `restarts`: with the option
    RestartJob; `priority`: of a pod by the name of its class, where the template itself has to keep Jobs apart.
    """

    link: Mapping[str, Any] = field(default_factory=dict)
    template: str = ""
    restarts: int | None = None
    priority: Callable[[str], int] | None = None


def job(jobset: Object, replicated: ReplicatedJob, index: int, wiring: Wiring) -> Object:
    meta, spec = copied(replicated.job_meta), copied(replicated.job)
    name = job_name(str(meta_of(jobset)["name"]), replicated.name, index)
    labels = _labels(jobset, replicated, index, name, wiring.restarts)
    notes = {**labels, **_exclusive(jobset, replicated)}
    spec["suspend"] = bool(spec_of(jobset).get("suspend"))
    template = spec.setdefault("template", {})
    pod = template.setdefault("spec", {})
    inner = template["metadata"] = template.get("metadata") or {}
    inner["labels"] = {**(inner.get("labels") or {}), **labels}
    inner["annotations"] = {**(inner.get("annotations") or {}), **notes}
    _fill_pod(jobset, replicated, name, pod)
    pod.update(copied(dict(wiring.link)))
    exclusive = exclusive_placement(jobset, replicated)
    if exclusive is not None and not exclusive.by_node_selector and wiring.priority is not None:
        priority = wiring.priority(str(pod.get("priorityClassName") or ""))
        placement.spread(template, notes[constants.EXCLUSIVE_TOPOLOGY], priority)
    traced = {GROUP_TEMPLATE: wiring.template} if wiring.template else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace_of(jobset),
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": {**(meta.get("annotations") or {}), **notes, **traced},
            "ownerReferences": [owner_reference(jobset)],
        },
        "spec": spec,
    }


def _labels(jobset: Object, replicated: ReplicatedJob, index: int, name: str, restarts: int | None) -> dict[str, str]:
    every = replicated_jobs(jobset)
    group = _group(replicated)
    mates = [one for one in every if _group(one) == group]
    found = {
        "jobset-name": meta_of(jobset)["name"],
        "jobset-uid": meta_of(jobset).get("uid") or "",
        "replicatedjob-name": replicated.name,
        "replicatedjob-replicas": replicated.replicas,
        "global-replicas": sum(one.replicas for one in every),
        "job-index": index,
        "job-global-index": sum(one.replicas for one in every if one.index < replicated.index) + index,
        "job-key": sha1(f"{namespace_of(jobset)}/{name}".encode(), usedforsecurity=False).hexdigest(),
        "restart-attempt": (jobset.get("status") or {}).get("restarts") or 0,
        "group-name": group,
        "group-replicas": sum(one.replicas for one in mates),
        "job-group-index": sum(one.replicas for one in mates if one.index < replicated.index) + index,
    }
    if restarts is not None:
        found["job-restart-attempt"] = restarts
    coordinator = spec_of(jobset).get("coordinator")
    if coordinator:
        found["coordinator"] = coordinator_endpoint(str(meta_of(jobset)["name"]), coordinator, subdomain_of(jobset))
    return {f"{PREFIX}{key}": str(value) for key, value in found.items()}


def _group(replicated: ReplicatedJob) -> str:
    return str(replicated.raw.get("groupName") or "default")


def _exclusive(jobset: Object, replicated: ReplicatedJob) -> dict[str, str]:
    """Of the JobSet, then of the ReplicatedJob; a strategy only together with the topology beside it."""
    wanted = (constants.EXCLUSIVE_TOPOLOGY, constants.NODE_SELECTOR_STRATEGY)
    found: dict[str, str] = {}
    for given in (meta_of(jobset).get("annotations") or {}, replicated.job_meta.get("annotations") or {}):
        if constants.EXCLUSIVE_TOPOLOGY in given:
            found |= {key: str(given[key]) for key in wanted if key in given}
    return found


def _fill_pod(jobset: Object, replicated: ReplicatedJob, name: str, pod: dict[str, Any]) -> None:
    if (spec_of(jobset).get("network") or {}).get("enableDNSHostnames", True):
        pod["subdomain"] = subdomain_of(jobset)
    volumes = [claim for _, claim in claims(jobset) if mounts(replicated, str(meta_of(claim).get("name")))]
    for claim in volumes:
        named = str(meta_of(claim).get("name"))
        volume = {"name": named, "persistentVolumeClaim": {"claimName": claim_name(jobset, named)}}
        pod["volumes"] = [*entries(pod.get("volumes")), volume]
    exclusive = exclusive_placement(jobset, replicated)
    if exclusive is not None and exclusive.by_node_selector:
        place = {_NAMESPACED_JOB: f"{namespace_of(jobset)}_{name}"}
        pod["nodeSelector"] = {**(pod.get("nodeSelector") or {}), **place}
        pod["tolerations"] = [*entries(pod.get("tolerations")), dict(_NO_SCHEDULE)]


def has_service(jobset: Object) -> bool:
    return bool((spec_of(jobset).get("network") or {}).get("enableDNSHostnames", True))


def service(jobset: Object) -> Object:
    network = spec_of(jobset).get("network") or {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": subdomain_of(jobset),
            "namespace": namespace_of(jobset),
            "ownerReferences": [owner_reference(jobset)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {constants.JOBSET_NAME: meta_of(jobset)["name"]},
            "publishNotReadyAddresses": network.get("publishNotReadyAddresses", True),
        },
    }


def claims(jobset: Object) -> list[tuple[str, Object]]:
    """(what happens to it with the JobSet, template) of every volume claim."""
    found = []
    for policy in entries(spec_of(jobset).get("volumeClaimPolicies")):
        kept = str((policy.get("retentionPolicy") or {}).get("whenDeleted") or "Delete")
        found += [(kept, template) for template in entries(policy.get("templates"))]
    return found


def claim(jobset: Object, kept: str, template: Object) -> Object:
    meta = meta_of(template)
    labels = {**(meta.get("labels") or {}), constants.JOBSET_NAME: meta_of(jobset)["name"]}
    made: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": claim_name(jobset, str(meta.get("name"))),
            "namespace": namespace_of(jobset),
            "labels": labels,
            **({"annotations": dict(meta["annotations"])} if meta.get("annotations") else {}),
        },
        "spec": copied(template.get("spec") or {}),
    }
    if kept == "Delete":
        made["metadata"]["ownerReferences"] = [owner_reference(jobset)]
    return made
