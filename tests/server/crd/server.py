"""Our server with custom resources, in a thread of its own, so that tests may speak to it without await."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from kohort.api.kind import Context
from kohort.kube.wire import Request
from kohort.server.api import Api
from kohort.server.bootstrap import custom_kinds
from kohort.server.crd import DefinitionController
from kohort.server.store import Store
from kohort.testing.client import Response


class Running:
    """Has the methods of kohort.testing.client. `shipped`: with the definitions that come with us."""

    def __init__(self, *, shipped: bool = False) -> None:
        self._shipped = shipped
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait(self._start())
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def wait(self, work: Any) -> Any:
        """For what is awaited on the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    async def _start(self) -> None:
        self.store = Store()
        await self.store.open()
        self.api = Api(self.store, Context.of("1.37"))
        self.definitions = DefinitionController(self.api)
        if self._shipped:
            await custom_kinds(self.api)
        await self.definitions.start()

    async def _stop(self) -> None:
        await self.definitions.stop()
        await self.store.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        text: str | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Response:
        parts = urlsplit(path)
        raw = text.encode() if text is not None else b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": content_type, "accept": accept, "user-agent": "test/1"}
        request = Request(method, parts.path, parse_qs(parts.query, keep_blank_values=True), headers, raw)
        found = self.wait(self.api.handle(request))
        return Response(found.status, found.body, list(found.headers.items()))

    def get(self, path: str) -> Any:
        return self.request("GET", path).json()

    def create(self, path: str, body: Any) -> Any:
        return self.request("POST", path, body).json()
