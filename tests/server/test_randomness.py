from __future__ import annotations

import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from kohort.server import randomness


def test_uids_are_random_uuids() -> None:
    made = [randomness.uid() for _ in range(2000)]
    assert len(set(made)) == len(made)
    for one in made:
        read = uuid.UUID(one)
        assert (str(read), read.version, read.variant) == (one, 4, uuid.RFC_4122)


def test_the_system_is_asked_for_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    system = os.urandom

    def urandom(size: int) -> bytes:
        asked.append(size)
        return system(size)

    monkeypatch.setattr(os, "urandom", urandom)
    for _ in range(1000):
        randomness.uid()
    assert len(asked) <= 1000 // 64 + 1


def test_no_thread_gets_a_uid_of_another() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            made = [
                one for some in pool.map(lambda _: [randomness.uid() for _ in range(5000)], range(4)) for one in some
            ]
    finally:
        sys.setswitchinterval(interval)
    assert len(set(made)) == 20_000


def test_suffixes_are_of_upstreams_letters() -> None:
    made = {randomness.suffix() for _ in range(2000)}
    assert len(made) > 1900
    assert {len(one) for one in made} == {5}
    assert set("".join(made)) == set("bcdfghjklmnpqrstvwxz2456789")
