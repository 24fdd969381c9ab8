"""A server without a port: store in memory, roles and namespaces as at a first start, admission on."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kohort.api.kind import Context
from kohort.kube.wire import Request, User
from kohort.server import bootstrap
from kohort.server import requestinfo as asking
from kohort.server.admission.chain import Admission, admission
from kohort.server.admission.webhooks.caller import Resolver
from kohort.server.api import Api
from kohort.server.auth.rbac import Authorizer
from kohort.server.store import Store

Object = dict[str, Any]
WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
ROOT = User("root", groups=("system:masters", "system:authenticated"))


class Answer:
    def __init__(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.code, self.headers = code, headers
        self.body: Any = json.loads(body) if body else None
        self.warnings = [text.replace('\\"', '"') for text in WARNING.findall(headers.get("warning", ""))]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class World:
    """`await World.make()`; asks as `ROOT` unless told otherwise."""

    api: Api
    store: Store
    admission: Admission

    @classmethod
    async def make(
        cls,
        minor: str = "1.37",
        *,
        ctx: Context | None = None,
        resolver: Resolver | None = None,
        accounts: bool = False,
    ) -> World:
        world = cls()
        world.store = Store()
        await world.store.open()
        world.api = Api(world.store, ctx or Context.of(minor))
        authorizer = Authorizer(world.api.core.lister)
        world.api.authorizer = authorizer
        world.admission = admission(world.api.core, authorizer, resolver=resolver, service_accounts=accounts)
        world.api.core.use(world.admission.plugins)
        await bootstrap.bootstrap(world.api)
        return world

    async def ask(
        self, method: str, path: str, body: Any = None, *, user: User = ROOT, media: str = "application/json"
    ) -> Answer:
        parts = urlsplit(path)
        raw = b"" if body is None else json.dumps(self._typed(method, parts.path, body)).encode()
        headers = {"content-type": media, "user-agent": "test/1"}
        request = Request(method, parts.path, parse_qs(parts.query), headers, raw, user)
        found = await self.api.handle(request)
        assert isinstance(found.body, bytes)
        return Answer(found.status, found.body, found.headers)

    def _typed(self, method: str, path: str, body: Any) -> Any:
        """A custom resource has to say what it is; tests need not."""
        at = asking.address(path)
        one = asking.find(self.api.resources, at) if at is not None and not at.subresource else None
        if one is None or one.native or method not in ("POST", "PUT") or not isinstance(body, dict):
            return body
        return {"apiVersion": one.api_version, "kind": one.kind, **body}

    async def made(self, path: str, body: Object) -> Object:
        answer = await self.ask("POST", path, body)
        assert answer.code == 201, answer.body
        return dict(answer.body)

    async def namespace(self, name: str, **labels: str) -> str:
        await self.made("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        return f"/api/v1/namespaces/{name}"


def pod(name: str, *resources: Object, **spec: Any) -> Object:
    """A container for each of `resources`, named c0, c1, ..."""
    containers = [{"name": f"c{n}", "image": "i", "resources": one} for n, one in enumerate(resources or ({},))]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}
