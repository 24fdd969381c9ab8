"""Which ReplicaSet is the new one, what it is called, and the annotations that `kubectl rollout` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import annotation, meta_of, namespace_of, number, owner_reference, status_of, uid_of
from kohort.apimachinery.podresources import in_canonical_form
from kohort.controllermanager.deployment import constants
from kohort.controllermanager.deployment.numbers import max_surge, oldest_first, replicas, revision
from kohort.controllermanager.podtemplate import template_hash


def split(deployment: Object, sets: Sequence[Object]) -> tuple[Object | None, list[Object]]:
    """The ReplicaSet of today's template, if there is one, and the others."""
    new = next((rs for rs in oldest_first(sets) if is_same(deployment, rs)), None)
    return new, [rs for rs in sets if new is None or uid_of(rs) != uid_of(new)]


def is_same(deployment: Object, rs: Object) -> bool:
    return bool(_plain(deployment["spec"].get("template")) == _plain(rs["spec"].get("template")))


def _plain(template: Mapping[str, Any] | None) -> Any:
    """Without the hash, and with amounts in one spelling."""
    found = dict(template or {})
    meta = {name: value for name, value in (found.get("metadata") or {}).items() if value}
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != constants.HASH}
    meta["labels"] = labels
    return in_canonical_form({**found, "metadata": meta})


def new_set(deployment: Object) -> Object:
    """With no pods yet, and without annotations."""
    meta, spec = meta_of(deployment), deployment["spec"]
    hashed = template_hash(spec.get("template"), status_of(deployment).get("collisionCount"))
    template = copied(spec.get("template") or {})
    template["metadata"] = {**(template.get("metadata") or {})}
    labels = {**(template["metadata"].get("labels") or {}), constants.HASH: hashed}
    template["metadata"]["labels"] = labels
    selector = copied(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), constants.HASH: hashed}
    wanted = {"replicas": 0, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        wanted["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{hashed}",
            "namespace": namespace_of(deployment),
            "labels": dict(labels),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": wanted,
    }


def new_annotations(deployment: Object, rs: Object, old: Sequence[Object]) -> dict[str, str]:
    """Of the new ReplicaSet: those of the Deployment, and a revision above all others."""
    found = dict(meta_of(rs).get("annotations") or {})
    given = meta_of(deployment).get("annotations") or {}
    found |= {key: value for key, value in given.items() if key not in constants.NOT_COPIED}
    highest = max(map(revision, old), default=0) + 1
    before = annotation(rs, constants.REVISION)
    if number(before or "0", 0) < highest:
        found[constants.REVISION] = str(highest)
        if before is not None:  # rolled back to: the number that it had is remembered
            found[constants.REVISION_HISTORY] = _history(found.get(constants.REVISION_HISTORY) or "", before)
    return found


def _history(known: str, number_: str) -> str:
    parts = [*known.split(","), number_] if known else [number_]
    while len(parts) > 1 and len(",".join(parts)) > constants.LONGEST_HISTORY:
        parts = parts[1:]
    return ",".join(parts)


def size_annotations(deployment: Object) -> dict[str, str]:
    """What the Deployment wanted when the ReplicaSet got its size: shares are counted from it."""
    wanted = replicas(deployment)
    return {constants.DESIRED: str(wanted), constants.MAXIMUM: str(wanted + max_surge(deployment))}
