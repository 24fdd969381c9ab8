"""All sources, one registration each, and how they are asked: in the order of precedence, until one has an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.grouping.keys import OWN
from kohort.grouping.model import (
    Absent,
    Answer,
    GroupNode,
    Level,
    ObjectLister,
    Place,
    Rule,
    Subject,
    UnseenError,
    WrongError,
)
from kohort.grouping.owners import builtin, jobset, kubeflow, leaderworkerset, ray, spark
from kohort.grouping.schedulers import kai, kohort, koordinator, kueue, schedulerplugins, volcano, yunikorn

RULES: Final = (
    kohort.RULE,
    schedulerplugins.RULE,
    volcano.RULE,
    kai.RULE,
    schedulerplugins.LIGHT_RULE,
    koordinator.RULE,
    kueue.RULE,
    yunikorn.RULE,
    jobset.RULE,
    jobset.TRAINJOB_RULE,
    leaderworkerset.RULE,
    kubeflow.RULE,
    ray.RULE,
    spark.RULE,
    builtin.JOB_RULE,
    builtin.REPLICAS_RULE,
)


READ: Final = frozenset(  # annotations that rules read, of pods and owners
    {*OWN, volcano.MIN_MEMBER, kai.BATCH_MIN_MEMBER, jobset.NODE_SELECTOR, leaderworkerset.EXCLUSIVE}
    | {key for rule in RULES for key in (*rule.keys, *rule.also)}
)


def names() -> tuple[str, ...]:
    return tuple(one.name for one in RULES)


def group(pod: Subject, lister: ObjectLister, rules: Iterable[Rule] = RULES) -> Answer:
    """The place of a pod that names no schedulingGroup. Of several places of one level, that are not the same, none
    can be chosen: the pod says two things."""
    found: list[Place] = []
    for rule in rules:
        if found and rule.level > found[0].level:
            break
        try:
            place = rule.place(pod, lister)
        except UnseenError as gap:
            if found:
                continue
            return Absent(rule.name, gap.kind, gap.namespace, gap.name, _said(pod, rule), gap.wait)
        except WrongError as wrong:
            return misconfigured(pod, rule.name, str(wrong), _said(pod, rule))
        except (AttributeError, KeyError, TypeError, ValueError) as fault:  # an object of a shape that nobody expects
            return misconfigured(pod, rule.name, f"rule {rule.name} cannot read {_said(pod, rule)}: {fault}", "")
        if place is not None:
            found.append(place)
    if len(found) < 2:
        return found[0] if found else None
    best = min(found, key=lambda one: one.level)
    other = next((one for one in found if one.level == best.level and not _agree(one, best)), None)
    if other is not None:
        text = f"{_told(best)} and {_told(other)} contradict each other: take one of the two away"
        return misconfigured(pod, best.rule, text, best.said, best)
    return best


def misconfigured(pod: Subject, rule: str, text: str, said: str, place: Place | None = None) -> Place:
    """Pods that say the same wrong thing wait as one, with the reason."""
    name = place.leaf if place is not None else (pod.owner.name if pod.owner is not None else pod.name)
    level = place.level if place is not None else Level.OWNER
    return Place(rule, level, pod.namespace, name, (GroupNode(name, None),), said, pod.owner, problem=text)


def _agree(one: Place, other: Place) -> bool:
    return (one.leaf, one.leaf_node.minimum) == (other.leaf, other.leaf_node.minimum)


def _told(place: Place) -> str:
    minimum = place.leaf_node.minimum
    gang = "no minimum" if minimum is None else f"a minimum of {minimum}"
    return f"{place.said} ({place.rule}: group {place.leaf}, {gang})"


def _said(pod: Subject, rule: Rule) -> str:
    key = next((one for one in rule.keys if pod.said(one)), None)
    if key is not None:
        return pod.where(key)
    return f"{pod.owner.kind} {pod.namespace}/{pod.owner.name}" if pod.owner is not None else pod.name
