"""How a Job ends: which verdict, and the conditions that say so, first the interim one, then the last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.controllers.conditions import set_condition
from kohort.kinds.batch.api.indexes import IndexSet
from kohort.kinds.batch.api.status import COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, holds
from kohort.kinds.batch.control.job import pod as pods_
from kohort.kinds.batch.control.job.counting import Tally, has_index_limit, is_failed, is_suspended, read_indexes
from kohort.kinds.batch.control.job.failure_policy import meaning

_LAST: Final = {FAILURE_TARGET: FAILED, SUCCESS_CRITERIA_MET: COMPLETE}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`interim`: FailureTarget or SuccessCriteriaMet."""

    interim: str
    reason: str
    message: str

    @property
    def failed(self) -> bool:
        return self.interim == FAILURE_TARGET

    @property
    def last(self) -> str:
        return _LAST[self.interim]


COMPLETED: Final = Verdict(SUCCESS_CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods")


def verdict(tally: Tally, now: datetime) -> Verdict | None:
    """In this order: what was decided, failures, the success policy. Completions are looked at after managing pods."""
    conditions = (tally.job.get("status") or {}).get("conditions") or ()
    for interim in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        for one in conditions:
            if one.get("type") == interim and one.get("status") == "True":
                return Verdict(interim, str(one.get("reason") or ""), str(one.get("message") or ""))
    return _failure(tally, now) or _failed_indexes(tally) or _success(tally)


def is_decided(job: Object) -> bool:
    status = job.get("status") or {}
    return holds(status, SUCCESS_CRITERIA_MET) or holds(status, FAILURE_TARGET)


def _failure(tally: Tally, now: datetime) -> Verdict | None:
    message = _fail_job(tally)
    if message:
        return Verdict(FAILURE_TARGET, "PodFailurePolicy", message)
    if tally.failed > _limit(tally.job) or _too_many_restarts(tally):
        return Verdict(FAILURE_TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = deadline_in(tally.job, now)
    if left is not None and left <= 0:
        return Verdict(FAILURE_TARGET, "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def _fail_job(tally: Tally) -> str:
    if tally.job["spec"].get("podFailurePolicy") is None:
        return ""
    failed = (pod for pod in tally.pods if is_failed(pod, tally.job))
    return next((text for pod in failed if (text := meaning(tally.job, pod).message)), "")


def _limit(job: Object) -> int:
    found = job["spec"].get("backoffLimit")
    return 6 if found is None else int(found)


def _too_many_restarts(tally: Tally) -> bool:
    template = (tally.job["spec"].get("template") or {}).get("spec") or {}
    if template.get("restartPolicy") != "OnFailure":
        return False
    live = [pod for pod in tally.pods if pods_.phase(pod) in {"Pending", "Running"}]
    restarts = sum(pods_.restarts(pod) for pod in live)
    return restarts > 0 and restarts >= _limit(tally.job)


def deadline_in(job: Object, now: datetime) -> float | None:
    """Seconds until activeDeadlineSeconds are over; None if they do not count."""
    limit, start = job["spec"].get("activeDeadlineSeconds"), times.parse((job.get("status") or {}).get("startTime"))
    if limit is None or start is None or is_suspended(job):
        return None
    return (start + timedelta(seconds=int(limit)) - now).total_seconds()


def _failed_indexes(tally: Tally) -> Verdict | None:
    if not has_index_limit(tally.job) or not tally.lost:
        return None
    most = tally.job["spec"].get("maxFailedIndexes")
    if most is not None and len(tally.lost) > int(most):
        text = "Job has exceeded the specified maximal number of failed indexes"
        return Verdict(FAILURE_TARGET, "MaxFailedIndexesExceeded", text)
    if len(tally.lost) + len(tally.done) >= (tally.completions or 0):
        return Verdict(FAILURE_TARGET, "FailedIndexes", "Job has failed indexes")
    return None


def _success(tally: Tally) -> Verdict | None:
    message = matched_success_rule(tally.job, tally.done)
    return Verdict(SUCCESS_CRITERIA_MET, "SuccessPolicy", message) if message else None


def matched_success_rule(job: Object, succeeded: IndexSet) -> str:
    """Which rule of the success policy is met, in words; empty if none is."""
    completions = int(job["spec"].get("completions") or 0)
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or ()):
        listed, wanted = rule.get("succeededIndexes"), rule.get("succeededCount")
        among = read_indexes(listed, completions) if listed is not None else None
        done = len(succeeded) if among is None else len(among & succeeded)
        least = wanted if wanted is not None else len(among or ())
        if least and done >= least:
            return f"Matched rules at index {number}"
    return ""


def is_complete(tally: Tally, active: int) -> bool:
    if active:
        return False
    return tally.succeeded > 0 if tally.completions is None else tally.succeeded >= tally.completions


def add_condition(status: dict[str, Any], kind: str, verdict: Verdict, now: datetime) -> bool:
    """False if it is there already."""
    if holds(status, kind):
        return False
    return set_condition(status, now, kind, True, verdict.reason, verdict.message, lastProbeTime=times.seconds(now))
