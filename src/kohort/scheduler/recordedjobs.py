"""What Jobs have recorded as done, for gangs whose members are gone.

A pod that has succeeded counts for its gang while it is there. When its node is deleted the pod goes with it, but its
Job has it in `status.succeeded` and makes no other: without that record a gang that lost a node would wait for members
that nobody makes any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kohort.scheduler.model import Job


@dataclass(slots=True)
class _Record:
    group: str | None = None
    succeeded: int = 0  # as the Job says
    exists: bool = False  # the Job itself
    pods: set[str] = field(default_factory=set)  # of it, that are there
    done: set[str] = field(default_factory=set)  # those of them that have succeeded


class RecordedJobs:
    """By uid. A Job is of one group: that of its template, or that its pods name. It is known as long as it or a pod
    of it is there."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Record] = {}

    def set(self, job: Job) -> None:
        record = self._jobs.setdefault(job.metadata.uid, _Record())
        record.succeeded, record.exists = job.succeeded, True
        record.group = job.group or record.group

    def drop(self, uid: str) -> None:
        record = self._jobs.get(uid)
        if record is not None:
            record.succeeded, record.exists = 0, False

    def join(self, uid: str, pod: str, group: str) -> bool:
        """-> whether the pod is new"""
        record = self._jobs.get(uid)
        if record is not None and pod in record.pods:
            return False
        record = self._jobs.setdefault(uid, _Record())
        record.group = group
        record.pods.add(pod)
        return True

    def finish(self, uid: str, pod: str) -> None:
        if uid in self._jobs:
            self._jobs[uid].done.add(pod)

    def leave(self, uid: str, pod: str) -> None:
        if uid in self._jobs:
            self._jobs[uid].pods.discard(pod)
            self._jobs[uid].done.discard(pod)

    def tidy(self, uid: str) -> None:
        record = self._jobs.get(uid)
        if record is not None and not record.exists and not record.pods:
            del self._jobs[uid]

    def group(self, uid: str) -> str | None:
        record = self._jobs.get(uid)
        return None if record is None else record.group

    def gone(self, uid: str) -> int:
        """Members that the Job has recorded and that are not there any more."""
        record = self._jobs.get(uid)
        return 0 if record is None else max(0, record.succeeded - len(record.done))
