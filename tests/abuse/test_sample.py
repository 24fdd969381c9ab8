"""A small run of the abuse suite: a few seconds of processor time. `make abuse` is the whole one.

Times are not judged here, a test runner's neighbours would decide about them; that everything is answered, that the
other tenant's gangs all start, that the process lives and that the hostile tenant can be thrown out is.
"""

from __future__ import annotations

import asyncio

import pytest
from tests.abuse.gangs import GANG_SECONDS
from tests.abuse.run import Options, run

SOME = "chain,cycle-of-parents,pattern,quantity"
UP = Options(
    only=f"{SOME},counts,schedule,patch,unread,webhook",
    objects=9,
    requests=100,
    kills=0,
    gangs=2,
    nodes=3,
    senders=4,
    idle=100,
    settle=0,
)
RUN = Options("run", only=SOME, objects=4, requests=0, kills=0, gangs=2, nodes=3, senders=4, settle=0)


@pytest.mark.timeout(900)  # a bound for a hang, not for a slow machine
@pytest.mark.parametrize("options", [UP, RUN], ids=["up", "run"])
def test_a_hostile_tenant_stops_nobody(options: Options) -> None:
    report = asyncio.run(run(options))
    assert [row.cells() for row in report.sorts.values() if not row.reached] == []
    assert report.faults == []
    assert report.hangs == []
    assert report.alive
    assert len(report.attacked) >= options.gangs
    assert max(report.attacked) < GANG_SECONDS, "a gang of the other tenant has not started"
    assert report.emptied
    assert report.transitions == 0
    assert report.idle is None or report.idle == (options.idle, 200)
