"""A plain client of an `Api` in this process, with the methods of kohort.testing.client; for tests without await."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kohort.api.kind import Context
from kohort.kube.wire import Request
from kohort.server.api import Api
from kohort.server.store import Store
from kohort.testing.client import Response


async def joined(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


class Talk:
    """Owns an event loop, a store in memory and an API over it."""

    def __init__(self, minor: str = "1.37", gates: Any = None, store: Store | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.store = store or Store()
        if store is None:
            self.loop.run_until_complete(self.store.open())
        self.minor = minor
        self.switch(gates)

    def switch(self, gates: Any) -> None:
        """A restart on the same store with other gates."""

        async def make() -> Api:
            return Api(self.store, Context.of(self.minor, gates))

        self.api = self.loop.run_until_complete(make())

    def close(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()

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
        raw = text.encode() if text is not None else b"" if body is None else json.dumps(body).encode()
        return self.send(method, path, raw, content_type, accept)

    def send(
        self, method: str, path: str, raw: bytes, content_type: str = "", accept: str = "application/json"
    ) -> Response:
        parts = urlsplit(path)
        headers = {"content-type": content_type, "accept": accept, "user-agent": "talk/1"}
        query = parse_qs(parts.query, keep_blank_values=True)
        found = self.loop.run_until_complete(self.api.handle(Request(method, parts.path, query, headers, raw)))
        body = found.body if isinstance(found.body, bytes) else self.loop.run_until_complete(joined(found.body))
        return Response(found.status, body, list(found.headers.items()))

    def get(self, path: str) -> Any:
        return self.request("GET", path).json()

    def create(self, path: str, body: Any) -> Any:
        return self.request("POST", path, body).json()
