"""Fixtures around the embedded API server. Nothing of Kohort is loaded until a test asks for one of them."""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

try:  # pytest-asyncio in strict mode wants its own; anyio's plugin takes plain ones
    import pytest_asyncio
except ImportError:
    async_fixture: Any = pytest.fixture
else:
    async_fixture = pytest_asyncio.fixture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from kohort.kube.client import Client
    from kohort.testing.server import ServerThread

_MINOR: Final = "kohort_kubernetes"
_GATES: Final = "kohort_feature_gates"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kohort", "an embedded Kubernetes API server")
    group.addoption("--kohort-kubernetes", metavar="MINOR", help="1.35, 1.36 or 1.37: the release of kohort_server")
    group.addoption("--kohort-feature-gates", metavar="A=true,B=false", help="feature gates of kohort_server")
    parser.addini(_MINOR, "as --kohort-kubernetes", default="")
    parser.addini(_GATES, "as --kohort-feature-gates", default="")


@pytest.fixture(scope="session")
def kohort_servers() -> Iterator[Callable[..., ServerThread]]:
    """A function: minor and gates -> running server; the same server for the same arguments."""
    servers: dict[tuple[object, ...], ServerThread] = {}
    with ExitStack() as stack:

        def server(minor: str = "", gates: Mapping[str, bool] | None = None) -> ServerThread:
            from kohort.api.releases import NEWEST
            from kohort.testing.server import ServerThread

            key = (minor or NEWEST, tuple(sorted((gates or {}).items())))
            if key not in servers:
                servers[key] = stack.enter_context(ServerThread(minor or NEWEST, gates))
            return servers[key]

        yield server


@pytest.fixture(scope="session")
def kohort_server(kohort_servers: Callable[..., ServerThread], pytestconfig: pytest.Config) -> ServerThread:
    """`.kubeconfig`, `.url`, `.token`, `.ca_file`, `.kubeconfig_of(account, namespace)`."""

    return kohort_servers(_chosen(pytestconfig, _MINOR), _gates(_chosen(pytestconfig, _GATES)))


def _chosen(config: pytest.Config, name: str) -> str:
    """On the command line, or in the ini file; neither, where a conftest took the fixtures without the plugin."""
    given = config.getoption(name, default=None)
    with suppress(ValueError):
        given = given or config.getini(name)
    return str(given or "")


@pytest.fixture
def kohort_namespace(kohort_server: ServerThread, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a new namespace, made from the test's. It is deleted afterwards."""
    prefix = prefix_of(request.node.name)

    async def make(client: Client) -> Any:
        return await client.resource("namespaces").create({"metadata": {"generateName": f"{prefix}-"}})

    async def end(client: Client) -> Any:
        return await client.resource("namespaces").delete(name)

    name = kohort_server.run(make)["metadata"]["name"]
    yield name
    kohort_server.run(end)


@async_fixture  # type: ignore[untyped-decorator]
async def kohort_client(kohort_server: ServerThread, kohort_namespace: str) -> AsyncIterator[Client]:
    """An administrator's `kohort.kube.client.Client`, whose namespace is the test's."""
    from kohort.kube.client import Client

    async with Client.connect(kohort_server.kubeconfig) as client:
        client.namespace = kohort_namespace
        yield client


def prefix_of(wanted: str) -> str:
    """A valid beginning of a name."""
    return re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:50].rstrip("-") or "test"


def _gates(text: str) -> dict[str, bool]:
    """`A=true,B=false`; unknown names are refused by the server, which knows them."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for name, _, value in pairs:
        if value.lower() not in ("true", "false"):
            raise pytest.UsageError(f"--kohort-feature-gates: {name}={value}: expected true or false")
    return {name.strip(): value.lower() == "true" for name, _, value in pairs}
