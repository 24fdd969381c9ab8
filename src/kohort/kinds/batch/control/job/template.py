"""A pod of a Job, from its template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import owner_reference
from kohort.kinds.batch.control.job import pod as pods_

MAX_GENERATED: Final = 58  # what a server leaves of generateName before it adds its five characters
_ENV: Final = "JOB_COMPLETION_INDEX"


def new_pod(
    job: Object, index: int | None, link: Mapping[str, Any], counters: Mapping[str, str] | None = None
) -> Object:
    """`link`: the member of the pod's spec that names its group; `counters`: annotations of an index's failures."""
    meta, template = job["metadata"], job["spec"].get("template") or {}
    given, spec = template.get("metadata") or {}, copied(template.get("spec") or {})
    labels, annotations = dict(given.get("labels") or {}), dict(given.get("annotations") or {})
    annotations |= counters or {}
    if index is not None:
        labels[pods_.INDEX] = annotations[pods_.INDEX] = str(index)
        spec["hostname"] = f"{meta['name']}-{index}"
        for member in ("initContainers", "containers"):
            for container in spec.get(member) or ():
                _add_index(container)
    spec.update(copied(dict(link)))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": generate_name(str(meta["name"]), index),
            "namespace": meta.get("namespace") or "default",
            **({"labels": labels} if labels else {}),
            **({"annotations": annotations} if annotations else {}),
            "finalizers": [*(given.get("finalizers") or ()), pods_.FINALIZER],
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def generate_name(job: str, index: int | None) -> str:
    if index is None:
        return f"{job}-"
    end = f"-{index}-"
    return job[: MAX_GENERATED - len(end)] + end


def _add_index(container: dict[str, Any]) -> None:
    if any(one.get("name") == _ENV for one in container.get("env") or ()):
        return
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{pods_.INDEX}']"}}
    container["env"] = [*(container.get("env") or ()), {"name": _ENV, "valueFrom": source}]
