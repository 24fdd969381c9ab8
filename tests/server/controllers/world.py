"""A server with its jobs, on a clock that tests move."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kohort.api.kind import Context
from kohort.kube.clock import VirtualClock
from kohort.kube.wire import Request
from kohort.server.api import Api
from kohort.server.controllers import ALL, ControllerManager
from kohort.server.store import Store

Object = dict[str, Any]


class World:
    def __init__(self, kinds: Sequence[Any] = ALL) -> None:
        self.clock = VirtualClock()
        self.store = Store()
        self._kinds = kinds

    async def __aenter__(self) -> World:
        await self.store.open()
        self.api = Api(self.store, Context.of("1.37"))
        await self.post("/api/v1/namespaces", {"metadata": {"name": "ns"}})
        self.controllers = ControllerManager(self.api, self.clock, self._kinds)
        self.controllers.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.controllers.stop()
        await self.store.close()

    async def ask(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        parts = urlsplit(path)
        headers = {"content-type": content_type, "accept": "application/json", "user-agent": "test/1"}
        raw = b"" if body is None else json.dumps(body).encode()
        answer = await self.api.handle(Request(method, parts.path, parse_qs(parts.query), headers, raw))
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)

    async def post(self, path: str, body: Object) -> Object:
        code, made = await self.ask("POST", path, body)
        assert code == 201, made
        return made

    async def get(self, path: str) -> Object | None:
        code, found = await self.ask("GET", path)
        return found if code == 200 else None

    async def delete(self, path: str, policy: str = "Background", **more: Any) -> Object:
        code, found = await self.ask("DELETE", path, {"propagationPolicy": policy, **more})
        assert code in (200, 202), found
        return found

    async def patch(self, path: str, change: Any) -> Object:
        code, found = await self.ask("PATCH", path, change, "application/merge-patch+json")
        assert code == 200, found
        return found

    async def config_map(
        self, name: str, *owners: Object, namespace: str = "ns", block: bool = False, **meta: Any
    ) -> Object:
        references = [reference(owner, block=block) for owner in owners]
        body = {"metadata": {"name": name, "ownerReferences": references, **meta}}
        return await self.post(f"/api/v1/namespaces/{namespace}/configmaps", body)

    async def names(self, plural: str = "configmaps", namespace: str = "ns") -> set[str]:
        found = await self.get(f"/api/v1/namespaces/{namespace}/{plural}")
        assert found is not None
        return {one["metadata"]["name"] for one in found["items"]}

    async def quiet(self, seconds: float = 0.0) -> None:
        """Until nobody has anything to do."""
        await self.clock.advance(seconds)
        for _ in range(200):
            await self.clock.settle()
            if all(job.idle for job in self.controllers.controllers):
                await asyncio.sleep(0.001)
                await self.clock.settle()
                if all(job.idle for job in self.controllers.controllers):
                    return
        raise AssertionError("the jobs do not come to rest")


def reference(owner: Object, *, block: bool = False) -> Object:
    names = {name: owner["metadata"][name] for name in ("name", "uid")}
    found = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], **names}
    return found | ({"blockOwnerDeletion": True} if block else {})
