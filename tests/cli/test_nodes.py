"""`kohort nodes`: virtual nodes on a server that has none of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kohort.cli.common import UsageError
from kohort.cli.main import app
from kohort.cli.nodes import NodesOptions, play
from kohort.embedded import whole
from kohort.kube.client import Client
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.sim.cluster import PLAYED_BY, plain
from kohort.testing.cluster import Cluster

SMALL: dict[str, Any] = {"count": 2, "name": "virtual", "cpu": "4", "memory": "8Gi"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(Settings(tmp_path, in_memory=True, listen=False)) as server:
        yield server


@asynccontextmanager
async def playing(client: Client, asked: NodesOptions | None, **options: bool) -> AsyncIterator[Cluster]:
    """The command while it works; afterwards it has ended in order."""
    stop = asyncio.Event()
    task = asyncio.create_task(play(client, asked.pools() if asked else (), stop, **options))
    try:
        yield Cluster(client, "default", patience=30)
    finally:
        stop.set()
        assert await task == 0


async def names(client: Client) -> list[str]:
    return sorted(node["metadata"]["name"] for node in (await client.kind("v1", "Node").list()).items)


def pod(name: str, node: str) -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def test_nodes_play_pods_and_go_with_the_command(server: Server) -> None:
    async with Client.within(server.api) as client:
        asked = NodesOptions(
            **SMALL, resources=["nvidia.com/gpu=8"], labels=["rack=a"], taints=["virtual=yes:NoSchedule"]
        )
        async with playing(client, asked) as found:

            async def made() -> bool:
                return await names(client) == ["virtual-0", "virtual-1"]

            await found.until(made)
            node = await client.kind("v1", "Node").get("virtual-1")
            assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
            assert node["metadata"]["labels"]["rack"] == "a"
            assert node["spec"]["taints"] == [{"key": "virtual", "value": "yes", "effect": "NoSchedule"}]
            await found.create(pod("p", "virtual-1"))
            await found.running(1)
        assert await names(client) == []
        assert await found.pods() == []  # no controller manager is there to collect them


async def test_nodes_may_stay_and_be_played_again_and_then_go(server: Server) -> None:
    async with Client.within(server.api) as client:

        async def kept() -> bool:
            return await names(client) == ["virtual-0", "virtual-1"]

        async with playing(client, NodesOptions(**SMALL), keep=True) as found:
            await found.until(kept)
        assert await kept()
        await found.create(pod("p", "virtual-0"))
        async with playing(client, None, attach=True) as found:
            await found.running(1)
        assert await kept()
        async with playing(client, NodesOptions(**SMALL)) as found:
            await found.create(pod("q", "virtual-0"))
            await found.running(2)
        assert await names(client) == []


async def test_beside_kohort_up_each_plays_its_own(server: Server) -> None:
    async with whole(server, plain(1), controllers=()) as client, playing(client, NodesOptions(**SMALL)) as found:
        for number, node in enumerate(("node-0", "virtual-0")):
            await found.create(pod(f"p{number}", node))
        await found.running(2)
        marks = {
            node["metadata"]["name"]: PLAYED_BY in (node["metadata"].get("annotations") or {})
            for node in (await client.kind("v1", "Node").list()).items
        }
        assert marks == {"node-0": False, "virtual-0": True, "virtual-1": True}


async def test_a_node_of_somebody_else_is_not_touched(server: Server) -> None:
    async with Client.within(server.api) as client:
        await client.kind("v1", "Node").create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "virtual-1"}})
        with pytest.raises(UsageError, match="virtual-1: exists and is no virtual node; choose another --name"):
            await play(client, NodesOptions(**SMALL).pools(), asyncio.Event())
        with pytest.raises(UsageError, match="no node has the label"):
            await play(client, (), asyncio.Event(), attach=True)
        assert await names(client) == ["virtual-1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--count", "0"], "no nodes to make"),
        (["--cpu", "many"], '"many" of cpu: accepted is a quantity such as 16, 500m or 64Gi'),
        (["--taint", "a=b"], "--taint a=b: accepted is KEY=VALUE:EFFECT"),
        (["--label", "a"], "--label a: accepted is NAME=VALUE"),
        (["--name", "A_B"], '--name "A_B"'),
        (["--cluster", "/nowhere.yaml"], "--cluster /nowhere.yaml: cannot be read"),
        (["--kubeconfig", "/nowhere"], "/nowhere"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["nodes", *words])
    assert done.exit_code == 1
    assert said in done.output
