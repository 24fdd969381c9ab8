"""Every recorded life of a JobSet, played against our controllers: the same conditions, Jobs, events and last state.

What is not reproduced stands in ONE table, with the reason; everything else of such a case is still compared.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.kinds.jobset.control import replay
from tests.kinds.jobset.control.replay import Player

ASPECTS: dict[str, Callable[[Player], list[str]]] = {
    "codes": replay.codes,
    "conditions": replay.condition_sets,
    "last": replay.last_statuses,
    "jobs": replay.jobs,
    "events": replay.events,
    "objects": replay.job_objects,
    "pods": replay.pods,
}
PLAYED = [name for name, case in replay.cases().items() if case.get("timeline")]

# case -> (what is not compared, why)
NOT_REPRODUCED: dict[str, tuple[set[str], str]] = {
    "u-drop-success": ({"conditions", "last", "events"}, "upstream's manager crashes in each pass; ours completes it"),
    "t-depends-self": ({"codes", "last", "jobs", "pods"}, "refused at admission: it would never start (rule V17)"),
    "c-odd-names": ({"last"}, "upstream counts no Job of a ReplicatedJob without a name: what depends on it is stuck"),
}


@pytest.mark.parametrize("case", PLAYED)
def test_same_as_recorded(case: str) -> None:
    left_out, _ = NOT_REPRODUCED.get(case, (set(), ""))
    player = Player(case).play()
    found = [text for name, aspect in ASPECTS.items() if name not in left_out for text in aspect(player)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", sorted(NOT_REPRODUCED))
def test_the_table_is_needed(case: str) -> None:
    left_out, reason = NOT_REPRODUCED[case]
    assert reason
    player = Player(case).play()
    for name in left_out:
        assert ASPECTS[name](player), f"{name} of {case} is as recorded: take it from the table"


def test_there_are_many() -> None:
    assert len(PLAYED) > 100
