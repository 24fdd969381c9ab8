"""A small run of the abuse suite: under a minute on a quiet machine. `make abuse` is the whole one.

Times are not judged here, a test runner's neighbours would decide about them; that everything is answered, that the
other tenant's gangs all start, that the process lives and that the hostile tenant can be thrown out is.
"""

from __future__ import annotations

import asyncio

from tests.abuse.gangs import GANG_SECONDS
from tests.abuse.hostile import Maker
from tests.abuse.run import Options, run

SAMPLE = Options(objects=64, requests=300, kills=2, gangs=4, nodes=5)


def test_a_hostile_tenant_stops_nobody() -> None:
    report = asyncio.run(run(SAMPLE))
    assert report.stored, "nothing hostile was stored: the run shows nothing"
    assert report.faults == []
    assert report.hangs == []
    assert report.alive
    assert len(report.attacked) >= SAMPLE.gangs
    assert max(report.attacked) < GANG_SECONDS, "a gang of the other tenant has not started"
    assert report.emptied
    assert not report.lost, report.kills


def test_every_sort_of_attack_is_sent_and_the_same_seed_sends_the_same() -> None:
    count = len(Maker("a", 1).sorts)
    first, again = list(Maker("a", 1).attacks(count)), list(Maker("a", 1).attacks(count))
    assert [one.path for one in first] == [one.path for one in again]
    assert [one.body for one in first if one.sort != "gzip"] == [one.body for one in again if one.sort != "gzip"]
    assert len({one.sort for one in first}) == count
