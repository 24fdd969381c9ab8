"""What controllers of pods share: pods are made in batches that double, and removed; their owner's events tell it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import name_of
from kohort.controllers.reconcile import Answer, Event, Reconcile, Result, Step, emit
from kohort.controllers.writes import create, delete

BATCH: Final = 0.05  # seconds in which changes of pods are gathered
BASE_DELAY: Final = 0.05  # seconds until what was refused is tried again, at first


def nothing() -> Reconcile:
    """Of a key whose object is gone."""
    yield from ()
    return Result()


@dataclass(slots=True)
class Made:
    """`problem`: what the server said to the first pod that it refused."""

    pods: list[Object] = field(default_factory=list)
    problem: str = ""


def create_all(owner: Object, pods: Sequence[Object]) -> Generator[Step, Sequence[Answer], Made]:
    """One, two, four, and so on: if pods are refused, not all of thousands are tried."""
    made, left, size = Made(), list(pods), 1
    while left and not made.problem:
        batch, left = left[:size], left[size:]
        answers = yield Step([create(pod) for pod in batch])
        events = []
        for answer in answers:
            if answer.refusal is None:
                made.pods.append(answer.object or {})
                events.append(
                    Event(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(answer.object or {})}")
                )
            else:
                made.problem = made.problem or answer.refusal.message
                events.append(Event(owner, "Warning", "FailedCreate", f"Error creating: {answer.refusal.message}"))
        yield from emit(*events)
        size *= 2
    return made


def delete_all(owner: Object, pods: Sequence[Object]) -> Generator[Step, Sequence[Answer], Made]:
    """`pods` of what is returned: those that were told to go, or had gone."""
    made = Made()
    if not pods:
        return made
    answers = yield Step([delete(pod) for pod in pods])
    events = []
    for pod, answer in zip(pods, answers, strict=True):
        if answer.refusal is None:
            made.pods.append(pod)
            events.append(Event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}"))
        elif answer.refusal.not_found or answer.refusal.conflict:  # or another pod has its name by now
            made.pods.append(pod)
        else:
            made.problem = made.problem or answer.refusal.message
            events.append(Event(owner, "Warning", "FailedDelete", f"Error deleting: {answer.refusal.message}"))
    yield from emit(*events)
    return made
