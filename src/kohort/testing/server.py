"""The embedded API server in a thread of its own, over HTTPS on loopback: for tests of operators, in any language.

with ServerThread(minor="1.36") as server:
    subprocess.run(["my-operator", "--kubeconfig", server.kubeconfig])
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.api.releases import NEWEST
from kohort.kube.client import Client
from kohort.server.auth.credentials import write_kubeconfig
from kohort.server.server import Server
from kohort.server.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

_START_SECONDS: Final = 30.0
_TOKEN_SECONDS: Final = 24 * 3600


class ServerThread:
    """Objects are in memory, and gone at the end with everything else."""

    def __init__(self, minor: str = NEWEST, gates: Mapping[str, bool] | None = None) -> None:
        self.minor, self.gates = minor, dict(gates or {})
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready: Future[Server] = Future()
        self._thread = threading.Thread(target=self._run, name=f"kohort {minor}", daemon=True)

    def __enter__(self) -> ServerThread:
        self._folder = Path(tempfile.mkdtemp(prefix="kohort-test-"))
        self._thread.start()
        try:
            self._server = self._ready.result(_START_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        settings = Settings(self._folder, self.minor, self.gates, port=0, in_memory=True)
        try:
            async with Server(settings) as server:
                self._ready.set_result(server)
                await self._stop.wait()
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    # ---- how clients find it

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def token(self) -> str:
        """The administrator's."""
        return self._server.token

    @property
    def ca_file(self) -> Path:
        return self._folder / "pki" / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._server.settings.kubeconfig_path

    def kubeconfig_of(self, account: str, namespace: str = "default") -> Path:
        """For a ServiceAccount, which is made if it is not there; it may do what roles say, so nothing at first."""

        async def ask(client: Client) -> str:
            meta = {"name": account, "namespace": namespace}
            body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
            await client.resource("serviceaccounts").apply(body, manager="kohort-testing")
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
            request = msgspec.json.encode({"spec": {"expirationSeconds": _TOKEN_SECONDS}})
            made = msgspec.json.decode(await client.calls.call("POST", path, body=request))
            return str(made["status"]["token"])

        token, path = str(self.run(ask)), self._folder / f"{namespace}-{account}.kubeconfig"
        write_kubeconfig(path, url=self.url, authority=self.ca_file.read_bytes(), token=token)
        return path

    def run(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        """What `work` gives, done by an administrator in the server's thread: for preparations in plain tests."""

        async def done() -> Any:
            async with Client.within(self._server.api) as client:
                return await work(client)

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result()
