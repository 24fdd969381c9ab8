"""What upstream's Grove made of 60 PodCliqueSets, and what ours makes of them: the same, but for one table."""

from __future__ import annotations

import re

import pytest
from tests.kinds.grove.control.replay import Player, cases, events

LIVES = [name for name, case in cases().items() if "seen" in case]
# Ill sets are recycled as long as one looks; the recording says how often within a time of its own.
LOOKED_ON = {"x-again": 45.0, "x-early": 24.0}

# What differs, by a pattern over the differences, and why. docs/differences.md has the lines for users.
DIFFERENT: dict[str, tuple[str, str]] = {
    "e-suffix": (r"worker|pcs a status.updatedReplicas", "templates are found by their exact names, D23"),
    "e-suffix-more": (r"worker|pcs . status.updatedReplicas", "same"),
    "e-clash": (r"a-0-b", "refused when it is submitted; were it there, it would have no PodClique without a gang"),
    "e-dots": (r"pclq a-0-z status\.(updatedReplicas|replicas)", "counted on an old cache there"),
    "e-dots-name": (r"lastErrors", "the simulated API does not judge Services; the name is refused with gangs on"),
    "e-pcs-scale": (r"service: \[\] too many", "Services of replicas that are gone are left behind there"),
    "g-quota": (
        r"three pods|four pods: pclq a-0-x status.lastErrors",
        "no pod is let go before all of its gang exist, D10, scenario 43; an error that is over is not shown any more",
    ),
    "g-bound": (r"bound for|not started|started, not", "a bound pod is seen at once; there when a container starts"),
    "t-pods": (r"bound only|starting1", "same"),
    "x-group": (r"still ill|event PodCliqueSet/a", "a matter of the moment that was looked at"),
    "x-clique": (r"event PodCliqueScalingGroup/a-0-g Warning AllScheduled", "one look sees both members going"),
    "u-twice": (r"second change", "which of equally old pods is next is not told; nor does ours take one too many"),
    "u-ondelete": (r"event PodClique/a-0-x Warning AllScheduled", "two pods deleted at once are lost at once"),
    "h-pclq": (r"^[35]: |event PodClique/a-0-x Normal PodDelete", "which of equally old pods goes is not told"),
    "h-low": (r".", "scaling below the minimum is refused, D22"),
}


@pytest.mark.parametrize("name", LIVES)
def test_recorded_life(name: str) -> None:
    player = Player(name).play()
    player.api.clock.run(LOOKED_ON.get(name, 0.0))
    found = [*player.codes, *player.unlike, *events(player)]
    pattern = DIFFERENT.get(name, ("", ""))[0]
    unexpected = [text for text in found if not (pattern and re.search(pattern, text))]
    assert not unexpected, "\n".join(unexpected)
    assert bool(found) == bool(pattern), "the line in the table is not needed any more"


@pytest.mark.parametrize(
    ("name", "within", "deleted"),
    [
        ("x-clique", 0.0, {"a-0-x": 1, "a-0-y": 1, "a-0-g-0-w": 1, "a-0-g-1-w": 1}),
        ("x-replica", 0.0, {"a-0-g-0-w": 1, "a-0-g-0-v": 1}),
        ("x-never", 60.0, {}),
        ("x-heal", 60.0, {}),
        ("h-pcsg", 0.0, {"a-0-g-2-w": 1, "a-0-g-3-w": 1}),
    ],
)
def test_recorded_facts_about_deleted_cliques(name: str, within: float, deleted: dict[str, int]) -> None:
    player = Player(name).play()
    player.api.clock.run(within)
    assert player.deleted == deleted


def test_an_ill_set_is_recycled_after_every_delay() -> None:
    player = Player("x-again").play()
    before = player.api.clock.seconds
    while player.deleted.get("a-0-x", 0) < 4 and player.api.clock.seconds < before + 90:
        player.api.clock.run(1)
    assert player.deleted["a-0-x"] == player.deleted["a-0-y"] == 4
