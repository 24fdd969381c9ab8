"""The proxy that cannot be relied on: it passes everything through, unless the die says otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.kube.client import Client
from kohort.kube.errors import ApiError, TransportError
from kohort.kube.informer import Informer
from kohort.testing.proxy import Dice, Proxy, Released, Throw
from kohort.testing.server import ServerThread


class Loaded(Dice):
    """Falls as it is told, then as nothing happens."""

    sides: list[Throw]
    waited = False  # whether a request has come in whole, and is kept waiting

    def throw(self, method: str, *, watch: bool) -> Throw:
        return self.sides.pop(0) if self.sides else None

    def wait(self) -> float:
        self.waited = True
        return super().wait()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as made:
        yield made


@pytest.fixture
async def proxy(server: ServerThread, tmp_path: Path) -> AsyncIterator[Proxy]:
    dice = Loaded(0, pause=0.05)
    dice.sides = []
    async with Proxy(server.url, server.ca_file, tmp_path / "pki", dice) as made:
        yield made


@pytest.fixture
async def client(server: ServerThread, proxy: Proxy, tmp_path: Path) -> AsyncIterator[Client]:
    path = tmp_path / "kubeconfig"
    path.write_text(proxy.kubeconfig("admin", server.token))
    async with Client.connect(path) as made:
        await made.discovery.kind("v1", "ConfigMap")
        yield made


def loaded(proxy: Proxy, *sides: Throw) -> None:
    assert isinstance(proxy.dice, Loaded)
    proxy.dice.sides = list(sides)


def config(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.mark.parametrize("code", [409, 500])
async def test_a_refusal_is_the_proxys_own_and_nothing_was_done(proxy: Proxy, client: Client, code: int) -> None:
    loaded(proxy, code)
    with pytest.raises(ApiError, match="bad weather") as said:
        await client.resource("configmaps").create(config(f"refused-{code}"))
    assert said.value.code == code
    with pytest.raises(ApiError, match="not found"):
        await client.resource("configmaps").get(f"refused-{code}")


async def test_a_busy_server_says_when_to_come_back_and_the_client_does(proxy: Proxy, client: Client) -> None:
    loaded(proxy, 429)
    made = await client.resource("configmaps").create(config("busy"))
    assert made["metadata"]["name"] == "busy"


async def test_unsent_was_not_carried_out_and_lost_was(proxy: Proxy, client: Client) -> None:
    maps = client.resource("configmaps")
    for name, side in (("unsent", "unsent"), ("lost", "lost")):
        loaded(proxy, side)
        with pytest.raises(TransportError):
            await maps.create(config(name))
    found = {one["metadata"]["name"] for one in (await maps.list()).items}
    assert "lost" in found
    assert "unsent" not in found


async def test_a_watch_streams_and_goes_on_after_a_cut(proxy: Proxy, client: Client) -> None:
    maps = client.resource("configmaps")
    informer = Informer(maps, namespace="default")
    async with informer:
        await informer.ready()
        for name in ("before", "after"):
            await maps.create(config(name))
            async with asyncio.timeout(60):
                while ("default", name) not in informer.cache:
                    await asyncio.sleep(0.01)
            proxy.cut()
        assert informer.counts.lists == 1


async def test_what_is_dead_answers_nobody_until_it_is_revived(proxy: Proxy, client: Client) -> None:
    proxy.die()
    with pytest.raises(TransportError):
        await client.version()
    proxy.revive()
    assert (await client.version())["major"] == "1"


async def test_silence_keeps_everybody_waiting(proxy: Proxy, client: Client) -> None:
    proxy.hush()
    asked = asyncio.create_task(client.version())
    await asyncio.sleep(0.1)
    assert not asked.done()
    proxy.speak()
    assert (await asked)["major"] == "1"


async def test_a_request_is_carried_out_although_its_sender_is_gone(proxy: Proxy, client: Client) -> None:
    """As when a process is killed with a write under way."""
    maps = client.resource("configmaps")
    loaded(proxy, "late")
    proxy.dice.pause = 0.5
    asked = asyncio.create_task(maps.create(config("orphan")))
    async with asyncio.timeout(60):
        while not (isinstance(proxy.dice, Loaded) and proxy.dice.waited):
            await asyncio.sleep(0)
        asked.cancel()
        while "orphan" not in {one["metadata"]["name"] for one in (await maps.list()).items}:
            await asyncio.sleep(0.02)


async def test_bindings_that_the_server_took_are_written_down(proxy: Proxy, client: Client) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    await client.resource("nodes").create(node)
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}
    made = await client.resource("pods").create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    )
    uid = made["metadata"]["uid"]
    await client.resource("pods").bind("p", "n", uid=uid)
    with pytest.raises(ApiError):
        await client.resource("pods").bind("p", "n", uid=uid)
    assert [(one.uid, one.pod, one.node) for one in proxy.bindings] == [(uid, "p", "n")]


async def test_leases_that_are_given_up_are_written_down(proxy: Proxy, client: Client) -> None:
    """Also if the server's answer is lost; a lease that is renewed is not given up."""
    leases = client.resource("leases")
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-11-18T01:00:00.000000Z"}
    held = await leases.create({**body, "spec": spec})
    held = await leases.update({**held, "spec": {**spec, "renewTime": "2026-11-18T01:00:01.000000Z"}})
    assert proxy.releases == []
    loaded(proxy, "lost")
    with pytest.raises(ApiError, match="409"):  # it is sent again, and the server had heard it
        await leases.update({**held, "spec": {"leaseDurationSeconds": 1, "renewTime": "2026-11-18T01:00:02.000000Z"}})
    assert proxy.releases == [Released("l", "2026-11-18T01:00:02.000000Z")] * 2


def test_a_seed_repeats_what_happens() -> None:
    def throws(seed: int) -> list[Throw]:
        dice = Dice(seed, rate=0.5)
        return [dice.throw(method, watch=False) for method in ("GET", "POST", "PUT") * 30]

    assert throws(1) == throws(1) != throws(2)


def test_a_read_meets_no_conflict_and_good_weather_meets_nothing() -> None:
    dice = Dice(3, rate=1.0)
    assert 409 not in {dice.throw("GET", watch=False) for _ in range(200)}
    assert {dice.throw("POST", watch=False) for _ in range(200)} >= {409, 429, 500, 503, "lost", "unsent", "late"}
    dice.bad = False
    assert {dice.throw("POST", watch=False) for _ in range(50)} == {None}
