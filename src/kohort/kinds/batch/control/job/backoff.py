"""How long to wait before the next pod: after failures 10 s, doubling to 10 min, counted anew after a success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kohort.api.kind import Object
from kohort.kinds.batch.control.job import pod as pods_
from kohort.kinds.batch.control.job.failure_policy import meaning

FIRST: Final = 10.0
MOST: Final = 600.0


@dataclass(frozen=True, slots=True)
class Record:
    """Failures since the last success. Kept in memory only: after a restart nobody waits for old failures."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: Sequence[Object], failed: Sequence[Object]) -> Record:
        """With pods that have newly ended."""
        ends = sorted(pods_.finished(pod) for pod in failed)
        if not succeeded:
            return Record(self.failures + len(ends), ends[-1]) if ends else self
        success = max(pods_.finished(pod) for pod in succeeded)
        since = [end for end in ends if end > success]
        return Record(len(since), since[-1] if since else None)

    def remaining(self, now: datetime) -> float:
        return remaining(self.failures, self.last, now)


def remaining(failures: int, last: datetime | None, now: datetime) -> float:
    if not failures or last is None:
        return 0.0
    wait = min(MOST, FIRST * 2.0 ** min(failures - 1, 16))
    return max(0.0, (last + timedelta(seconds=wait) - now).total_seconds())


def index_remaining(pod: Object, now: datetime) -> float:
    """Of an index whose last pod failed: it carries how often that index has failed before."""
    before = pods_.counter(pod, pods_.INDEX_FAILURES) + pods_.counter(pod, pods_.INDEX_IGNORED)
    return remaining(before + 1, pods_.finished(pod), now)


def index_counters(job: Object, failed: Object | None) -> dict[str, str]:
    """The annotations of the pod that replaces `failed`; none failed: the first pod of its index."""
    if failed is None:
        return {pods_.INDEX_FAILURES: "0"}
    counted, ignored = (pods_.counter(failed, name) for name in (pods_.INDEX_FAILURES, pods_.INDEX_IGNORED))
    if meaning(job, failed).counts:
        counted += 1
    else:
        ignored += 1
    return {pods_.INDEX_FAILURES: str(counted), **({pods_.INDEX_IGNORED: str(ignored)} if ignored else {})}
