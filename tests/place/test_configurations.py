"""Groups to domains by configurations: planted ones are found, and a domain's no is believed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kohort.place.configurations import Configurations


def _never() -> bool:
    return False


def _planted(seed: int, domains: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three groups in each domain, which they fill; one of them must be there."""
    dice = np.random.default_rng(seed)
    asks = dice.integers(3, 30, (domains * 3, 4)).astype(float)
    room = asks.reshape(domains, 3, 4).sum(axis=1)
    allowed = np.ones((domains * 3, domains), bool)
    allowed[::3] = np.eye(domains, dtype=bool)
    return asks, room, allowed


@pytest.mark.parametrize("seed", range(4))
def test_planted_groups_that_fill_every_domain(seed: int) -> None:
    asks, room, allowed = _planted(seed)

    def takes(domain: int, groups: tuple[int, ...]) -> bool:
        return bool((asks[list(groups)].sum(axis=0) <= room[domain]).all())

    places = Configurations(asks, room, allowed, list(range(len(asks))), takes, _never).settled()
    assert places is not None
    assert allowed[np.arange(len(asks)), places].all()
    assert all(takes(domain, tuple(np.flatnonzero(places == domain).tolist())) for domain in range(len(room)))


def test_what_a_domain_does_not_take_is_not_offered_again() -> None:
    """By sums every group fits anywhere; each domain takes only the group of its own number."""
    asks, room = np.ones((4, 4)), np.ones((4, 4))
    asked: list[tuple[int, tuple[int, ...]]] = []

    def takes(domain: int, groups: tuple[int, ...]) -> bool:
        asked.append((domain, groups))
        return set(groups) <= {domain}

    places = Configurations(asks, room, np.ones((4, 4), bool), [0, 1, 2, 3], takes, _never).settled()
    assert places is not None
    assert places.tolist() == [0, 1, 2, 3]
    assert len(asked) == len(set(asked))


def test_equal_groups_are_counted_and_each_has_a_domain() -> None:
    asks, room = np.ones((6, 4)), np.full((3, 4), 2.0)
    places = Configurations(asks, room, np.ones((6, 3), bool), [7] * 6, lambda *_: True, _never).settled()
    assert places is not None
    assert np.bincount(places).tolist() == [2, 2, 2]


def test_groups_that_cannot_all_fit_have_no_domains() -> None:
    asks, room = np.ones((7, 4)), np.full((3, 4), 2.0)
    names = random.Random(0).sample(range(7), 7)
    assert Configurations(asks, room, np.ones((7, 3), bool), names, lambda *_: True, _never).settled() is None
