"""What a set consists of beside its pods: headless Services, volume claims, ControllerRevisions (spec lws 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label, name_of, namespace_of, number, owner_reference
from kohort.controllers.reconcile import Part, Step
from kohort.controllers.writes import create
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.revision import revision_data
from kohort.kinds.leaderworkerset.control.pods import claim_name
from kohort.kinds.leaderworkerset.control.reading import template_of, worker_index
from kohort.kinds.leaderworkerset.control.writes import is_ending, remove_all

_CLAIM_MEMBERS: Final = ("accessModes", "storageClassName", "volumeMode", "resources")


def shared_service(lws: Object) -> Object:
    return _service(lws, lws, {constants.NAME: name_of(lws)})


def group_service(lws: Object, leader: Object) -> Object:
    """It goes with the leader pod and comes back with the next."""
    return _service(
        lws, leader, {constants.NAME: name_of(lws), constants.GROUP_INDEX: label(leader, constants.GROUP_INDEX)}
    )


def _service(lws: Object, owned_by: Object, selector: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name_of(owned_by),
            "namespace": namespace_of(lws),
            "labels": {constants.NAME: name_of(lws)},
            "ownerReferences": [owner_reference(owned_by)],
        },
        "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True},
    }


def _claims_of(lws: Object, pod: Object) -> list[Object]:
    """Of one pod, as a StatefulSet makes them; labels and the volume's name of the template are not carried over."""
    retention = template_of(lws).get("persistentVolumeClaimRetentionPolicy") or {}
    keys = (
        (constants.NAME, constants.WORKER_INDEX)
        if worker_index(pod) == 0
        else (
            constants.NAME,
            constants.GROUP_INDEX,
            constants.GROUP_KEY,
        )
    )
    found = []
    for template in template_of(lws).get("volumeClaimTemplates") or ():
        meta: dict[str, Any] = {
            "name": claim_name(name_of(template), name_of(pod)),
            "namespace": namespace_of(lws),
            "labels": {key: label(pod, key) for key in keys},
        }
        if retention.get("whenDeleted") == "Delete":
            meta["ownerReferences"] = [{**owner_reference(lws), "controller": False, "blockOwnerDeletion": False}]
        given = template.get("spec") or {}
        spec = {member: given[member] for member in _CLAIM_MEMBERS if given.get(member) is not None}
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
    return found


def revision(lws: Object, key: str, number: int, annotations: dict[str, str]) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{name_of(lws)}-{key}-{number}",
            "namespace": namespace_of(lws),
            "labels": {constants.NAME: name_of(lws), constants.REVISION: key},
            "annotations": annotations,
            "ownerReferences": [owner_reference(lws)],
        },
        "revision": number,
        "data": _sorted(revision_data(lws)),  # as a server that works on it would write it
    }


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def ensure_claims(lws: Object, wanted: Sequence[Object], known: Mapping[str, Object]) -> Part:
    """Claims are made before their pods. -> what went wrong. `lws` as of the pods' revision."""
    claims = [claim for pod in wanted for claim in _claims_of(lws, pod) if name_of(claim) not in known]
    if not claims:
        return []
    answers = yield Step([create(claim) for claim in claims])
    return [
        f"PersistentVolumeClaim {name_of(claim)} could not be created: {answer.refusal.message}"
        for claim, answer in zip(claims, answers, strict=True)
        if answer.refusal is not None and not answer.refusal.already_exists and not is_ending(answer.refusal)
    ]


def clean_claims(lws: Object, known: Mapping[str, Object], pods: Sequence[Object], groups: int) -> Part:
    """Those of groups that were scaled away, where the set says so."""
    template = template_of(lws)
    if (template.get("persistentVolumeClaimRetentionPolicy") or {}).get("whenScaled") != "Delete":
        return
    used = {
        claim_name(name_of(one), name_of(pod)) for one in template.get("volumeClaimTemplates") or () for pod in pods
    }
    gone = []
    for one in template.get("volumeClaimTemplates") or ():
        prefix = claim_name(name_of(one), name_of(lws)) + "-"
        for name, claim in known.items():
            index = number(name.removeprefix(prefix).partition("-")[0]) if name.startswith(prefix) else -1
            if index >= groups and name not in used and not is_deleting(claim):
                gone.append(claim)
    yield from remove_all(gone)
