"""Spare pods: they hold room in the domain of a gang, with its images on the node, until a member needs their place.

A spare is a pod of its own. It is not a member of its gang and counts for no minimum: the annotation
`kohort.dev/spare-of` says whose it is. Why so: docs/decisions/0030-spare-pods.md.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

from kohort.api.scheduling.healing import SPARE_COMMAND, SPARE_OF
from kohort.scheduler.model import Node
from kohort.scheduler.trees import PodInfo

Json = dict[str, Any]
_LOST: Final = frozenset({"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"})
_KEPT: Final = (  # of the spec of a member
    "nodeSelector",
    "tolerations",
    "schedulerName",
    "priorityClassName",
    "runtimeClassName",
    "overhead",
    "imagePullSecrets",
    "securityContext",
    "os",
)
_KEPT_OF_CONTAINERS: Final = ("name", "image", "imagePullPolicy", "securityContext", "resources")
_TRACKING: Final = "batch.kubernetes.io/job-tracking"
_SLEEP: Final = ("sleep", "infinity")


class Spares:
    """The spares that there are, by group, and the nodes that are not heard of."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, PodInfo]] = {}
        self.lost: set[str] = set()
        self.version = 0  # of lost nodes and of spares

    def __bool__(self) -> bool:
        return bool(self._of)

    def groups(self) -> list[str]:
        return list(self._of)

    def of(self, group: str) -> list[PodInfo]:
        return list(self._of.get(group, {}).values())

    def ready(self, group: str) -> list[PodInfo]:
        """Those whose place can be had now."""
        return [one for one in self.of(group) if self.is_ready(one)]

    def is_ready(self, spare: PodInfo) -> bool:
        bound = bool(spare.node) and not spare.assumed and spare.node not in self.lost
        return bound and not spare.evicting and spare.pod.metadata.deletion_timestamp is None

    def add(self, member: PodInfo) -> None:
        group = spare_of(member)
        if group:
            self._of.setdefault(group, {})[member.uid] = member
            self.version += 1

    def remove(self, member: PodInfo) -> None:
        group = spare_of(member)
        if group and group in self._of:
            self._of[group].pop(member.uid, None)
            if not self._of[group]:
                del self._of[group]

    def moved(self, member: PodInfo) -> None:
        """A pod has a node, or is meant for one."""
        if spare_of(member):
            self.version += 1

    def look_at(self, node: Node) -> None:
        taints = node.spec.taints or ()
        lost = any(one.get("key") in _LOST and one.get("effect") == "NoExecute" for one in taints)
        name = node.metadata.name
        if lost != (name in self.lost):
            (self.lost.add if lost else self.lost.discard)(name)
            self.version += 1

    def forget_node(self, name: str) -> None:
        self.lost.discard(name)


def spare_of(member: PodInfo) -> str:
    """The group whose spare it is; empty: it is none."""
    said = member.pod.metadata.annotations
    return said.get(SPARE_OF, "") if said else ""


def spare_body(member: Mapping[str, Any], name: str, group: str, owner: Json) -> Json:
    """A pod that takes as much room as a member, with its images, and does nothing."""
    meta, spec = member["metadata"], member["spec"]
    made = {field: copy.deepcopy(spec[field]) for field in _KEPT if field in spec}
    made["tolerations"] = [one for one in made.get("tolerations") or () if not _is_added(one)]
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity")
    if node_affinity:
        made["affinity"] = {"nodeAffinity": copy.deepcopy(node_affinity)}
    said = (meta.get("annotations") or {}).get(SPARE_COMMAND, "")
    command = shlex.split(said) if said else list(_SLEEP)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "annotations": {SPARE_OF: group},
            "labels": {"app.kubernetes.io/managed-by": "kohort"},
            "ownerReferences": [owner],
        },
        "spec": {
            **made,
            "containers": [{**one, "command": command} for one in _containers(spec)],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        },
    }


def successor_body(lost: Mapping[str, Any]) -> Json:
    """A Job's pod once more, for the same index, before it had a node. Its name follows from the one that is lost."""
    meta = lost["metadata"]
    kept = {field: copy.deepcopy(meta[field]) for field in ("labels", "annotations") if field in meta}
    kept["finalizers"] = [one for one in meta.get("finalizers") or () if one == _TRACKING]
    owners = [{**one, "blockOwnerDeletion": False} for one in meta.get("ownerReferences") or ()]
    stem = (meta.get("generateName") or f"{meta['name']}-")[:57]
    spec = copy.deepcopy(lost["spec"])
    for field in ("nodeName", "ephemeralContainers"):
        spec.pop(field, None)
    spec["tolerations"] = [one for one in spec.get("tolerations") or () if not _is_added(one)]
    name = stem + blake2b(meta["uid"].encode(), digest_size=3).hexdigest()[:5]
    own = {"name": name, "namespace": meta["namespace"], "generateName": stem, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**kept, **own}, "spec": spec}


def _containers(spec: Mapping[str, Any]) -> Iterator[Json]:
    """Init containers that stay (sidecars) take room beside the others; those that end take none in the end."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*spec["containers"], *sidecars):
        found = {field: copy.deepcopy(container[field]) for field in _KEPT_OF_CONTAINERS if field in container}
        if "resources" in found:
            found["resources"].pop("claims", None)
        yield found


def _is_added(toleration: Mapping[str, Any]) -> bool:
    """By the API server, to every pod."""
    return toleration.get("key") in _LOST and toleration.get("effect") == "NoExecute"


def spare_name(group: str, number: int) -> str:
    """Of a group's key; short enough for a hostname."""
    return f"{group.rpartition('/')[2][:48].rstrip('.-')}-spare-{number}"
