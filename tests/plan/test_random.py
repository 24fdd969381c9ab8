"""A plan says yes if and only if submitting starts it, on the nodes that it named: random cases, embedded cluster.

KOHORT_PLANS=500 tries so many; KOHORT_PLANS_FROM=100 begins with another. Each takes a second.
"""

from __future__ import annotations

import asyncio
import os

import pytest
from tests.support.plancases import case
from tests.support.plantrial import Happened, differences, happens

from kohort.testing.cluster import cluster
from kohort.testing.virtual import VirtualLoop

FIRST = int(os.environ.get("KOHORT_PLANS_FROM", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("KOHORT_PLANS", "24")))
HALF_GONE = 200  # a gang has its turn when some of its victims have gone


@pytest.mark.parametrize("seed", sorted({*SEEDS, HALF_GONE}))
def test_what_is_planned_happens(seed: int) -> None:
    asked = case(seed)

    async def work() -> Happened:
        async with cluster(pools=asked.pools) as found:
            return await happens(found, asked)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        happened = runner.run(work())
    assert not differences(happened, "lab")
