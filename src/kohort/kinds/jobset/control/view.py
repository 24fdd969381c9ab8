"""What one reconcile of a JobSet is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kohort.api.kind import Object


def _none(*_: str) -> None:
    return None


def _empty() -> Sequence[Object]:
    return ()


@dataclass(frozen=True, slots=True)
class JobSetView:
    """A JobSet, the Jobs that it controls, the Service and claims of its names, the groups that it controls.

    `find`: a group by kind and name, whoever controls it. `pods`: all pods of the JobSet; asked only when needed.
    `priority_class`: by name.
    """

    jobset: Object | None
    jobs: Sequence[Object]
    services: Sequence[Object]
    claims: Sequence[Object]
    groups: Sequence[Object]
    now: datetime
    find: Callable[[str, str], Object | None] = _none
    pods: Callable[[], Sequence[Object]] = _empty
    priority_class: Callable[[str], Object | None] = _none
