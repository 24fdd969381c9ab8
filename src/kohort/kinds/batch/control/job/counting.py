"""What a Job's pods amount to: running, stopping, newly ended, done by index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, number, uid_of
from kohort.kinds.batch.api.indexes import IndexSet
from kohort.kinds.batch.control.job import pod as pods_
from kohort.kinds.batch.control.job.failure_policy import meaning


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def has_index_limit(job: Object) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def is_suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def waits_for_end(job: Object) -> bool:
    """podReplacementPolicy Failed: a stopping pod is replaced when it has ended, and not counted before."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def is_failed(pod: Object, job: Object) -> bool:
    if pods_.phase(pod) == "Failed":
        return True
    if (job.get("metadata") or {}).get("deletionTimestamp"):
        return False  # it goes with the Job; who is first, the collector or the Job's own look, must not matter
    return not waits_for_end(job) and is_deleting(pod) and pods_.phase(pod) != "Succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """`tracked` pods still have the finalizer: they have not been counted, or not been let go."""

    job: Object
    pods: Sequence[Object]
    active: tuple[Object, ...]
    ready: int
    terminating: int
    counting: frozenset[str]  # uids that are being counted: in the status, finalizer perhaps still there
    new_succeeded: tuple[Object, ...]
    new_failed: tuple[Object, ...]
    succeeded: int
    failed: int
    done_before: IndexSet
    done: IndexSet
    lost: IndexSet  # indexes that failed for good
    delayed: Mapping[int, Object]  # index -> failed pod that is kept until its replacement carries the counters on

    @property
    def completions(self) -> int | None:
        found = self.job["spec"].get("completions")
        return None if found is None else int(found)

    @property
    def parallelism(self) -> int:
        found = self.job["spec"].get("parallelism")
        return 1 if found is None else int(found)


def tally(job: Object, pods: Sequence[Object]) -> Tally:
    status: dict[str, Any] = job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    well, badly = (frozenset(uncounted.get(member) or ()) for member in ("succeeded", "failed"))
    active = tuple(pod for pod in pods if pods_.is_active(pod))
    fresh = _tracked(pods, well | badly)
    new_succeeded = tuple(pod for pod in fresh if pods_.phase(pod) == "Succeeded")
    new_failed = tuple(pod for pod in fresh if is_failed(pod, job))
    done_before, done, lost = _indexes(job, status, pods)
    succeeded = int(status.get("succeeded") or 0) + len(new_succeeded) + len(well)
    counted = [pod for pod in new_failed if meaning(job, pod).counts]
    return Tally(
        job=job,
        pods=pods,
        active=active,
        ready=sum(1 for pod in active if pods_.is_ready(pod)),
        terminating=sum(1 for pod in pods if pods_.is_terminating(pod)),
        counting=well | badly,
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=len(done) if is_indexed(job) else succeeded,
        failed=int(status.get("failed") or 0) + len(counted) + len(badly),
        done_before=done_before,
        done=done,
        lost=lost,
        delayed=_delayed(job, pods, active, done | lost) if has_index_limit(job) else {},
    )


def _tracked(pods: Sequence[Object], counting: frozenset[str] = frozenset()) -> list[Object]:
    return [pod for pod in pods if pods_.is_tracked(pod) and uid_of(pod) not in counting]


# ---- by index


def read_indexes(text: str | None, completions: int) -> IndexSet:
    """Of a list in the status. Indexes beyond `completions`, which may have been lowered since, are forgotten."""
    return IndexSet(_intervals(text or "", completions))


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = [number(first), number(last or first)]
        if min(ends) >= 0:
            yield ends[0], min(ends[1], completions - 1)


def indexes_of(pods: Iterable[Object], completions: int) -> IndexSet:
    """The valid indexes of pods."""
    found = (pods_.index(pod) for pod in pods)
    return IndexSet.of(index for index in found if index is not None and index < completions)


def _indexes(job: Object, status: Mapping[str, Any], pods: Sequence[Object]) -> tuple[IndexSet, IndexSet, IndexSet]:
    """Indexes that were done, that are done now, and that failed for good."""
    if not is_indexed(job):
        return IndexSet(), IndexSet(), IndexSet()
    completions = int(job["spec"].get("completions") or 0)
    before = read_indexes(status.get("completedIndexes"), completions)
    tracked = _tracked(pods)
    done = before | indexes_of([pod for pod in tracked if pods_.phase(pod) == "Succeeded"], completions)
    if not has_index_limit(job):
        return before, done, IndexSet()
    failed = [pod for pod in tracked if is_failed(pod, job) and _spends_index(job, pod)]
    lost = read_indexes(status.get("failedIndexes"), completions) | indexes_of(failed, completions)
    return before, done, lost - done


def _spends_index(job: Object, pod: Object) -> bool:
    """Whether this failure was the last that its index had."""
    found = meaning(job, pod)
    if found.action == "FailIndex":
        return True
    limit = int(job["spec"]["backoffLimitPerIndex"])
    return found.counts and pods_.counter(pod, pods_.INDEX_FAILURES) >= limit


def _delayed(job: Object, pods: Sequence[Object], active: Sequence[Object], settled: IndexSet) -> Mapping[int, Object]:
    """The last failed pod of every index that will be tried again. Running pods carry the counters themselves."""
    running = {pods_.index(pod) for pod in active}
    found: dict[int, Object] = {}
    rank: Callable[[Object], Any] = lambda pod: (  # noqa: E731
        pods_.counter(pod, pods_.INDEX_FAILURES) + pods_.counter(pod, pods_.INDEX_IGNORED),
        pods_.finished(pod),
    )
    for pod in _tracked(pods):
        index = pods_.index(pod)
        if index is None or index in running or index in settled or not is_failed(pod, job):
            continue
        if index not in found or rank(found[index]) <= rank(pod):
            found[index] = pod
    return found
