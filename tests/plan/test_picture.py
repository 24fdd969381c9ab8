"""The picture of docs/topology.md is of a placement as it is made today."""

from __future__ import annotations

from hack.topology_picture import FILE, drawn, placement


def test_the_picture_shows_the_placement() -> None:
    racks = placement()
    assert racks == {"rack-0": [0, 1, 2, 3], "rack-1": [4, 5, 6, 7], "rack-2": [8, 9]}
    text = drawn(racks)
    assert text.count('class="crosses"') == 2
    assert FILE.read_text() == text, "python -m hack.topology_picture writes it anew"
