"""runtimePatches laid over a runtime's template (spec trainjob 1.4): a strategic merge, in the order of the list."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.kind import Object
from kohort.kinds.trainer.api.validation import patches_of

# Lists that merge by a member of their items; others are replaced whole.
_KEYS: Final = {
    "replicatedJobs": "name",
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}


def apply_patches(template: dict[str, Any], job: Object) -> dict[str, Any]:
    """The template of the runtime (metadata and JobSet spec) with the TrainJob's patches; the input stays as it is."""
    order = [found.get("name") for found in (template.get("spec") or {}).get("replicatedJobs") or []]
    for patch in patches_of(job):
        change = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
        template = merge(template, change)
    jobs = (template.get("spec") or {}).get("replicatedJobs")
    if jobs:
        jobs.sort(key=lambda found: order.index(found.get("name")) if found.get("name") in order else -1)
    return template


def merge(target: Any, patch: Any, member: str = "") -> Any:
    """A copy of `target` with the patch; patched items of a list come first."""
    if isinstance(patch, dict) and isinstance(target, dict):
        made = dict(target)
        for name, value in patch.items():
            if value is not None:
                made[name] = merge(target.get(name), value, name)
        return made
    key = _KEYS.get(member)
    if key is None or not isinstance(patch, list) or not isinstance(target, list):
        return patch
    known = {item.get(key): item for item in target}
    first = [merge(known.get(item.get(key), {}), item) for item in patch]
    patched = {item.get(key) for item in patch}
    return [*first, *(item for item in target if item.get(key) not in patched)]
