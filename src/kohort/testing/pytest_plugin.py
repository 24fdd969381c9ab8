"""A pytest plugin: an API server in a second, or a test environment with real Kubernetes.

    # conftest.py at the root
    pytest_plugins = ["kohort.testing.pytest_plugin"]

    def test_something(kohort_namespace, kohort_server):          # ours, in memory
        run_my_operator(kohort_server.kubeconfig, kohort_namespace)

    def test_something_else(kubernetes_namespace):                # the real thing
        kubernetes_namespace.client.create(kubernetes_namespace.path("podgroups"), {...})

Nothing is built inside a test. Where the binaries are not there, the test skips with one sentence that says how to get
them; on a CI machine (CI=true) that has Go such a skip would hide the whole suite, so there it is a failure, for the
versions that `KOHORT_KUBERNETES` names (default 1.37; the first is that of the plain fixtures).
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from kohort.testing.environment.assets import BINARIES, can_build, find, missing_sentence
from kohort.testing.environment.build import say
from kohort.testing.environment.environment import Environment
from kohort.testing.environment.versions import MINORS, minor_of
from kohort.testing.server_fixtures import (
    kohort_client,
    kohort_namespace,
    kohort_server,
    kohort_servers,
    prefix_of,
    pytest_addoption,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kohort.testing.client import Client

__all__ = [
    "Namespace",
    "kohort_client",
    "kohort_namespace",
    "kohort_server",
    "kohort_servers",
    "kubernetes_environment",
    "kubernetes_environments",
    "kubernetes_namespace",
    "pytest_addoption",
]


@dataclass(frozen=True)
class Namespace:
    """A new namespace in an environment, for one test."""

    name: str
    env: Environment
    client: Client

    def path(self, resource: str, group_version: str = "") -> str:
        """Of a resource in this namespace; of the Workload API of its version unless another one is named."""
        group_version = group_version or MINORS[self.env.minor].workload_api
        root = f"/api/{group_version}" if group_version == "v1" else f"/apis/{group_version}"
        return f"{root}/namespaces/{self.name}/{resource}"


def require_binaries(kubernetes: str) -> None:
    """Go on if the binaries are there; else skip with one sentence, or fail where CI could have built them."""
    if find(kubernetes, BINARIES) is not None:
        return
    sentence = missing_sentence(kubernetes)
    in_ci = os.environ.get("CI", "").lower() in {"1", "true"}
    if in_ci and can_build() and minor_of(kubernetes) in wanted_minors():
        pytest.fail(f"CI has Go, so this must not be skipped: {sentence}", pytrace=False)
    pytest.skip(sentence)


def wanted_minors() -> list[str]:
    """The versions that this run is about."""
    return [minor_of(one) for one in os.environ.get("KOHORT_KUBERNETES", "").split()] or ["1.37"]


@pytest.fixture(scope="session")
def kubernetes_environments(request: pytest.FixtureRequest) -> Iterator[Callable[..., Environment]]:
    """A function: minor version, components, gates, flags of the API server -> environment; the same for the same."""
    envs: dict[tuple[object, ...], Environment] = {}

    with ExitStack() as stack:

        def env(
            kubernetes: str = "1.37",
            with_: tuple[str, ...] = (),
            gates: Mapping[str, bool] | None = None,
            flags: tuple[str, ...] = (),
        ) -> Environment:
            key = (kubernetes, tuple(sorted(with_)), tuple(sorted((gates or {}).items())), flags)
            if key not in envs:
                require_binaries(kubernetes)
                envs[key] = stack.enter_context(Environment(kubernetes, with_, gates, apiserver_flags=flags))
            return envs[key]

        yield env
        if request.session.testsfailed:
            for one in envs.values():
                say(f"kohort.testing.environment {one.version}: logs kept in {one.keep_logs()}")


@pytest.fixture(scope="session")
def kubernetes_environment(kubernetes_environments: Callable[..., Environment]) -> Environment:
    """etcd and API server of 1.37, or of the first version in `KOHORT_KUBERNETES`."""
    return kubernetes_environments(wanted_minors()[0])


@pytest.fixture
def kubernetes_namespace(kubernetes_environment: Environment, request: pytest.FixtureRequest) -> Namespace:
    """Named after the test. It is not deleted: the whole environment is, at the end."""
    return new_namespace(kubernetes_environment, request.node.name)


def new_namespace(env: Environment, wanted: str) -> Namespace:
    """`wanted`, made a valid name, with a random end."""
    prefix = prefix_of(wanted)
    client = env.client()
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{prefix}-"}}
    made = client.create("/api/v1/namespaces", body)
    return Namespace(made["metadata"]["name"], env, client)
