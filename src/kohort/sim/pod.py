"""A pod as a virtual kubelet reads it: the rest is not even decoded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from kohort.apimachinery import times


class Labels(msgspec.Struct):
    """Those by which Grove's init container finds the pods that it waits for."""

    gang: str = msgspec.field(default="", name="grove.io/podgang")
    clique: str = msgspec.field(default="", name="grove.io/podclique")


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


class Container(msgspec.Struct, rename="camel"):
    name: str
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    restart_policy: str = ""

    @property
    def sidecar(self) -> bool:
        """Of an init container: the next one does not wait for its end."""
        return self.restart_policy == "Always"


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    restart_policy: str = "Always"
    containers: list[Container] = []
    init_containers: list[Container] = []


class Status(msgspec.Struct, rename="camel"):
    phase: str = ""
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

    @property
    def bound(self) -> datetime:
        """When it was given its node."""
        for one in self.status.conditions:
            if one.get("type") == "PodScheduled" and one.get("status") == "True" and one.get("lastTransitionTime"):
                return moment(one["lastTransitionTime"])
        return self.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)


def moment(written: str) -> datetime:
    return datetime.fromisoformat(written)


def text(found: datetime) -> str:
    return times.seconds(found)
