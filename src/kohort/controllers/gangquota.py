"""All pods of a gang are created, or none: what a namespace's ResourceQuotas leave is looked at before the first.

Without it two gangs that fit one after the other may each get half of their pods from the server and wait for ever.
Whoever was let through holds what its missing pods will take until they are there; others are checked by what is left
beside that. The server has the last word: a gang that it refuses all the same lets go of what it held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import name_of
from kohort.apimachinery.times import parse
from kohort.place.quotas import QuotaShortage, ResourceQuotas, plain_name, used_of

CONDITION: Final = "WaitingForQuota"
EXCEEDED, AVAILABLE = "QuotaExceeded", "QuotaAvailable"
AGAIN: Final = 5.0  # seconds until a gang that waits is looked at again, if no quota changes before
SOON: Final = 0.5  # likewise, while a new quota is not counted yet
_COUNTED: Final = timedelta(seconds=10)  # by when somebody has counted a new quota, if anybody does
_LONGEST: Final = timedelta(seconds=60)  # that something is held for pods that do not come
_SETTLED: Final = timedelta(seconds=5)  # after which a quota has counted the pods that are there
Gang = tuple[str, str]  # namespace, group


@dataclass(slots=True)
class _Claim:
    asks: Mapping[str, int]  # of a pod
    least: int
    since: datetime
    done: datetime | None = None  # when all its pods were seen


class GangQuota:
    """Of one process; after a restart gangs that have begun are let through.

    The status of a quota may be behind. While there are claims, at least what it said before the first of them is used,
    and all that they ask for.
    """

    def __init__(self) -> None:
        self._claims: dict[Gang, _Claim] = {}
        self._before: dict[str, dict[str, Object]] = {}  # of a namespace: quotas as they were before the first claim

    def shortage(
        self,
        quotas: Sequence[Object],
        gang: Gang,
        asks: Mapping[str, int],
        least: int,
        *,
        there: Callable[[Gang], int],
        now: datetime,
    ) -> QuotaShortage | None:
        """Why none of its pods should be created now. `asks`: of a pod; `there`: how many a gang has."""
        self._forget(there, now)
        if gang in self._claims or there(gang):
            return None
        wanted = {name: value * least for name, value in asks.items()}
        found = _known(quotas).shortage(gang[0], wanted, lambda quota, name: self._used(gang[0], quota, name))
        if found is None:
            self._before.setdefault(gang[0], {name_of(one): one for one in quotas})
            self._claims[gang] = _Claim(asks, least, now)
        return found

    def refused(self, gang: Gang) -> None:
        self._claims.pop(gang, None)

    def _forget(self, there: Callable[[Gang], int], now: datetime) -> None:
        for key, one in list(self._claims.items()):
            if one.done is None and there(key) >= one.least:
                one.done = now
            if now - one.since > _LONGEST or (one.done is not None and now - one.done > _SETTLED):
                del self._claims[key]
        held = {namespace for namespace, _ in self._claims}
        for namespace in set(self._before) - held:
            del self._before[namespace]

    def _used(self, namespace: str, quota: str, resource: str) -> int:
        before = self._before.get(namespace, {}).get(quota)
        if before is None:
            return 0
        plain = plain_name(resource)
        claimed = (one.asks.get(plain, 0) * one.least for key, one in self._claims.items() if key[0] == namespace)
        return used_of(before, resource) + sum(claimed)


def uncounted(quotas: Sequence[Object], now: datetime) -> bool:
    """Whether there is a new quota that nobody has counted yet: what it leaves will be known soon."""
    return any(not _is_counted(one) and abs(now - _created(one, now)) < _COUNTED for one in quotas)


def _is_counted(quota: Object) -> bool:
    return (quota.get("status") or {}).get("used") is not None


def _created(quota: Object, now: datetime) -> datetime:
    return parse(quota["metadata"].get("creationTimestamp")) or now


def _known(quotas: Sequence[Object]) -> ResourceQuotas:
    """Quotas that nobody counts say nothing."""
    found = ResourceQuotas()
    for one in quotas:
        if _is_counted(one):
            found.set(f"{one['metadata'].get('namespace', '')}/{name_of(one)}", dict(one))
    return found


def told(gang: str, least: int, short: QuotaShortage) -> str:
    return f"no pod of gang {gang} is created before all {least} fit: {short}; {short.remedy}"
