"""Volume claims of the pods of a StatefulSet: made before them, and owned as the retention policy says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import controller_uid, is_deleting, meta_of, name_of, owner_reference, uid_of
from kohort.controllermanager.statefulset.members import claim_name, new_claim, ordinal, ordinals
from kohort.controllers.reconcile import Event, Part, ReconcileError, Step, emit
from kohort.controllers.writes import create, update

Claims = Callable[[str], Object | None]  # by name


def claims_of(sts: Object, pod: Object, known: Claims) -> list[Object]:
    templates = sts["spec"].get("volumeClaimTemplates") or ()
    found = (known(claim_name(sts, one, ordinal(pod))) for one in templates)
    return [claim for claim in found if claim is not None]


def is_stale(sts: Object, pod: Object, known: Claims) -> bool:
    """Whether a claim is going, or goes with a former pod of the same name: the new pod waits for a new claim."""
    return any(
        is_deleting(claim)
        or any(
            ref.get("kind") == "Pod" and ref.get("name") == name_of(pod) and ref.get("uid") != uid_of(pod)
            for ref in meta_of(claim).get("ownerReferences") or ()
        )
        for claim in claims_of(sts, pod, known)
    )


def ensure(sts: Object, pods: Sequence[Object], known: Claims) -> Part:
    """Makes what is missing."""
    templates = sts["spec"].get("volumeClaimTemplates") or ()
    missing = [(pod, one) for pod in pods for one in templates if known(claim_name(sts, one, ordinal(pod))) is None]
    if not missing:
        return
    bodies = [_owned(sts, None, new_claim(sts, one, ordinal(pod))) for pod, one in missing]
    answers = yield Step([create(claim) for claim in bodies])
    events, problem = [], ""
    for (pod, _), claim, answer in zip(missing, bodies, answers, strict=True):
        what = f"create Claim {name_of(claim)} Pod {name_of(pod)} in StatefulSet {name_of(sts)}"
        if answer.refusal is None:
            events.append(Event(sts, "Normal", "SuccessfulCreate", f"{what} success"))
        elif not answer.refusal.already_exists:
            problem = f"{what} failed error: {answer.refusal.message}"
            events.append(Event(sts, "Warning", "FailedCreate", problem))
    yield from emit(*events)
    if problem:
        raise ReconcileError(problem)


def follow_policy(sts: Object, pods: Sequence[Object], known: Claims) -> Part:
    """-> pods whose claims got other owners: the set, if claims go with it; a pod that is scaled away, if with that."""
    writes, changed = [], []
    for pod in pods:
        for claim in claims_of(sts, pod, known):
            wanted = _owned(sts, pod, claim)
            if _references(wanted) != _references(claim) and not is_deleting(claim):
                writes.append(update(wanted))
                changed.append(pod)
    if writes:
        answers = yield Step(writes)
        wrong = [answer.refusal.message for answer in answers if answer.refusal is not None]
        if wrong:
            raise ReconcileError("; ".join(wrong))
    return changed


def _references(claim: Object) -> list[dict[str, Any]]:
    return list(meta_of(claim).get("ownerReferences") or ())


def _owned(sts: Object, pod: Object | None, claim: Object) -> Object:
    """The claim with the owners that the policy asks for. One that somebody else controls stays theirs."""
    policy = sts["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    known = (uid_of(sts), uid_of(pod) if pod is not None else uid_of(sts))
    if controller_uid(claim) and controller_uid(claim) not in known:
        return claim
    others = [ref for ref in _references(claim) if ref.get("uid") not in known]
    scaled_away = pod is not None and ordinal(pod) not in ordinals(sts)
    owner: Object | None = None
    if scaled_away and policy.get("whenScaled") == "Delete":
        owner = pod
    elif policy.get("whenDeleted") == "Delete":
        owner = sts
    references = [*others, owner_reference(owner)] if owner is not None else others
    meta = {name: value for name, value in meta_of(claim).items() if name != "ownerReferences"}
    return {**claim, "metadata": {**meta, "ownerReferences": references} if references else meta}
