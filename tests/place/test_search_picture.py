"""The picture of docs/search.md is what its script draws."""

from __future__ import annotations

from hack.search_picture import FILE, RUNGS, drawn


def test_the_picture_is_as_it_is_drawn() -> None:
    text = drawn()
    assert FILE.read_text() == text, "python -m hack.search_picture writes it anew"
    assert all(rung.name in text for rung in RUNGS)
