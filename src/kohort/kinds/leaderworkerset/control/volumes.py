"""Volume claims of pods: made before them; gone with groups that are scaled away, where the set says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, name_of, number
from kohort.controllers.reconcile import Part, Step
from kohort.controllers.writes import create
from kohort.kinds.leaderworkerset.control import children
from kohort.kinds.leaderworkerset.control.pods import claim_name
from kohort.kinds.leaderworkerset.control.reading import template_of
from kohort.kinds.leaderworkerset.control.writes import is_ending, remove_all


def ensure(lws: Object, wanted: Sequence[Object], known: Mapping[str, Object]) -> Part:
    """-> what went wrong. `lws` as of the pods' revision."""
    claims = [claim for pod in wanted for claim in children.claims(lws, pod) if name_of(claim) not in known]
    if not claims:
        return []
    answers = yield Step([create(claim) for claim in claims])
    return [
        f"PersistentVolumeClaim {name_of(claim)} could not be created: {answer.refusal.message}"
        for claim, answer in zip(claims, answers, strict=True)
        if answer.refusal is not None and not answer.refusal.already_exists and not is_ending(answer.refusal)
    ]


def clean(lws: Object, known: Mapping[str, Object], pods: Sequence[Object], groups: int) -> Part:
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
