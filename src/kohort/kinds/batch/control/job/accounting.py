"""Counting every pod exactly once (spec job 6, finalizer accounting).

A pod that has ended is first noted by uid in the status, then loses its finalizer, then moves from the list to the
counter. Whoever dies in between leaves enough behind to go on: a uid in the list whose pod has no finalizer any more is
counted, one whose pod still has it is let go first. A success of an index needs no uid: the index itself is the note.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, uid_of
from kohort.apimachinery import times
from kohort.controllers.reconcile import Answer, Event, Step, emit, must, one
from kohort.controllers.writes import update
from kohort.kinds.batch.control.job import pod as pods_
from kohort.kinds.batch.control.job.counting import Tally, has_index_limit, indexes_of, is_failed, is_indexed
from kohort.kinds.batch.control.job.failure_policy import meaning
from kohort.kinds.batch.control.job.finish import Verdict, add_condition
from kohort.kinds.batch.control.job.writes import let_all_go, raise_if

AT_ONCE: Final = 500
_MAYBE: Final = ("active", "succeeded", "failed")  # counters that are left out while they are 0


@dataclass(slots=True)
class Book:
    """The status that is being written. `dirty`: it differs from what is stored."""

    job: Object
    status: dict[str, Any]
    tally: Tally
    verdict: Verdict | None
    now: datetime
    dirty: bool = False
    parity: bool = False
    full: bool = False  # more pods have ended than are noted at once
    leaving: list[Object] = field(default_factory=list)  # pods that may lose their finalizer
    noted: bool = False  # what has ended is in the stored status

    @property
    def uncounted(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.status.setdefault("uncountedTerminatedPods", {})
        return found

    def put(self, member: str, value: Any) -> None:
        absent = value is None or (member in _MAYBE and value == 0)
        if self.status.get(member) != (None if absent else value):
            self.dirty = True
        if absent:
            self.status.pop(member, None)
        else:
            self.status[member] = value


def close(book: Book) -> Generator[Step, Sequence[Answer], bool]:
    """Write what has changed, let pods go, and say the last word if all is counted. True: the Job has ended."""
    tracked = {uid_of(pod) for pod in book.tally.pods if pods_.is_tracked(pod)}
    _count(book, tracked)
    _note(book)
    _index_lists(book)
    if book.verdict is not None and add_condition(book.status, book.verdict.interim, book.verdict, book.now):
        book.dirty = True
    if book.dirty:
        yield from _flush(book)
    book.noted = True
    gone, problem = yield from let_all_go(book.leaving)
    _count(book, tracked - gone)
    ended = False if problem else _end(book)
    if book.dirty:
        yield from _flush(book)
    raise_if([problem])
    if ended and book.verdict is not None:
        yield from emit(_last_word(book, book.verdict))
    return ended


def announce(book: Book) -> Generator[Step, Sequence[Answer], None]:
    """Say the verdict before acting on it, so that nobody who comes after a crash decides otherwise."""
    if book.verdict is not None and add_condition(book.status, book.verdict.interim, book.verdict, book.now):
        yield from _flush(book)


def _flush(book: Book) -> Generator[Step, Sequence[Answer], None]:
    # With the version that was read: if somebody wrote meanwhile, it is refused and all is computed again.
    write = update({**book.job, "status": book.status}, "status")
    answer = yield from one(write)
    book.job = must(write, answer)
    book.dirty = False


def _count(book: Book, tracked: Collection[str]) -> None:
    """Uids whose pods have been let go become numbers."""
    for member in ("succeeded", "failed"):
        noted = book.uncounted.get(member) or []
        left = [uid for uid in noted if uid in tracked]
        if len(left) == len(noted):
            continue
        book.put(member, int(book.status.get(member) or 0) + len(noted) - len(left))
        book.dirty = True
        if left:
            book.uncounted[member] = left
        else:
            book.uncounted.pop(member, None)


def _note(book: Book) -> None:
    """Pods that have ended, and whose end has not been noted."""
    pods = [pod for pod in book.tally.pods if pods_.is_tracked(pod)]
    if is_indexed(book.job):
        pods.sort(key=lambda pod: -1 if (index := pods_.index(pod)) is None else index)
    noted = 0
    for pod in pods:
        failed = is_failed(pod, book.job)
        if not _may_leave(book, pod, failed):
            continue
        if noted >= AT_ONCE:
            book.full = True
            return
        book.leaving.append(pod)
        if pods_.phase(pod) == "Succeeded":
            noted += _note_success(book, pod)
        elif _has_failed(book, pod, failed):
            noted += _note_failure(book, pod)


def _has_failed(book: Book, pod: Object, failed: bool) -> bool:
    """With the Job everything in it has failed, also what is only told to stop."""
    if book.verdict is None or book.verdict.failed:
        return failed or book.verdict is not None
    # Pods that go because the Job has succeeded have not failed. Upstream may count them if it is interrupted.
    return failed if book.parity else failed and not is_deleting(pod)


def _may_leave(book: Book, pod: Object, failed: bool) -> bool:
    """A Job that is being deleted or has its verdict lets go of all pods; otherwise of those that have ended."""
    if book.job["metadata"].get("deletionTimestamp") or book.verdict is not None or pods_.phase(pod) == "Succeeded":
        return True
    if not failed:
        return False
    index = pods_.index(pod)
    kept = book.tally.delayed.get(index) if index is not None else None
    return kept is None or uid_of(kept) != uid_of(pod)


def _note_success(book: Book, pod: Object) -> int:
    if is_indexed(book.job):
        index = pods_.index(pod)
        new = index is not None and index in book.tally.done and index not in book.tally.done_before
        book.dirty = book.dirty or new
        return int(new)
    return _note_uid(book, "succeeded", pod)


def _note_failure(book: Book, pod: Object) -> int:
    index = pods_.index(pod)
    if is_indexed(book.job) and (index is None or index >= (book.tally.completions or 0)):
        return 0
    return _note_uid(book, "failed", pod) if meaning(book.job, pod).counts else 0


def _note_uid(book: Book, member: str, pod: Object) -> int:
    uid = uid_of(pod)
    if uid in book.tally.counting:
        return 0
    book.uncounted[member] = [*(book.uncounted.get(member) or []), uid]
    book.dirty = True
    return 1


def _index_lists(book: Book) -> None:
    if not is_indexed(book.job):
        return
    done = book.tally.done
    if book.full:  # only what has been noted; the rest comes with the next reconcile
        noted = indexes_of(
            [pod for pod in book.leaving if pods_.phase(pod) == "Succeeded"], book.tally.completions or 0
        )
        done = book.tally.done_before | (noted & done)
    book.put("completedIndexes", str(done) or None)
    book.put("succeeded", len(done))
    if has_index_limit(book.job):
        book.put("failedIndexes", str(book.tally.lost))


def _end(book: Book) -> bool:
    """The last condition, once nothing is left to be counted and nobody is stopping any more."""
    if book.verdict is None or book.full or any(book.uncounted.values()) or book.status.get("terminating"):
        return False
    if not add_condition(book.status, book.verdict.last, book.verdict, book.now):
        return False
    if not book.verdict.failed:
        book.status["completionTime"] = times.seconds(book.now)
    if not book.parity and book.job["spec"].get("completions") != 0:
        # A suspended Job has no start; without one it could not end before it is resumed (spec job 6, suspend).
        book.status.setdefault("startTime", times.seconds(book.now))
    book.dirty = True
    return True


def _last_word(book: Book, verdict: Verdict) -> Any:
    if verdict.failed:
        return Event(book.job, "Warning", verdict.reason, verdict.message)
    return Event(book.job, "Normal", "Completed", "Job completed")
