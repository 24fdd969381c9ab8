"""PodGangs as the real operator made them, at every point where a recording shows them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.grove.api.cases import recording
from tests.kinds.grove.compile.replay import Player, seen

from kohort.kinds.grove.compile import startup
from kohort.kinds.grove.compile.expand import Expansion

POINTS = [
    (name, point)
    for name, found in recording()["cases"].items()
    for point, state in found.get("seen", {}).items()
    if "podgang" in state
]
# Where ours is not the same, and why.
LATER = {("e-labels", "after the set's labels changed"): "upstream mirrors changed metadata with its next pass only"}
REFUSED = {
    ("e-clash", "after both"): "ours refuses the second set (scenario 11); upstream leaves its pods gated",
}


def _comparable(podgang: dict[str, Any]) -> dict[str, Any]:
    """Our object as the recording writes one, without the pods."""
    meta = podgang["metadata"]
    (owner,) = meta["ownerReferences"]
    row = {
        "labels": meta["labels"],
        "owner": [f"{owner['kind']}/{owner['name']} controller blocks"],
        "spec": _without_pods(podgang["spec"]),
    }
    return row | ({"annotations": meta["annotations"]} if "annotations" in meta else {})


def _without_pods(spec: dict[str, Any]) -> dict[str, Any]:
    groups = [{key: item for key, item in group.items() if key != "podReferences"} for group in spec["podgroups"]]
    return {**spec, "podgroups": groups}


@pytest.mark.parametrize(("name", "point"), [at for at in POINTS if at not in REFUSED and at not in LATER], ids=str)
def test_podgangs_as_recorded(name: str, point: str) -> None:
    player = Player(name)
    assert point in player.play()  # plays up to that look
    compiled = player.compile()
    assert [done.errors for done in compiled] == [()] * len(compiled)
    ours = {obj["metadata"]["name"]: _comparable(obj) for done in compiled for obj in done.objects}
    rows = seen(name, point, "podgang") or {}
    for row in rows.values():
        row.pop("status", None)
        row["spec"] = _without_pods(row["spec"])
    assert ours == rows


def test_a_clash_of_gang_names_shows_in_the_recording() -> None:
    """Both sets were accepted; the gang a-0-b-0 is the first one's, and the second has none."""
    rows = seen("e-clash", "after both", "podgang") or {}
    assert rows["a-0-b-0"]["owner"] == ["PodCliqueSet/a controller blocks"]


STARTS = [
    (name, point)
    for name, found in recording()["cases"].items()
    if name.startswith("s-")
    for point, state in found["seen"].items()
    if "pclq" in state
]


@pytest.mark.parametrize(("name", "point"), STARTS, ids=str)
def test_startup_order_as_recorded(name: str, point: str) -> None:
    player = Player(name)
    assert point in player.play()
    (obj,) = player.objects.values()
    waits = startup.waits_for(Expansion(obj))
    rows = seen(name, point, "pclq") or {}
    assert {clique: [parent for parent, _ in parents] for clique, parents in waits.items()} == {
        clique: row["spec"].get("startsAfter", []) for clique, row in rows.items()
    }
    for pod in (seen(name, point, "pod") or {}).values():
        told = [container.get("args", []) for container in pod["spec"].get("initContainers", [])]
        clique = pod["labels"]["grove.io/podclique"]
        assert startup.arguments(waits[clique]) == (told[-1] if told else [])


# Cases of one set whose first look shows the PodCliques; in e-suffix upstream takes the wrong template (see below).
CLIQUES = [
    name
    for name, found in recording()["cases"].items()
    if name[0] in "egs" and not name.startswith(("e-suffix", "e-clash"))
    if "pclq" in next(iter(found["seen"].values()))
]


@pytest.mark.parametrize("name", CLIQUES)
def test_podcliques_as_recorded(name: str) -> None:
    """Names, sizes, minimums and gangs of the PodCliques."""
    player = Player(name)
    point = next(player.play())
    (obj,) = player.objects.values()
    ours = {
        clique.name: (clique.replicas, clique.minimum, gang.name, gang.base)
        for gang in Expansion(obj).gangs
        for clique in gang.cliques
    }
    rows = seen(name, point, "pclq") or {}
    assert ours == {
        clique: (
            row["spec"]["replicas"],
            row["spec"]["minAvailable"],
            row["labels"]["grove.io/podgang"],
            row["labels"].get("grove.io/base-podgang"),
        )
        for clique, row in rows.items()
    }


def test_g6_suffix_of_another_name_upstream_takes_the_first() -> None:
    """Upstream builds a-0-pworker from template worker (1 replica); matching is exact here (D23)."""
    player = Player("e-suffix")
    point = next(player.play())
    rows = seen("e-suffix", point, "pclq") or {}
    assert rows["a-0-pworker"]["spec"]["replicas"] == 1
    ours = {clique.name: clique for gang in Expansion(player.objects["pcs/a"]).gangs for clique in gang.cliques}
    assert ours["a-0-pworker"].replicas == 2
    assert ours["a-0-pworker"].template["spec"]["podSpec"]["containers"][0]["image"] == "tool:p"
