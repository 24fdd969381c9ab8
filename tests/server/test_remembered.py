"""What is remembered of requests is bounded, in number and in bytes, and nobody drives out everything of the others."""

from __future__ import annotations

import pytest

from kohort import tuning
from kohort.server import remembered
from kohort.server.remembered import Remembered


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Remembered[tuple[bytes, ...]]:
    monkeypatch.setattr(remembered, "MOST", 4)
    monkeypatch.setattr(remembered, "MOST_BYTES", 100)
    monkeypatch.setattr(remembered, "LARGEST", 95)
    return Remembered()


def test_the_oldest_goes_first(known: Remembered[tuple[bytes, ...]]) -> None:
    for number in range(6):
        known.keep((number,), (b"",))
    assert list(known) == [(2,), (3,), (4,), (5,)]


def test_bytes_of_keys_and_values_count(known: Remembered[tuple[bytes, ...]]) -> None:
    known.keep((b"k" * 20, "a"), (b"v" * 20,))
    known.keep(("b", ("n" * 10,)), (b"v" * 20,))
    assert len(known) == 2
    known.keep(("c",), (b"v" * 60,))
    assert list(known) == [("b", ("n" * 10,)), ("c",)]


def test_what_is_very_large_is_not_kept_and_drives_out_nobody(known: Remembered[tuple[bytes, ...]]) -> None:
    known.keep(("a",), (b"v" * 40,))
    known.keep(("b",), (b"v" * 96,))
    assert list(known) == [("a",)]


def test_what_is_kept_again_counts_once(known: Remembered[tuple[bytes, ...]]) -> None:
    for _ in range(10):
        known.keep(("a",), (b"v" * 40,))
    known.keep(("b",), (b"v" * 40,))
    assert list(known) == [("a",), ("b",)]
    known.clear()
    known.keep(("a",), (b"v" * 90,))
    assert list(known) == [("a",)]


def test_in_calm_moments_all_of_it_goes(known: Remembered[tuple[bytes, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_forgetful", [one for one in tuning._forgetful if one() == known.clear])
    known.keep(("a",), (b"v" * 40,))
    tuning._forget()
    assert not known
    known.keep(("b",), (b"v" * 94,))
    assert list(known) == [("b",)], "what went counts no more"
