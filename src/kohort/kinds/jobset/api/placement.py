"""Exclusive placement: each Job alone in its topology domain, its first pod leading (spec jobset 2.4).

Pods of JobSets are completed and validated when they are created, as upstream's pod webhooks do it: the first pod of a
Job keeps away from other Jobs, the others are let in when it is bound, and go where it is. Where the server does not
ask these rules, `spread` says the same to the scheduler in the Job's pod template.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, meta_of
from kohort.api.pod_rules import Cluster
from kohort.kinds.jobset.api import constants

PRIORITY: Final = "jobset.sigs.k8s.io/priority"
JOB_KEY: Final = "jobset.sigs.k8s.io/job-key"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Labels = Mapping[str, str]
Domains = Callable[[str], Labels | None]  # the labels of a node


def is_of_jobset(pod: Object) -> bool:
    """Whether these rules concern it. With the strategy by node selectors they do not."""
    return (
        annotation(pod, constants.JOBSET_NAME) is not None and annotation(pod, constants.NODE_SELECTOR_STRATEGY) is None
    )


def topology_of(pod: Object) -> str | None:
    """The label whose values are the domains, if its Job wants one for itself."""
    return annotation(pod, constants.EXCLUSIVE_TOPOLOGY) if is_of_jobset(pod) else None


def is_leader(pod: Object) -> bool:
    return annotation(pod, INDEX) == "0"


def is_follower(pod: Object) -> bool:
    """Not where the template already says all there is to say (`spread`)."""
    topology = topology_of(pod)
    return topology is not None and not is_leader(pod) and not _is_spread(pod, topology)


def _is_spread(pod: Object, topology: str) -> bool:
    wanted = terms(meta_of(pod).get("labels") or {}, topology)["podAffinity"]
    known = (((pod.get("spec") or {}).get("affinity") or {}).get("podAffinity") or {}).get(_REQUIRED) or ()
    return wanted in known


def leader_of(pod: Object, others: Iterable[Object]) -> Object | None:
    """The first pod of its Job, while it lives."""
    return next((one for one in others if is_leader(one) and _lives(one) and _same_job(pod, one)), None)


def _lives(pod: Object) -> bool:
    ended = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return not ended and not meta_of(pod).get("deletionTimestamp")


def _same_job(pod: Object, other: Object) -> bool:
    mine, theirs = owner_uid(pod), owner_uid(other)
    return bool(mine) and mine == theirs


def owner_uid(pod: Object) -> str:
    owners = meta_of(pod).get("ownerReferences") or ()
    return next((str(one.get("uid") or "") for one in owners if one.get("controller")), "")


def leader_prefix(pod: Object) -> str:
    """What the name of its leader begins with; empty if its labels do not say."""
    labels = meta_of(pod).get("labels") or {}
    wanted = (constants.JOBSET_NAME, constants.REPLICATED_JOB_NAME, constants.JOB_INDEX)
    if any(key not in labels for key in wanted):
        return ""
    return f"{'-'.join(labels[key] for key in wanted)}-0-"


def priority_label(priority: int) -> str:
    """No label begins with a minus: upstream's webhook writes it, and its pods are refused."""
    return str(priority) if priority >= 0 else f"minus{priority}"


# ---- kohort.api.pod_rules


def admit_pod(pod: Object, namespace: str, cluster: Cluster) -> None:
    complete(pod, _find_leader(pod, namespace, cluster), cluster.node_labels)


def refuse_pod(pod: Object, namespace: str, cluster: Cluster) -> str:
    return refusal(pod, _find_leader(pod, namespace, cluster)) if is_follower(pod) else ""


def depends_on_others(annotations: Collection[str]) -> bool:
    return constants.EXCLUSIVE_TOPOLOGY in annotations


def _find_leader(pod: Object, namespace: str, cluster: Cluster) -> Object | None:
    prefix = leader_prefix(pod) if is_follower(pod) else ""
    return leader_of(pod, cluster.pods_with_prefix(namespace, prefix)) if prefix else None


def mark(pod: Object) -> None:
    """Its priority as a label, for those who keep away from it."""
    priority = pod["spec"].get("priority")
    if priority is not None and is_of_jobset(pod):
        meta = pod["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), PRIORITY: priority_label(priority)}


def complete(pod: Object, leader: Object | None, labels_of: Domains) -> None:
    """Fill in a new pod, in place."""
    if not is_of_jobset(pod):
        return
    mark(pod)
    spec, meta = pod["spec"], pod["metadata"]
    topology = topology_of(pod)
    if topology is None:
        return
    if not is_follower(pod):
        _add(spec, terms(meta.get("labels") or {}, topology))
        return
    domain = domain_of(leader, topology, labels_of)
    if domain is not None:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), topology: domain}


def domain_of(leader: Object | None, topology: str, labels_of: Domains) -> str | None:
    node = (leader or {}).get("spec", {}).get("nodeName")
    return (labels_of(node) or {}).get(topology) if node else None


def refusal(pod: Object, leader: Object | None) -> str:
    """Why a follower is not let in yet; empty if it is."""
    topology = topology_of(pod)
    if not is_follower(pod):
        return ""
    wants = f"exclusive placement by {topology}: a pod that is not the first of its Job"
    if not annotation(pod, INDEX):
        return f"{wants} has no completion index; the Job must be Indexed"
    if topology not in (pod["spec"].get("nodeSelector") or {}) or leader is None or not leader["spec"].get("nodeName"):
        return f"{wants} waits until that one is bound to a node with this label"
    return ""


def terms(labels: Labels, topology: str) -> dict[str, dict[str, Any]]:
    """Together with its own Job, apart from every other of the same priority."""
    own, priority = labels.get(JOB_KEY, ""), labels.get(PRIORITY)
    others: list[dict[str, Any]] = [
        {"key": JOB_KEY, "operator": "Exists"},
        {"key": JOB_KEY, "operator": "NotIn", "values": [own]},
        {"key": PRIORITY, "operator": "In", "values": [priority or ""]},
    ]
    return {
        "podAffinity": _term([{"key": JOB_KEY, "operator": "In", "values": [own]}], topology),
        "podAntiAffinity": _term(others, topology),
    }


def _term(expressions: list[dict[str, Any]], topology: str) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology, "namespaceSelector": {}}


def _add(spec: Object, terms: Mapping[str, Mapping[str, Any]]) -> None:
    """Beside what the user wrote."""
    affinity = {**(spec.get("affinity") or {})}
    for member, term in terms.items():
        block = {**(affinity.get(member) or {})}
        known = list(block.get(_REQUIRED) or ())
        affinity[member] = {**block, _REQUIRED: known if term in known else [*known, dict(term)]}
    spec["affinity"] = affinity


def spread(template: Object, topology: str, priority: int) -> None:
    """The same said in a pod template, for all pods of a Job: needs nobody who admits pods."""
    meta = template.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), PRIORITY: priority_label(priority)}
    _add(template.setdefault("spec", {}), terms(meta["labels"], topology))
