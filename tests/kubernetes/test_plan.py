"""What `kohort plan` says of a real cluster happens there: random questions, then the same files submitted.

KOHORT_PLANS=100 asks so many, KOHORT_PLANS_FROM=50 begins with another. Each about twenty seconds, mostly waiting.
docs/plan.md says how many agreed when more were asked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.plancases import Case, case
from tests.support.plantrial import Happened, differences, happens
from tests.support.real import Kubernetes, on

from kohort.kube.errors import ApiError
from kohort.testing.cluster import Cluster
from kohort.testing.environment.environment import Environment

RBAC = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
FIRST = int(os.environ.get("KOHORT_PLANS_FROM", "1000"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("KOHORT_PLANS", "6")))
QUIET = float(os.environ.get("KOHORT_PLANS_QUIET", "3"))  # seconds without a change; more on a busy machine


@pytest.fixture(scope="module")
def kubernetes(kubernetes_environments: Callable[..., Environment]) -> Iterator[Kubernetes]:
    found = Kubernetes(kubernetes_environments("1.37", ("kcm",), {}), RBAC)
    yield found
    found.stop()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_planned_happens(seed: int, kubernetes: Kubernetes) -> None:
    asked = case(seed)
    happened, namespace = asyncio.run(_tried(kubernetes, asked))
    assert not differences(happened, namespace)


async def _tried(kubernetes: Kubernetes, asked: Case) -> tuple[Happened, str]:
    async with on(kubernetes, pools=asked.pools, gates={}, name="plan") as cluster:
        try:
            return await happens(cluster, asked, quiet=QUIET, between=QUIET, step=0.25), cluster.namespace
        finally:
            await _clear(cluster, asked)


async def _clear(cluster: Cluster, asked: Case) -> None:
    """What belongs to no namespace."""
    for obj in (obj for file in (*asked.running, *asked.submitted) for obj in file.objects):
        if obj["kind"] == "ClusterTopologyBinding":
            with suppress(ApiError):
                await cluster.client.of(obj).delete(obj["metadata"]["name"])
