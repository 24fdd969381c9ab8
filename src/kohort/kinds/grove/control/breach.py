"""Gang termination: who has been below its minimum for too long (spec grove 1.9).

What was never scheduled, or never healthy, is left alone: making it again would not help.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import meta_of, status_of
from kohort.apimachinery import times
from kohort.controllers.conditions import condition, holds
from kohort.kinds.grove.api import constants

GRACE: Final = timedelta(seconds=5)  # a condition that changed later than this after creation was another before


def _changed_later(obj: Object, found: Object) -> bool:
    changed, born = times.parse(found.get("lastTransitionTime")), times.parse(meta_of(obj).get("creationTimestamp"))
    return changed is not None and born is not None and changed > born + GRACE


def was_scheduled(pclq: Object) -> bool:
    found = condition(status_of(pclq), constants.SCHEDULED)
    return found is not None and (found["status"] == "True" or _changed_later(pclq, found))


def was_healthy(pcsg: Object) -> bool:
    found = condition(status_of(pcsg), constants.BREACHED)
    return found is not None and (found["status"] == "False" or _changed_later(pcsg, found))


def left_of_cliques(pclqs: Iterable[Object], delay: timedelta, now: datetime) -> timedelta | None:
    """How long until the first of them has been breached for `delay`; None if none is breached."""
    return _left((one for one in pclqs if was_scheduled(one)), delay, now)


def left_of_groups(groups: Iterable[Object], delay: timedelta, now: datetime) -> timedelta | None:
    """The same for scaling groups. One that is being made again already is not waited for."""
    chosen = (one for one in groups if was_healthy(one) and not holds(status_of(one), constants.TERMINATING))
    return _left(chosen, delay, now)


def _left(objects: Iterable[Object], delay: timedelta, now: datetime) -> timedelta | None:
    since = [
        times.parse((condition(status_of(one), constants.BREACHED) or {}).get("lastTransitionTime")) or now
        for one in objects
        if holds(status_of(one), constants.BREACHED)
    ]
    return min(since) + delay - now if since else None
