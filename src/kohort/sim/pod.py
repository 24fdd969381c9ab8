"""A pod as a virtual kubelet reads it: the rest is not even decoded."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kohort.apimachinery import times
from kohort.sim.command import Ending, ending, referred


class Labels(msgspec.Struct):
    """Those by which Grove's init container finds the pods that it waits for, and those that variables are made of."""

    gang: str = msgspec.field(default="", name="grove.io/podgang")
    clique: str = msgspec.field(default="", name="grove.io/podclique")
    completion_index: str | None = msgspec.field(default=None, name="batch.kubernetes.io/job-completion-index")
    pod_index: str | None = msgspec.field(default=None, name="apps.kubernetes.io/pod-index")
    clique_index: str | None = msgspec.field(default=None, name="grove.io/podclique-pod-index")
    job_index: str | None = msgspec.field(default=None, name="jobset.sigs.k8s.io/job-index")
    job_global_index: str | None = msgspec.field(default=None, name="jobset.sigs.k8s.io/job-global-index")
    restart_attempt: str | None = msgspec.field(default=None, name="jobset.sigs.k8s.io/restart-attempt")
    replicated_job: str | None = msgspec.field(default=None, name="jobset.sigs.k8s.io/replicatedjob-name")
    group_index: str | None = msgspec.field(default=None, name="leaderworkerset.sigs.k8s.io/group-index")
    worker_index: str | None = msgspec.field(default=None, name="leaderworkerset.sigs.k8s.io/worker-index")

    def get(self, key: str) -> str | None:
        found: str | None = getattr(self, _LABELS[key]) if key in _LABELS else None
        return found


_LABELS: Final = dict(zip(Labels.__struct_encode_fields__, Labels.__struct_fields__, strict=True))
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] = {}
    labels: Labels = msgspec.field(default_factory=Labels)


class FieldRef(msgspec.Struct, rename="camel"):
    field_path: str = ""


class Source(msgspec.Struct, rename="camel"):
    field_ref: FieldRef | None = None


class Variable(msgspec.Struct, rename="camel"):
    name: str
    value: str = ""
    value_from: Source | None = None


class Container(msgspec.Struct, rename="camel"):
    name: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    restart_policy: str = ""
    env: list[Variable] = []
    resources: dict[str, Any] = {}

    @property
    def sidecar(self) -> bool:
        """Of an init container: the next one does not wait for its end."""
        return self.restart_policy == "Always"


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    containers: list[Container] = []
    init_containers: list[Container] = []


class Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: list[dict[str, Any]] = []
    container_statuses: list[dict[str, Any]] = []
    init_container_statuses: list[dict[str, Any]] = []


class Pod(msgspec.Struct):
    """The members of a Pod that a virtual kubelet reads."""

    metadata: Meta
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def over(self) -> bool:
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def ready(self) -> bool:
        return any(one.get("type") == "Ready" and one.get("status") == "True" for one in self.status.conditions)

    def says(self, container: Container) -> Ending | None:
        """What the command of one of its containers says; None: nothing that is understood."""
        words = (*container.command, *container.args)
        if not container.env or not any("$" in word for word in words):
            return ending(words)
        return ending(words, variables(self, container))

    @property
    def bound(self) -> datetime:
        """When it was given its node."""
        for one in self.status.conditions:
            if one.get("type") == "PodScheduled" and one.get("status") == "True" and one.get("lastTransitionTime"):
                return times.moment(one["lastTransitionTime"])
        return self.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)


def variables(pod: Pod, container: Container) -> tuple[tuple[str, str], ...]:
    """Of a container, as far as the pod says: written out, and from its own fields. Of Secrets nothing is known."""
    found: dict[str, str] = {}
    for one in container.env:
        if one.value_from is None:
            found[one.name] = referred(one.value, found)
        elif one.value_from.field_ref is not None:
            value = _field(pod, one.value_from.field_ref.field_path)
            if value is not None:
                found[one.name] = value
    return tuple(found.items())


def _field(pod: Pod, path: str) -> str | None:
    """Of the downward API; None: not known here."""
    keyed = _KEYED.fullmatch(path)
    if keyed is None:
        meta = pod.metadata
        plain = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        return pod.spec.node_name if path == "spec.nodeName" else plain.get(path.removeprefix("metadata."))
    kind, key = keyed.groups()
    return pod.metadata.labels.get(key) if kind == "labels" else pod.metadata.annotations.get(key)
