"""Which pods go first when there are too many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cmp_to_key
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, meta_of, uid_of
from kohort.apimachinery import times
from kohort.controllermanager import pods as pods_

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_LARGEST_COST: Final = 2**31


def to_delete(pods: Sequence[Object], related: Sequence[Object], count: int, now: datetime) -> list[Object]:
    """`related`: pods of all ReplicaSets of one Deployment; nodes that have many of them lose some first."""
    if count >= len(pods):
        return list(pods)
    crowd = Counter(pods_.node_of(pod) for pod in related if pods_.is_active(pod))

    def compare(one: Object, other: Object) -> int:
        return _compare(one, other, crowd, now)

    return sorted(pods, key=cmp_to_key(compare))[:count]


def deletion_cost(pod: Object) -> int:
    """What cannot be read counts as 0, as upstream has it."""
    text = annotation(pod, DELETION_COST) or "0"
    sign, digits = (-1, text[1:]) if text[:1] == "-" else (1, text)
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        return 0
    value = sign * int(digits) if len(digits) < 11 else _LARGEST_COST
    return value if -_LARGEST_COST <= value < _LARGEST_COST else 0


def _compare(one: Object, other: Object, crowd: Counter[str], now: datetime) -> int:
    """Below 0: `one` goes first."""
    first, second = _plain(one, crowd), _plain(other, crowd)
    if first != second:
        return -1 if first < second else 1
    if pods_.is_ready(one):
        found = _younger(pods_.ready_since(one), pods_.ready_since(other), one, other, now)
        if found:
            return found
    fewer = pods_.restarts(other) - pods_.restarts(one)
    return fewer or _younger(_created(one), _created(other), one, other, now)


def _plain(pod: Object, crowd: Counter[str]) -> tuple[bool, int, bool, int, int]:
    node = pods_.node_of(pod)
    return bool(node), _PHASES.get(pods_.phase(pod), 0), pods_.is_ready(pod), deletion_cost(pod), -crowd[node]


def _younger(one: datetime | None, other: datetime | None, first: Object, second: Object, now: datetime) -> int:
    """The younger goes; those of about the same age (a power of two) by chance, which their uids are."""
    if one == other:
        return 0
    if one is None or other is None:
        return -1 if one is None else 1
    return _age(one, now) - _age(other, now) or (-1 if uid_of(first) < uid_of(second) else 1)


def _age(since: datetime, now: datetime) -> int:
    """In powers of two, from nanoseconds on."""
    seconds = (now - since).total_seconds()
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def _created(pod: Object) -> datetime | None:
    return times.parse(meta_of(pod).get("creationTimestamp"))
