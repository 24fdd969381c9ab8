"""The client against the embedded server: the scenarios of real Kubernetes, over HTTPS and without sockets."""

import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kube.scenarios import ALL, config_map, eventually

from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.kube.informer import Informer
from kohort.kube.wire import User
from kohort.server.handlers import watch
from kohort.server.server import Server
from kohort.server.settings import Settings


@pytest.fixture(params=["https", "in process"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    async with Server(Settings(tmp_path, port=0, in_memory=True, custom_kinds=False)) as server:
        https = Client.connect(server.settings.kubeconfig_path, manager="tests")
        async with https if request.param == "https" else Client.within(server.api, manager="tests") as made:
            await made.resource("namespaces").create({"metadata": {"name": "team"}})
            made.namespace = "team"
            yield made


@pytest.mark.parametrize("scenario", ALL, ids=lambda one: one.__name__)
async def test_embedded(client: Client, scenario: Callable[[Client], Awaitable[None]]) -> None:
    await scenario(client)


async def test_an_informer_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    """The same store, the same address, another process's memory: the watch goes on, or is listed again."""
    settings = Settings(tmp_path, port=0)
    async with Server(settings) as server:
        port = server.http.port
        client = Client.connect(settings.kubeconfig_path)
        maps = client.resource("configmaps")
        versions: list[int] = []
        informer = Informer(maps, namespace="default")
        informer.handle(
            added=lambda one: versions.append(int(one["metadata"]["resourceVersion"])),
            updated=lambda old, new: versions.append(int(new["metadata"]["resourceVersion"])),
        )
        await informer.__aenter__()
        await informer.ready()
        for number in range(20):
            await maps.apply(config_map(f"m{number % 3}", x=str(number)))
    async with Server(Settings(tmp_path, port=port)):
        last = await maps.apply(config_map("last"))
        await eventually(lambda: informer.cache.get(("default", "last")) == last)
        listed = (await maps.list("default")).items
        assert {one["metadata"]["name"]: one for one in listed} == {
            key.name: one for key, one in informer.cache.items()
        }
        assert versions == sorted(set(versions))
        await informer.__aexit__(None, None, None)
        await client.close()


async def test_in_process_the_user_is_judged_too(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, port=0, in_memory=True, custom_kinds=False)) as server:
        stranger = Client.within(server.api, User("stranger", groups=("system:authenticated",)))
        with pytest.raises(ApiError) as caught:
            await stranger.resource("secrets").list("default")
        assert caught.value.code == 403


async def test_nobody_keeps_a_large_event_that_has_been_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store does. Between two events a watch may sleep for hours, with all that its variables hold."""
    monkeypatch.setattr(watch, "_CHUNK", 1 << 16)  # as if it were larger
    maps = client.resource("configmaps")
    seen: list[str] = []
    async with Informer(maps, namespace="team", transform=_without_data) as informer:
        await informer.ready()
        informer.handle(added=lambda one: seen.append(one["metadata"]["name"]))
        await maps.create(config_map("large", x="qz" * 450_000))
        await eventually(lambda: "large" in seen)
        await eventually(lambda: _holders(b"qz" * 1000) <= {"Item"})


def _without_data(one: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != "data"}


def _holders(part: bytes) -> set[str]:
    """Types of what refers to bytes with that in them."""
    return {
        type(one).__name__
        for one in gc.get_objects()
        for text in gc.get_referents(one)
        if type(text) is bytes and len(text) > 500_000 and part in text
    }
