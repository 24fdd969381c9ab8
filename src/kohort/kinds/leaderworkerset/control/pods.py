"""The pods of a group, as users of upstream know them: names, labels, annotations, variables (spec lws 2.2, 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import annotation, label, name_of, namespace_of, owner_reference
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import Role, pod_spec, size, template_name
from kohort.kinds.leaderworkerset.control import placement, tpu
from kohort.kinds.leaderworkerset.control.reading import (
    group_index,
    is_unique,
    key_hash,
    leader_name,
    subdomain,
    template_of,
    topology,
)


@dataclass(frozen=True, slots=True)
class Membership:
    """What a pod carries because of its scheduling group: `link` goes into its spec."""

    link: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


ALONE = Membership()


def leader(lws: Object, index: int, revision: str, membership: Membership = ALONE) -> Object:
    """`lws` as of that revision. Its owner is the set as it lives."""
    name = leader_name(lws, index)
    labels = {
        constants.REVISION: revision,
        constants.GROUP_INDEX: str(index),
        constants.GROUP_KEY: key_hash(f"{namespace_of(lws)}/{name}"),
        "apps.kubernetes.io/pod-index": str(index),
    }
    notes = {constants.SUBDOMAIN_POLICY: "UniquePerReplica"} if is_unique(lws) else {}
    pod = _pod(lws, "leader", name, index, 0, labels, notes, membership)
    if topology(lws):
        placement.keep_apart(pod["spec"], topology(lws), constants.GROUP_KEY, labels[constants.GROUP_KEY])
    _subgroup_terms(lws, pod)
    pod["metadata"]["ownerReferences"] = [owner_reference(lws)]
    return pod


def worker(lws: Object, led_by: Object, number: int, domain: str = "", membership: Membership = ALONE) -> Object:
    """`lws` as of the leader's revision. `domain`: the value of the exclusive topology's label where the leader is."""
    index = group_index(led_by)
    labels = {key: label(led_by, key) for key in (constants.REVISION, constants.GROUP_INDEX, constants.GROUP_KEY)}
    labels["apps.kubernetes.io/pod-index"] = str(number)
    notes = {constants.LEADER_NAME: name_of(led_by)}
    if tpu.requests_tpus(pod_spec(lws, "leader")):
        notes[constants.LEADER_REQUESTS_TPUS] = "true"
    pod = _pod(lws, "worker", f"{name_of(led_by)}-{number}", index, number, labels, notes, membership)
    if domain:
        pod["spec"]["nodeSelector"] = {**(pod["spec"].get("nodeSelector") or {}), topology(lws): domain}
    _subgroup_terms(lws, pod)
    pod["metadata"]["ownerReferences"] = [owner_reference(led_by)]
    return pod


def _pod(
    lws: Object,
    role: Role,
    name: str,
    index: int,
    number: int,
    labels: Mapping[str, str],
    notes: Mapping[str, str],
    membership: Membership,
) -> Object:
    template = copied(template_of(lws).get(template_name(lws, role)) or {})
    given, spec = template.get("metadata") or {}, template.get("spec") or {}
    own = {
        constants.NAME: name_of(lws),
        constants.WORKER_INDEX: str(number),
        "statefulset.kubernetes.io/pod-name": name,
        **placement.subgroup_labels(lws, leader_name(lws, index), number),
    }
    spec |= {"hostname": name, "subdomain": subdomain(lws, index), **copied(dict(membership.link))}
    _variables(lws, index, number, spec)
    _volumes(lws, name, spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace_of(lws),
            "labels": {**(given.get("labels") or {}), **own, **labels, **membership.labels},
            "annotations": {**(given.get("annotations") or {}), **_notes(lws), **notes, **membership.annotations},
        },
        "spec": spec,
    }


def _notes(lws: Object) -> dict[str, str]:
    found = {constants.SIZE: str(size(lws))}
    for key in (constants.EXCLUSIVE_TOPOLOGY, constants.SUBGROUP_EXCLUSIVE_TOPOLOGY):
        value = annotation(lws, key)
        if value:  # an empty one asks for nothing
            found[key] = value
    policy = placement.subgroup_policy(lws)
    if policy:
        found |= {
            constants.SUBGROUP_POLICY: str(policy.get("subGroupPolicyType")),
            constants.SUBGROUP_SIZE: str(policy.get("subGroupSize")),
        }
    return found


def _variables(lws: Object, index: int, number: int, spec: Object) -> None:
    """In front, so that the user's variables may refer to them."""
    address = f"{leader_name(lws, index)}.{subdomain(lws, index)}.{namespace_of(lws)}"
    values = {"LWS_LEADER_ADDRESS": address, "LWS_GROUP_SIZE": str(size(lws)), "LWS_WORKER_INDEX": str(number)}
    ours = [{"name": name, "value": value} for name, value in values.items()]
    for member in ("initContainers", "containers"):
        for container in spec.get(member) or ():
            theirs = [one for one in container.get("env") or () if one.get("name") not in values]
            container["env"] = [*copied(ours), *theirs]
    tpu.add_variables(lws, index, number, spec)


def claim_name(template: str, pod: str) -> str:
    return f"{template}-{pod}"


def _volumes(lws: Object, pod: str, spec: Object) -> None:
    """Each pod's own claims take the place of volumes of their names."""
    names = [name_of(one) for one in template_of(lws).get("volumeClaimTemplates") or ()]
    if not names:
        return
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": claim_name(name, pod)}} for name in names]
    spec["volumes"] = [*claims, *(one for one in spec.get("volumes") or () if one.get("name") not in names)]


def _subgroup_terms(lws: Object, pod: Object) -> None:
    domain, key = annotation(lws, constants.SUBGROUP_EXCLUSIVE_TOPOLOGY), label(pod, constants.SUBGROUP_KEY)
    if domain and key:
        placement.keep_apart(pod["spec"], domain, constants.SUBGROUP_KEY, key)
