"""The client against a real API server: what it sends is understood, what it hears is understood."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from tests.kube.scenarios import ALL, config_map, eventually, pod

from kohort.kube.client import Client
from kohort.kube.config import load
from kohort.kube.credentials import Credential, Fixed, bearer
from kohort.kube.errors import ApiError
from kohort.kube.informer import Informer
from kohort.testing.environment import Environment
from kohort.testing.pytest_plugin import Namespace, require_binaries


@pytest_asyncio.fixture
async def client(kubernetes_namespace: Namespace) -> AsyncIterator[Client]:
    async with Client.connect(kubernetes_namespace.env.kubeconfig, manager="tests") as found:
        found.namespace = kubernetes_namespace.name
        yield found


@pytest.mark.parametrize("scenario", ALL, ids=lambda one: one.__name__)
async def test_real_kubernetes(client: Client, scenario: Callable[[Client], Awaitable[None]]) -> None:
    await scenario(client)


async def test_warnings_of_the_server_are_told(kubernetes_namespace: Namespace) -> None:
    told: list[str] = []
    async with Client.connect(kubernetes_namespace.env.kubeconfig, warn=told.append) as client:
        body = pod("p")
        body["spec"]["nodeSelector"] = {"beta.kubernetes.io/arch": "amd64"}
        await client.resource("pods").create(body, kubernetes_namespace.name)
    assert any("beta.kubernetes.io/arch" in text for text in told), told


async def test_an_informer_survives_restarts_of_the_server() -> None:
    """Writes go on before, between and after two restarts; the cache ends as the server's list, states in order."""
    require_binaries("1.37")
    async with Environment("1.37") as env, Client.connect(env.kubeconfig) as client:
        maps = client.resource("configmaps")
        told: dict[str, list[int]] = {}

        def tell(one: dict[str, Any]) -> None:
            told.setdefault(one["metadata"]["uid"], []).append(int(one["metadata"]["resourceVersion"]))

        informer = Informer(maps, namespace="default")
        informer.handle(added=tell, updated=lambda old, new: tell(new))
        chance = random.Random(7)

        async def write(count: int) -> None:
            for _ in range(count):
                name = f"m{chance.randrange(10)}"
                if chance.random() < 0.2:
                    await maps.delete_all(fields=f"metadata.name={name}")
                else:
                    await maps.apply(config_map(name, x=str(chance.random())), force=True)

        async with informer:
            await informer.ready()
            for _ in range(2):
                await write(60)
                await asyncio.to_thread(env.restart, env.gates)
                await write(60)
            last = await maps.apply(config_map("last"))
            await eventually(lambda: informer.cache.get(("default", "last")) == last)
            listed = (await maps.list("default")).items
            assert {one["metadata"]["name"]: one for one in listed} == {
                key.name: one for key, one in informer.cache.items()
            }
        assert informer.counts.failures > 0, "the restarts were felt"
        with pytest.raises(ApiError) as expired:
            [event async for event in maps.watch(version="1", seconds=5)]
        assert expired.value.expired
        assert all(versions == sorted(set(versions)) for versions in told.values())


async def test_a_token_that_is_not_taken_is_said(kubernetes_environment: Environment) -> None:
    config = replace(load(kubernetes_environment.kubeconfig), credentials=Fixed(Credential(bearer("wrong"))))
    async with Client.connect(config) as stranger:
        with pytest.raises(ApiError) as caught:
            await stranger.resource("pods").list()
    assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")
