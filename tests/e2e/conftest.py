"""The suite's cluster: one for each test, in each generation of the API. Test bodies never ask what is behind it.

`@pytest.mark.generations("1.36", "1.37")` is for a test of what the others do not have. A module (or class) that needs
other nodes than eight plain ones has a fixture `pools` of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from kohort.sim.cluster import Pool, plain
from kohort.testing.cluster import Cluster
from kohort.testing.cluster import cluster as embedded
from kohort.testing.virtual import VirtualLoop

RBAC = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
MINORS = ("1.35", "1.36", "1.37")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "minor" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("generations")
        metafunc.parametrize("minor", marker.args if marker else MINORS)


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture
def pools() -> Sequence[Pool]:
    return plain(8)


@pytest.fixture
def gates() -> Mapping[str, bool]:
    """Gates and options that are not at their defaults."""
    return {}


@pytest.fixture
async def cluster(minor: str, pools: Sequence[Pool], gates: Mapping[str, bool]) -> AsyncIterator[Cluster]:
    async with embedded(minor, pools=pools, gates=gates) as found:
        yield found
