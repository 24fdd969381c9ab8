"""How many pods each ReplicaSet of a Deployment is to have: plain functions of numbers and stored sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, is_deleting, meta_of, name_of, number, status_of, uid_of
from kohort.apimachinery.intstr import scaled
from kohort.controllermanager.deployment import constants

_ROLLING: Final = "RollingUpdate"
Sizes = list[tuple[Object, int]]  # ReplicaSets, each with the number of pods that it is to have


def replicas(obj: Object) -> int:
    found = (obj.get("spec") or {}).get("replicas")
    return 1 if found is None else int(found)


def available(rs: Object) -> int:
    """Not more than it is to have: the status may tell of pods that have just been given up."""
    return min(replicas(rs), int(status_of(rs).get("availableReplicas") or 0))


def total(sets: Iterable[Object]) -> int:
    return sum(map(replicas, sets))


def counted(sets: Iterable[Object | None], member: str) -> int:
    return sum(int(status_of(rs).get(member) or 0) for rs in sets if rs is not None)


def active(sets: Iterable[Object]) -> list[Object]:
    return [rs for rs in sets if replicas(rs) > 0]


def is_rolling(deployment: Object) -> bool:
    return str((deployment["spec"].get("strategy") or {}).get("type") or _ROLLING) == _ROLLING


def _bounds(deployment: Object) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers; not both 0, or nothing would ever move."""
    rolling: dict[str, Any] = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    wanted = replicas(deployment)
    surge = scaled(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), wanted)
    return surge, unavailable if surge or unavailable else 1


def max_surge(deployment: Object) -> int:
    return _bounds(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Object) -> int:
    if not is_rolling(deployment) or replicas(deployment) == 0:
        return 0
    return min(_bounds(deployment)[1], replicas(deployment))


def oldest_first(sets: Iterable[Object]) -> list[Object]:
    return sorted(sets, key=_age)


def _age(rs: Object) -> tuple[str, str]:
    return str(meta_of(rs).get("creationTimestamp") or ""), name_of(rs)


def revision(obj: Object) -> int:
    return number(annotation(obj, constants.REVISION) or "0", 0)


# ---- the new one


def new_size(deployment: Object, sets: Sequence[Object], new: Object) -> int:
    """Of the new ReplicaSet, which is one of `sets`: as many as there is room for."""
    wanted, now = replicas(deployment), replicas(new)
    if not is_rolling(deployment) or now >= wanted:
        return wanted
    room = wanted + max_surge(deployment) - total(sets)
    return now + min(max(0, room), wanted - now)


# ---- the old ones


def shrunk(deployment: Object, old: Sequence[Object], new: Object) -> Sizes:
    """What old ReplicaSets may lose in a rolling update: pods that are not available first, then any to spare."""
    sets = [*old, new]
    least = replicas(deployment) - max_unavailable(deployment)
    most = total(sets) - least - (replicas(new) - available(new))
    if most <= 0 or not total(old):
        return []
    sizes = {uid_of(rs): replicas(rs) for rs in old}
    for rs in oldest_first(old):  # unhealthy pods help nobody
        loss = min(most, max(0, sizes[uid_of(rs)] - available(rs)))
        sizes[uid_of(rs)] -= loss
        most -= loss
    spare = sum(map(available, sets)) - least
    for rs in oldest_first(old):
        loss = min(max(0, spare), sizes[uid_of(rs)])
        sizes[uid_of(rs)] -= loss
        spare -= loss
    return [(rs, sizes[uid_of(rs)]) for rs in oldest_first(old) if sizes[uid_of(rs)] != replicas(rs)]


def to_clean(deployment: Object, old: Sequence[Object]) -> list[Object]:
    """ReplicaSets beyond revisionHistoryLimit that have no pods: the lowest revisions."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None or int(limit) == constants.NO_DEADLINE:
        return []
    alive = [rs for rs in old if not is_deleting(rs)]
    surplus = sorted(alive, key=lambda rs: (revision(rs), *_age(rs)))[: max(0, len(alive) - int(limit))]
    return [rs for rs in surplus if not replicas(rs) and not counted([rs], "replicas") and _is_observed(rs)]


def _is_observed(rs: Object) -> bool:
    return int(meta_of(rs).get("generation") or 0) <= int(status_of(rs).get("observedGeneration") or 0)


# ---- a Deployment whose number changed


def is_scaled(deployment: Object, sets: Iterable[Object]) -> bool:
    """Whether spec.replicas is another than when its ReplicaSets got theirs."""
    known = (annotation(rs, constants.DESIRED) for rs in active(sets))
    return any(text is not None and number(text) != replicas(deployment) for text in known)


def spread(deployment: Object, new: Object | None, old: Sequence[Object]) -> Sizes:
    """The sizes after scaling: by their shares, if a rollout is under way."""
    wanted = replicas(deployment)
    sets = [*old, *([new] if new is not None else [])]
    running = active(sets)
    if len(running) <= 1:
        one = running[0] if running else new if new is not None else _latest(old)
        return [(one, wanted)] if one is not None and replicas(one) != wanted else []
    if new is not None and _is_saturated(deployment, new):
        return [(rs, 0) for rs in active(old)]
    return _by_share(deployment, running) if is_rolling(deployment) else []


def _latest(old: Sequence[Object]) -> Object | None:
    return max(old, key=_age, default=None)


def _is_saturated(deployment: Object, new: Object) -> bool:
    wanted = replicas(deployment)
    desired = number(annotation(new, constants.DESIRED) or "")
    return desired == wanted == replicas(new) == available(new)


def _by_share(deployment: Object, running: Sequence[Object]) -> Sizes:
    wanted = replicas(deployment)
    allowed = wanted + max_surge(deployment) if wanted else 0
    change = allowed - total(running)
    # The largest first; of equal ones, the newest grows and the oldest shrinks.
    by_age = oldest_first(running)
    order = sorted(by_age[::-1] if change > 0 else by_age, key=lambda rs: -replicas(rs))
    sizes, added = {}, 0
    for rs in order:
        share = _share(deployment, rs, change, added) if change else 0
        sizes[uid_of(rs)] = replicas(rs) + share
        added += share
    if change:
        first = uid_of(order[0])
        sizes[first] = max(0, sizes[first] + change - added)
    return [(rs, sizes[uid_of(rs)]) for rs in order]


def _share(deployment: Object, rs: Object, change: int, added: int) -> int:
    left = change - added
    if not left:
        return 0
    fraction = _fraction(deployment, rs)
    return min(fraction, left) if change > 0 else max(fraction, left)


def _fraction(deployment: Object, rs: Object) -> int:
    now = replicas(rs)
    if replicas(deployment) == 0:
        return -now
    most = replicas(deployment) + max_surge(deployment)
    before = number(annotation(rs, constants.MAXIMUM) or "", 0) or counted([deployment], "replicas")
    return math.floor(now * most / before + 0.5) - now if before else 0
