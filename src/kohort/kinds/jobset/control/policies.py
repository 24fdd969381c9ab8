"""When a JobSet has succeeded, and what a failed Job means for it (spec jobset 2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery import regexp
from kohort.kinds.batch.api.status import FAILED
from kohort.kinds.jobset.api.reading import entries, replicated_jobs, spec_of
from kohort.kinds.jobset.control.state import Jobs, replicated_of

RESTART: Final = "RestartJobSet"
FAIL: Final = "FailJobSet"


def is_complete(jobset: Object, jobs: Jobs) -> bool:
    policy = spec_of(jobset).get("successPolicy") or {}
    targets = set(policy.get("targetReplicatedJobs") or ())
    done = sum(1 for job in jobs.successful if not targets or replicated_of(job) in targets)
    if policy.get("operator") == "Any":
        return done >= 1
    wanted = sum(one.replicas for one in replicated_jobs(jobset) if not targets or one.name in targets)
    return done >= wanted


@dataclass(frozen=True, slots=True)
class Decision:
    """`rule`: its name, empty for the default."""

    action: str
    job: Object
    rule: str = ""

    @property
    def counts(self) -> bool:
        """Against maxRestarts."""
        return not self.action.endswith("AndIgnoreMaxRestarts")


def decide(jobset: Object, failed: Sequence[Object]) -> Decision:
    """Rules in order; within a rule the Job that failed first."""
    in_time = sorted(failed, key=lambda job: (_failed_at(job), str(job["metadata"]["name"])))
    for rule in entries((spec_of(jobset).get("failurePolicy") or {}).get("rules")):
        matching = next((job for job in in_time if _matches(rule, job)), None)
        if matching is not None:
            return Decision(str(rule.get("action")), matching, str(rule.get("name") or ""))
    return Decision(RESTART, in_time[0])


def _condition(job: Object) -> dict[str, Any]:
    found = (job.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one.get("type") == FAILED and one.get("status") == "True"), {})


def _failed_at(job: Object) -> str:
    return str(_condition(job).get("lastTransitionTime") or "")


def _matches(rule: dict[str, Any], job: Object) -> bool:
    targets, reasons = rule.get("targetReplicatedJobs") or (), rule.get("onJobFailureReasons") or ()
    patterns = rule.get("onJobFailureMessagePatterns") or ()
    if targets and replicated_of(job) not in targets:
        return False
    condition = _condition(job)
    if reasons and condition.get("reason") not in reasons:
        return False
    return not patterns or any(_found(pattern, str(condition.get("message") or "")) for pattern in patterns)


def _found(pattern: str, text: str) -> bool:
    try:
        return regexp.search(pattern, text)
    except (regexp.RegexpError, regexp.TooLongError):
        return False  # as upstream: an invalid pattern matches nothing
