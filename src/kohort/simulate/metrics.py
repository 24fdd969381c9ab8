"""What a run amounts to, in numbers that people compare: waiting, slowdown, utilisation, fragmentation, fairness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kohort.simulate.run import JobRun, Outcome

SHORT: Final = 10.0  # seconds; a shorter job counts as so long (bounded slowdown)


@dataclass(frozen=True, slots=True)
class Spread:
    mean: float
    median: float
    p95: float
    longest: float


@dataclass(frozen=True, slots=True)
class UserMetrics:
    user: str
    jobs: int
    wait: float  # mean, seconds
    slowdown: float  # mean
    share: float  # of all that was used


@dataclass(frozen=True, slots=True)
class Metrics:
    """`fairness`: Jain's index of the users' mean slowdowns, 1 is equal. Shares are of one, times seconds."""

    jobs: int
    finished: int
    never_started: int
    makespan: float
    wait: Spread
    slowdown: Spread
    resource: str
    utilisation: float  # of what was there, from the first arrival to the last end
    busy_utilisation: float  # the same, while something waited
    fragmentation: float  # of what was free while something waited: the share on nodes that were partly used
    longest_queue: int
    preemptions: int
    restarts: int
    fairness: float
    decisions: int
    users: tuple[UserMetrics, ...]


def measure(outcome: Outcome) -> Metrics:
    done = [one for one in outcome.runs if one.ended >= 0]
    waits = [wait(one) for one in outcome.runs if one.first_started >= 0]
    slow = [slowdown(one) for one in done]
    first = min((one.job.at for one in outcome.runs), default=0.0)
    last = max((one.ended for one in done), default=first)
    used, busy, scraps = _integrals(outcome, first, last)
    users = _users(done)
    return Metrics(
        jobs=len(outcome.runs),
        finished=len(done),
        never_started=sum(one.first_started < 0 for one in outcome.runs),
        makespan=last - first,
        wait=spread(waits),
        slowdown=spread(slow),
        resource=outcome.resource,
        utilisation=used,
        busy_utilisation=busy,
        fragmentation=scraps,
        longest_queue=max((point[3] for point in outcome.usage), default=0),
        preemptions=sum(one.preemptions for one in outcome.runs),
        restarts=sum(one.restarts for one in outcome.runs),
        fairness=jain([one.slowdown for one in users]),
        decisions=outcome.decisions,
        users=users,
    )


def wait(run: JobRun) -> float:
    return run.first_started - run.job.at


def slowdown(run: JobRun) -> float:
    """How many times as long as it would have taken alone."""
    return max(1.0, (run.ended - run.job.at) / max(run.job.duration, SHORT))


def spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread(0.0, 0.0, 0.0, 0.0)
    ordered = sorted(values)
    return Spread(sum(ordered) / len(ordered), quantile(ordered, 0.5), quantile(ordered, 0.95), ordered[-1])


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def jain(values: Sequence[float]) -> float:
    total, squares = sum(values), sum(one * one for one in values)
    return total * total / (len(values) * squares) if squares else 1.0


def _integrals(outcome: Outcome, first: float, last: float) -> tuple[float, float, float]:
    """Utilisation, that while something waited, and what was scraps of the room that was free then."""
    used = there = used_busy = there_busy = scraps = free = 0.0
    points = [*outcome.usage, (last, 0, 0, 0, 0)]
    for (start, taken, total, waiting, left), (end, *_) in pairwise(points):
        seconds = min(end, last) - max(start, first)
        if seconds <= 0:
            continue
        used += taken * seconds
        there += total * seconds
        if waiting:
            used_busy += taken * seconds
            there_busy += total * seconds
            scraps += left * seconds
            free += (total - taken) * seconds
    return _share(used, there), _share(used_busy, there_busy), _share(scraps, free)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _users(done: Sequence[JobRun]) -> tuple[UserMetrics, ...]:
    by_user: dict[str, list[JobRun]] = {}
    for one in done:
        by_user.setdefault(one.job.user, []).append(one)
    area = {user: sum(one.job.pods * one.job.duration for one in runs) for user, runs in by_user.items()}
    whole = sum(area.values()) or 1.0
    return tuple(
        UserMetrics(
            user,
            len(runs),
            sum(map(wait, runs)) / len(runs),
            sum(map(slowdown, runs)) / len(runs),
            area[user] / whole,
        )
        for user, runs in sorted(by_user.items())
    )
