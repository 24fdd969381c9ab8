"""The kube-proxy of a test: what a Service's address leads to, on one machine.

An API server that gives Services addresses of the loopback range (`LOOPBACK`) finds them answering: this listens there
and passes connections on to the pods that `HostNode` runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any, Final, Self

from tests.support.hostnode import HostNode

from kohort.kube.client import Client
from kohort.kube.errors import ApiError

LOOPBACK: Final = ("--service-cluster-ip-range=127.77.0.0/16",)  # flags of kube-apiserver
_SECONDS: Final = 0.2


class HostProxy:
    """`async with HostProxy(client, host, namespace): …`"""

    def __init__(self, client: Client, host: HostNode, namespace: str) -> None:
        self._client, self._host, self._namespace = client, host, namespace
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._task: asyncio.Task[None] | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._play())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        for task in (self._task, *self._open):
            task.cancel()
        await asyncio.gather(self._task, *self._open, return_exceptions=True)
        for server in self._servers.values():
            server.close()

    async def _play(self) -> None:
        while True:
            with contextlib.suppress(ApiError):
                await self._look()
            await asyncio.sleep(_SECONDS)

    async def _look(self) -> None:
        listed = (await self._client.kind("v1", "Service").list(self._namespace)).items
        wanted = {
            (one["spec"]["clusterIP"], port["port"]): (one["spec"]["selector"], str(port["targetPort"]))
            for one in listed
            if str(one["spec"].get("clusterIP")).startswith("127.")
            for port in one["spec"]["ports"]
        }
        for gone in set(self._servers) - set(wanted):
            self._servers.pop(gone).close()
        for address in set(wanted) - set(self._servers):
            self._servers[address] = await asyncio.start_server(self._handler(*wanted[address]), *address)

    def _handler(self, labels: dict[str, str], port: str) -> Any:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._open.add(task)
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._pass_on(reader, writer, labels, port)
            writer.close()
            self._open.discard(task)

        return connected

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, labels: dict[str, str], port: str
    ) -> None:
        """To any pod; to another one if it refuses, as long as there is one."""
        ports = self._host.behind(labels, port)
        random.shuffle(ports)
        for number in ports:
            try:
                inside, outside = await asyncio.open_connection("127.0.0.1", number)
            except OSError:
                continue
            await asyncio.wait(
                [asyncio.create_task(_pump(reader, outside)), asyncio.create_task(_pump(inside, writer))],
                return_when=asyncio.FIRST_COMPLETED,
            )
            outside.close()
            return


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
