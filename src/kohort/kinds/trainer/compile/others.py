"""Gang schedulers that Trainer knew before: coscheduling and Volcano (spec trainjob 2.3).

Their PodGroups are kinds of other projects: one for the whole job, with the sums over all of its ReplicatedJobs.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery import podresources, quantity
from kohort.gang.compile import CompileContext
from kohort.kinds.trainer.api.constants import VOLCANO_QUEUE, pod_spec, spec_of
from kohort.kinds.trainer.compile.draft import Draft

COSCHEDULING_VERSION: Final = "scheduling.x-k8s.io/v1alpha1"
VOLCANO_VERSION: Final = "scheduling.volcano.sh/v1beta1"
KIND: Final = "PodGroup"
_TIMEOUT: Final = 60


def mark_coscheduling(draft: Draft, _: CompileContext) -> None:
    _mark(draft, "labels", "scheduling.x-k8s.io/pod-group")


def mark_volcano(draft: Draft, _: CompileContext) -> None:
    _mark(draft, "annotations", "scheduling.k8s.io/group-name")


def coscheduling(draft: Draft) -> list[Object]:
    timeout = _policy(draft, "coscheduling").get("scheduleTimeoutSeconds", _TIMEOUT)
    return [_pod_group(draft, COSCHEDULING_VERSION, {"scheduleTimeoutSeconds": timeout})]


def volcano(draft: Draft) -> list[Object]:
    """The queue is that of the runtime's template or of a patch, the class the last one found."""
    spec: dict[str, Any] = {}
    queue = ((draft.template.get("metadata") or {}).get("annotations") or {}).get(VOLCANO_QUEUE)
    if queue is not None:
        spec["queue"] = queue
    classes = [found for job in draft.jobs if (found := pod_spec(job).get("priorityClassName"))]
    if classes:
        spec["priorityClassName"] = classes[-1]
    topology = _policy(draft, "volcano").get("networkTopology")
    if topology is not None:
        spec["networkTopology"] = {"highestTierAllowed": 1, **topology}
    return [_pod_group(draft, VOLCANO_VERSION, spec)]


def _policy(draft: Draft, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (spec_of(draft.runtime).get("podGroupPolicy") or {}).get(name) or {}
    return found


def _mark(draft: Draft, member: str, key: str) -> None:
    """On the pods of all ReplicatedJobs, initializers included."""
    for job in draft.jobs:
        pods = job.setdefault("template", {}).setdefault("spec", {}).setdefault("template", {})
        meta = pods.setdefault("metadata", {})
        meta[member] = {**(meta.get(member) or {}), key: draft.name}


def _pod_group(draft: Draft, version: str, spec: dict[str, Any]) -> Object:
    """Replicas are not counted, nor is a limit without a request: as upstream."""
    wanted: list[quantity.Quantities] = []
    for job, count in zip(draft.jobs, draft.counts, strict=True):
        requests, _ = podresources.of_pod({"spec": pod_spec(job)})
        if count:
            wanted.append({name: amount * count for name, amount in requests.items()})
    least = {name: str(amount) for name, amount in sorted(quantity.total(wanted).items())}
    whole = {"minMember": sum(draft.counts), "minResources": least, **spec}
    return {"apiVersion": version, "kind": KIND, "metadata": draft.metadata(draft.name), "spec": whole}
