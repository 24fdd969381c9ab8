"""The status of a TrainJob (spec trainjob 1.5): suspended or not, what has become of its JobSet, and its deadline."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import uid_of
from kohort.apimachinery import times
from kohort.controllers.conditions import StatusBuilder, set_condition
from kohort.controllers.reconcile import Write
from kohort.controllers.writes import patch
from kohort.kinds.trainer.api.constants import COMPLETE, FAILED, SUSPENDED, spec_of
from kohort.kinds.trainer.control.view import is_suspended

DEADLINE: Final = "DeadlineExceeded"
NOT_SUPPORTED: Final = "TrainingRuntimeNotSupported"
_ENDS: Final = (("Completed", COMPLETE), ("Failed", FAILED))  # of a JobSet, of a TrainJob
_COUNTERS: Final = ("ready", "succeeded", "failed", "active", "suspended")


class TrainJobStatus(StatusBuilder):
    @classmethod
    def of(cls, job: Object, now: datetime) -> TrainJobStatus:
        return cls(job, now, copied(job.get("status") or {}))

    @property
    def is_finished(self) -> bool:
        return self.holds(COMPLETE) or self.holds(FAILED)

    @property
    def is_late(self) -> bool:
        return self.holds(FAILED) and (self.condition(FAILED) or {}).get("reason") == DEADLINE

    def set(self, kind: str, value: bool, reason: str, message: str, since: str = "") -> None:
        """`since`: when it began, where somebody else knows."""
        set_condition(self.status, self.now, kind, value, reason, message, since=since)

    # ---- what the job says

    def reflect_suspension(self) -> None:
        """A job that was never suspended has no such condition."""
        if is_suspended(self.obj):
            self.set(SUSPENDED, True, "Suspended", "TrainJob is suspended")
        elif self.holds(SUSPENDED):
            self.set(SUSPENDED, False, "Resumed", "TrainJob is resumed")

    def deadline(self) -> datetime | None:
        """When the job has to be done: so long after its creation, or after it was resumed last."""
        seconds = spec_of(self.obj).get("activeDeadlineSeconds")
        if not seconds or self.is_finished or is_suspended(self.obj):
            return None
        resumed = self.condition(SUSPENDED) or {}
        start = times.parse(resumed.get("lastTransitionTime") if resumed.get("status") == "False" else None)
        start = start or times.parse(self.obj["metadata"].get("creationTimestamp"))
        return start + timedelta(seconds=int(seconds)) if start is not None else None

    # ---- what the JobSet says

    def follow(self, jobset: Object) -> None:
        status = jobset.get("status") or {}
        for theirs, ours in _ENDS:
            found: Object = next((one for one in status.get("conditions") or () if one.get("type") == theirs), {})
            if found.get("status") == "True" and not self.is_late:
                since = str(found.get("lastTransitionTime") or "")
                self.set(ours, True, str(found.get("reason")), str(found.get("message") or ""), since)
        rows = [
            {"name": row["name"], **{counter: int(row.get(counter) or 0) for counter in _COUNTERS}}
            for row in status.get("replicatedJobsStatus") or ()
        ]
        if rows:
            self.status["jobsStatus"] = rows
        else:
            self.status.pop("jobsStatus", None)

    # ---- writing

    def write(self) -> Write | None:
        """What has changed, if anything; others may write other members."""
        stored = self.obj.get("status") or {}
        members = {name for name in (*self.status, *stored) if self.status.get(name) != stored.get(name)}
        if not members:
            return None
        change = {name: self.status.get(name) for name in sorted(members)}
        return patch(self.obj, {"metadata": {"uid": uid_of(self.obj)}, "status": change}, "status")


def is_idle(jobset: Object) -> bool:
    """Suspended, as far as the JobSet's own status knows, and nothing of it runs any more."""
    status = jobset.get("status") or {}
    suspended = any(
        one.get("type") == SUSPENDED and one.get("status") == "True" for one in status.get("conditions") or ()
    )
    return suspended and not any(int(row.get("active") or 0) for row in status.get("replicatedJobsStatus") or ())
