"""Every recorded life of a LeaderWorkerSet, played against our controller: the same pods, Services, revisions,
conditions, events and states at rest. StatefulSets are not compared: ours makes the pods without them (spec lws 3.7).

What is not reproduced stands in ONE table, with the reason; everything else of such a case is still compared.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.kinds.leaderworkerset.control import replay
from tests.kinds.leaderworkerset.control.replay import Player

ASPECTS: dict[str, Callable[[Player], list[str]]] = {
    "looks": replay.problems,
    "conditions": replay.conditions,
    "last": replay.last,
    "created": replay.created,
    "events": replay.events,
    "recreated": replay.facts,
    "objects": replay.objects,
}
# v-: admission, tests/kinds/leaderworkerset/api
PLAYED = [name for name, case in replay.cases().items() if case.get("timeline") and not name.startswith("v-")]

STATEFULSET = "a StatefulSet is edited or deleted by hand, and here there is none"

# case -> (what is not compared, why)
NOT_REPRODUCED: dict[str, tuple[set[str], str]] = {
    "c-emptytopology": (
        {"looks", "last", "created", "events"},
        "an empty topology asks for nothing; upstream never makes the workers",
    ),
    "c-pvc": ({"looks", "created", "events", "objects"}, "claim templates are frozen; upstream accepts and is stuck"),
    "c-longname": ({"last", "created", "events"}, "the label that does not fit is a StatefulSet's; all pods come up"),
    "c-badpod": (
        {"looks", "conditions", "last", "created", "events", "objects"},
        "a bad template is refused at admission",
    ),
    "c-taken": ({"created", "events", "objects"}, "a StatefulSet of the name is not in the way"),
    "r-stsgone": ({"looks", "conditions", "recreated"}, STATEFULSET),
    "r-stsgone-none": ({"looks", "conditions", "recreated"}, STATEFULSET),
    "r-drift": ({"looks", "conditions", "created", "events"}, STATEFULSET),
    "d-leadersts": ({"looks", "conditions", "created"}, STATEFULSET),
    "g-nocrd": ({"events"}, "that the PodGroup cannot be made is told"),
    "u-blocked": ({"looks"}, "the unready group is replaced first; upstream waits for it"),
    "u-what": ({"looks"}, "exclusive-topology never changes; upstream then replaces all leaders at once"),
    "w-byo": ({"looks"}, "after the restart their scheduler bound no pod of the hand-made gang again"),
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
    assert {name for name in left_out if ASPECTS[name](player)} == left_out


def test_all_lives_are_played() -> None:
    assert len(PLAYED) == 58
