"""Every recorded life of a TrainJob, played against our controllers: same objects, conditions, Jobs, events.

What is not reproduced stands in ONE table, with the reason; everything else of such a case is still compared.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.kinds.trainer.control import replay
from tests.kinds.trainer.control.replay import Player

ASPECTS: dict[str, Callable[[Player], list[str]]] = {
    "codes": replay.codes,
    "conditions": replay.conditions,
    "last": replay.last,
    "jobs": replay.jobs,
    "events": replay.events,
    "lives": replay.lives,
    "jobsets": replay.jobsets,
    "objects": replay.objects,
}

D11 = "D11: mlPolicy.numNodes sizes the nodes of MPI, not the launcher"
GHOST = "1.4: a patch may only name what the runtime has"

# case -> (what is not compared, why)
NOT_REPRODUCED: dict[str, tuple[set[str], str]] = {
    "r-torch-more": (
        {"events", "lives"},
        "two unnamed ports: ours keeps the second, theirs never makes the JobSet (2.4 c)",
    ),
    "r-mpi-sizes": ({"objects"}, D11),
    "r-mpi-asnode": ({"objects"}, D11),
    "r-flux-none": (
        {"lives", "objects"},
        "without numNodes theirs crashes in each pass, ours takes the runtime's; no host is called -1",
    ),
    "r-both": ({"codes", "lives", "objects"}, "D3: at most one podGroupPolicy"),
    "r-patches": ({"codes", "conditions", "lives"}, GHOST),
    "r-ghost": ({"codes", "events", "lives"}, GHOST),
    "s-snapshot": (
        {"codes", "conditions", "last", "jobsets"},
        "D19: an update is judged by the snapshot, not the runtime",
    ),
    "l-update-trainer": ({"codes", "events"}, "D14: to add or drop spec.trainer is refused"),
    "l-taken": ({"conditions", "last"}, "2.5: the end of somebody else's JobSet is not the job's"),
    "l-delete": ({"last", "jobs", "lives"}, "2.5: of a job that is going nothing is made again"),
    "z-nohooks": (
        {"conditions", "last", "jobs", "lives"},
        "1.6, 1.7: what does not fit the runtime is refused when it is built, too, and an unknown kind is told",
    ),
}


@pytest.mark.parametrize("case", replay.timelines())
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
    assert len(replay.timelines()) > 40
