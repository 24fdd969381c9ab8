"""The requests that a Job controller makes, and what it tells about them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import name_of, namespace_of, owner_reference, uid_of
from kohort.controllers.reconcile import Answer, Event, ReconcileError, Step, Write, emit
from kohort.controllers.writes import delete
from kohort.kinds.batch.control.job import pod as pods_


def _of_pod(pod: Object, meta: dict[str, Any]) -> Write:
    # The uid makes the server refuse the patch if the name has been given to another pod.
    return Write(
        verb="patch",
        api_version="v1",
        kind="Pod",
        namespace=namespace_of(pod),
        name=name_of(pod),
        body={"metadata": {"uid": uid_of(pod), **meta}},
        patch="strategic",
    )


def let_go(pod: Object) -> Write:
    """Take the tracking finalizer away."""
    return _of_pod(pod, {"$deleteFromPrimitiveList/finalizers": [pods_.FINALIZER]})


def adopt(job: Object, pod: Object) -> Write:
    return _of_pod(pod, {"ownerReferences": [owner_reference(job)], "finalizers": [pods_.FINALIZER]})


def release(job: Object, pod: Object) -> Write:
    gone = {"$patch": "delete", "uid": job["metadata"]["uid"]}
    return _of_pod(pod, {"ownerReferences": [gone], "$deleteFromPrimitiveList/finalizers": [pods_.FINALIZER]})


def let_all_go(pods: Sequence[Object]) -> Generator[Step, Sequence[Answer], tuple[set[str], str]]:
    """The uids whose finalizer is gone (with their pod, perhaps), and what went wrong with others."""
    if not pods:
        return set(), ""
    answers = yield Step([let_go(pod) for pod in pods])
    done, problem = set(), ""
    for pod, answer in zip(pods, answers, strict=True):
        if answer.refusal is None or answer.refusal.not_found:
            done.add(uid_of(pod))
        else:
            problem = f"pod {name_of(pod)}: {answer.refusal.message}"
    return done, problem


def delete_all(job: Object, pods: Sequence[Object]) -> Generator[Step, Sequence[Answer], tuple[list[Object], str]]:
    """The pods that were told to go, and what went wrong with others."""
    if not pods:
        return [], ""
    answers = yield Step([delete(pod) for pod in pods])
    events, gone, problem = [], [], ""
    for pod, answer in zip(pods, answers, strict=True):
        if answer.refusal is None:
            gone.append(pod)
            events.append(Event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}"))
        elif answer.refusal.not_found or answer.refusal.conflict:  # or another pod has its name by now
            gone.append(pod)
        else:
            problem = answer.refusal.message
            events.append(Event(job, "Warning", "FailedDelete", f"Error deleting: {problem}"))
    yield from emit(*events)
    return gone, problem


def raise_if(problems: Iterable[str]) -> None:
    found = [problem for problem in problems if problem]
    if found:
        raise ReconcileError("; ".join(found))
