"""The suite's cluster: one for each test, in each release of the API. Test bodies never ask what is behind it.

`make test` runs them on the embedded server, in virtual time. `make test-e2e-kubernetes` runs them on real
Kubernetes (KOHORT_E2E=kubernetes), in the versions that KOHORT_KUBERNETES names.

`@pytest.mark.releases("1.36", "1.37")` is for a test of what the others do not have. Markers `admission` and `jobs`
are for what only the embedded cluster has: on real Kubernetes such a test skips and says why. A module (or class) that
needs other nodes than eight plain ones, or other gates, has a fixture `pools` or `gates` of its own.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.real import Kubernetes, on

from kohort.api.options import known_option
from kohort.sim.cluster import Pool, plain
from kohort.testing.cluster import Cluster
from kohort.testing.cluster import cluster as embedded
from kohort.testing.environment.environment import Environment
from kohort.testing.pytest_plugin import kubernetes_environments, wanted_minors
from kohort.testing.virtual import VirtualLoop

__all__ = ["kubernetes_environments"]

RBAC = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
REAL = os.environ.get("KOHORT_E2E") == "kubernetes"
NOT_THERE = {  # marker -> why a test with it is not for real Kubernetes
    "admission": "needs rules at admission that a definition cannot hold: only the embedded server has them",
    "jobs": "about our Job controller: on a real cluster Jobs are kube-controller-manager's, which does otherwise",
}
MINORS = tuple(wanted_minors()) if REAL else ("1.35", "1.36", "1.37")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "minor" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("releases")
        wanted = marker.args if marker else MINORS
        chosen: list[Any] = [one for one in wanted if one in MINORS]
        why = f"about {' and '.join(wanted)}; this run is about {' and '.join(MINORS)} (K8S=…)"
        metafunc.parametrize("minor", chosen or [pytest.param("", marks=pytest.mark.skip(why))], scope="session")


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"real": asyncio.new_event_loop} if REAL else {"virtual": VirtualLoop}


@pytest.fixture
def pools() -> Sequence[Pool]:
    return plain(8)


@pytest.fixture
def gates() -> Mapping[str, bool]:
    """Gates and options that are not at their defaults."""
    return {}


@pytest.fixture
def settings() -> Mapping[str, Any]:
    """Settings of kinds, as a configuration file has them."""
    return {}


@pytest.fixture(scope="session")
def kubernetes(kubernetes_environments: Callable[..., Environment]) -> Iterator[Callable[..., Kubernetes]]:
    """A function: minor version and gates of the server -> an environment with `kohort run` beside it."""
    made: dict[tuple[object, ...], Kubernetes] = {}

    def get(minor: str, gates: Mapping[str, bool]) -> Kubernetes:
        key = (minor, *sorted(gates.items()))
        if key not in made:
            made[key] = Kubernetes(kubernetes_environments(minor, ("kcm",), gates), RBAC)
        return made[key]

    yield get
    for one in made.values():
        one.stop()


@pytest.fixture
async def cluster(
    minor: str,
    pools: Sequence[Pool],
    gates: Mapping[str, bool],
    settings: Mapping[str, Any],
    request: pytest.FixtureRequest,
) -> AsyncIterator[Cluster]:
    if REAL:
        for marker, why in NOT_THERE.items():
            if request.node.get_closest_marker(marker):
                pytest.skip(why)
        name = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.lower()).strip("-")[:40]
        ours = {gate: value for gate, value in gates.items() if known_option(gate) is not None}
        behind = request.getfixturevalue("kubernetes")(minor, {gate: gates[gate] for gate in gates if gate not in ours})
        async with on(behind, pools=pools, gates=ours, settings=settings, name=name.strip("-")) as found:
            yield found
        return
    rbac = (RBAC, RBAC.with_name("rbac-jobs.yaml"))
    async with embedded(minor, pools=pools, gates=gates, rbac=rbac, settings=settings) as found:
        yield found
        assert not found.denied, f"deploy/rbac.yaml does not allow what was tried: {found.denied[:5]}"
