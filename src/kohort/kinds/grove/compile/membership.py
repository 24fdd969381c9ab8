"""What the backend writes into a pod before it is created (GREP-531 PreparePod): from its labels alone, no lookups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.api.kind import Context, Object
from kohort.kinds.grove.api import constants, options, podspec
from kohort.kinds.grove.compile import names


class MissingLabelError(ValueError):
    """A pod without the labels that say where it belongs must not be created (D18)."""


def link(pod_labels: Mapping[str, str], ctx: Context) -> Object:
    """The part of a pod's spec that makes it a member of its group."""
    gang, clique = (_label(pod_labels, key) for key in (constants.PODGANG, constants.PODCLIQUE))
    if not ctx.release.has_pod_groups:
        return {"workloadRef": {"name": gang, "podGroup": clique}}
    return {"schedulingGroup": {"podGroupName": names.runtime(gang, clique)}}


def prepare(pod: Object, obj: Object, ctx: Context) -> None:
    """Completes a pod of the set in place: scheduler, priority, membership; what a template names itself stays."""
    spec: dict[str, Any] = pod["spec"]
    spec["schedulerName"] = options.scheduler_name(spec)
    if spec["schedulerName"] not in options.GANG_BACKENDS or not ctx.on(options.GANG):
        return
    # Grove keeps the set's class on the PodGang only; pods of one gang need one priority, equal to the group's.
    priority = obj["spec"]["template"].get("priorityClassName")
    if priority and not spec.get("priorityClassName"):
        spec["priorityClassName"] = priority
    if podspec.membership(spec) is None:
        spec |= link(pod["metadata"].get("labels") or {}, ctx)


def _label(pod_labels: Mapping[str, str], key: str) -> str:
    found = pod_labels.get(key)
    if not found:
        raise MissingLabelError(f"metadata.labels[{key}]: not found; a pod of a PodClique needs it to join its group")
    return found
