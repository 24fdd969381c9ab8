"""Minimums of all gangs of a set come before the surplus of any (upstream's scenario GS8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from tests.e2e.grove_short import clique, cliqueset, group

from kohort.sim.cluster import Pool, plain
from kohort.testing.cluster import Cluster

WHOLE = {"containers": [{"name": "main", "image": "tool:1", "resources": {"requests": {"cpu": "10"}}}]}


@pytest.fixture
def pools() -> Sequence[Pool]:
    """Seven nodes, each with room for one of the pods."""
    return plain(7)


async def placed(c: Cluster) -> Counter[str]:
    return Counter(
        pod["metadata"]["labels"]["grove.io/podgang"] for pod in await c.pods() if pod["spec"].get("nodeName")
    )


@pytest.mark.releases("1.37")
async def test_gs8_scaled_gangs_get_their_minimum_before_the_base_gang_gets_more(cluster: Cluster) -> None:
    """A base gang that needs 3 of its 6 pods, and two scaled gangs that need 2 of their 4, on seven nodes."""
    a, b = clique("a", 2, 1, pod=WHOLE), clique("b", 1, 1, pod=WHOLE)
    d = clique("d", 3, 1, pod=WHOLE)
    await cluster.create(cliqueset("w", a, b, d, groups=[group("x", ["b", "d"], replicas=3, least=1)]))
    wanted = {"w-0": 3, "w-0-x-0": 2, "w-0-x-1": 2}

    async def look() -> bool:
        return sum((await placed(cluster)).values()) == 7

    await cluster.until(look, what="all nodes taken")
    assert await placed(cluster) == wanted
