"""Workloads, CompositePodGroups and PodGroups of any kind: how they are compared, in which order they are made and go.

Each kind keeps its own policy: whose objects of that name it accepts, what follows and what is only recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kohort.api.kind import Object
from kohort.controllers.objects import is_controlled_by, is_deleting, name_of
from kohort.controllers.reconcile import Event, Part, ReconcileError, Step, emit
from kohort.controllers.writes import delete

KINDS: Final = ("Workload", "CompositePodGroup", "PodGroup")  # what is named exists before what names it
AT_ONCE: Final = 50  # writes of one step


def minimum(block: Mapping[str, Any]) -> int | None:
    """The minCount of a PodGroup's spec or of a template; None: no gang."""
    gang = (block.get("schedulingPolicy") or {}).get("gang")
    return None if gang is None else gang.get("minCount")


def covers(stored: Any, wanted: Any) -> bool:
    """Whether all that is wanted is stored; a server adds defaults."""
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return all(covers(stored.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(stored, list):
        return len(wanted) == len(stored) and all(map(covers, stored, wanted))
    return bool(wanted == stored)


def batches(some: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (some[start : start + AT_ONCE] for start in range(0, len(some), AT_ONCE))


def stages(missing: Sequence[Object]) -> Iterable[Sequence[Object]]:
    """What may be created at once: the Workload and each branch alone, in the order given, then leaves in batches."""
    yield from ([obj] for obj in missing if obj["kind"] != "PodGroup")
    yield from batches([obj for obj in missing if obj["kind"] == "PodGroup"])


def remove(owner: Object, known: Sequence[Object], events: Callable[[Sequence[Object]], Iterable[Event]]) -> Part:
    """Those that `owner` controls: leaves first, the Workload last. What a user has made stays.

    `events`: of a batch that is gone.
    """
    own = [obj for obj in known if is_controlled_by(obj, owner) and not is_deleting(obj)]
    for kind in reversed(KINDS):
        for batch in batches([obj for obj in own if obj["kind"] == kind]):
            answers = yield Step([delete(obj) for obj in batch])
            done = [obj for obj, answer in zip(batch, answers, strict=True) if answer.refusal is None]
            yield from emit(*events(done))
            problems = [
                f"{kind} {name_of(obj)}: {answer.refusal.message}"
                for obj, answer in zip(batch, answers, strict=True)
                if answer.refusal is not None and not answer.refusal.not_found
            ]
            if problems:
                raise ReconcileError("; ".join(problems))
