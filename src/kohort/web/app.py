"""The dashboard over HTTP: pages, the state of the cluster, and its changes as server-sent events. Read only."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from kohort.kube.discovery import NotServedError
from kohort.kube.errors import ApiError, KubeError
from kohort.web.details import details, node_details, one_object
from kohort.web.follower import owners
from kohort.web.following import Following
from kohort.web.nodes import without
from kohort.web.sessions import LASTS, Session, Sessions

if TYPE_CHECKING:
    from kohort.kube.client import Client
    from kohort.web.view import View

log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
COOKIE: Final = "kohort"
_BEAT: Final = 15.0  # seconds of silence, after which the browser hears that we are there
_STREAMS: Final = 200  # browsers that listen at once
_PUBLIC: Final = frozenset({"/login", "/static/style.css", "/static/login.js", "/static/icon.svg", "/favicon.ico"})
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_SESSION: Final = web.RequestKey("session", Session)


class Dashboard:
    """`hosts`: names under which browsers may ask for it; empty: any. `secure`: it is served over TLS."""

    def __init__(
        self, client: Client, sessions: Sessions, *, hosts: frozenset[str] = frozenset(), secure: bool = False
    ) -> None:
        self.client, self.sessions = client, sessions
        self.following = Following(client)
        self._hosts, self._secure = hosts, secure
        self._streams: set[asyncio.Task[Any]] = set()
        self._static = _read_static()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=1 << 16)
        app.add_routes(
            [
                web.get("/", self._page("index.html")),
                web.get("/login", self._login_page),
                web.post("/login", self._login),
                web.post("/logout", self._logout),
                web.get("/favicon.ico", self._page("icon.svg")),
                web.get("/static/{name}", self._file),
                web.get("/api/view", self._view),
                web.get("/api/stream", self._stream),
                web.get("/api/unit/{id}", self._unit),
                web.get("/api/node/{name}", self._node),
                web.get("/api/object", self._object),
            ]
        )
        return app

    async def close(self) -> None:
        """Browsers that listen would keep the server from ending."""
        for task in self._streams:
            task.cancel()
        await self.following.close()

    # ---- who asks

    @property
    def _guard(self) -> Any:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                response = await self._let_in(request, handler)
            except web.HTTPException as error:
                response = error
            except (ApiError, KubeError) as error:
                response = _failure(502, f"the API server: {error}")
            if not response.prepared:
                response.headers.update(HEADERS)
            return response

        return guard

    async def _let_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._hosts and request.host.rpartition(":")[0].strip("[]") not in self._hosts:
            return _failure(403, f"this host is not known here; accepted are {', '.join(sorted(self._hosts))}")
        if request.path == "/" and "link" in request.query:
            return await self._by_link(request)
        if request.path in _PUBLIC:
            return await handler(request)
        session = await self.sessions.find(request.cookies.get(COOKIE, ""))
        if session is None:
            if request.path == "/":
                return web.Response(status=303, headers={"Location": "/login"})
            return _failure(401, "nobody is logged in: open a link, or show a token at /login")
        request[_SESSION] = session
        return await handler(request)

    async def _by_link(self, request: web.Request) -> web.Response:
        """A link that was used is no link; but whoever is known already may click on it again."""
        session = self.sessions.enter_by_link(request.query["link"])
        if session is not None:
            return self._welcome(session)
        known = await self.sessions.find(request.cookies.get(COOKIE, "")) is not None
        return web.Response(status=303, headers={"Location": "/" if known else "/login?used=1"})

    def _welcome(self, session: Session) -> web.Response:
        made = web.Response(status=303, headers={"Location": "/"})
        made.set_cookie(
            COOKIE, session.id, httponly=True, samesite="Strict", secure=self._secure, max_age=int(LASTS), path="/"
        )
        return made

    async def _login_page(self, _: web.Request) -> web.Response:
        """One of the two ways in that the page has."""
        head, token, link, foot = re.split(r"<!-- .* -->\n", self._static["login.html"].decode())
        way = token if self.sessions.access.by_token else link
        return web.Response(text=head + way + foot, content_type="text/html", charset="utf-8")

    async def _login(self, request: web.Request) -> web.Response:
        origin = request.headers.get("Origin", "")
        if origin and origin.partition("://")[2] != request.host:
            return _failure(403, "the form of another site")
        form = await request.post()
        token = str(form.get("token") or "").strip()
        session = await self.sessions.enter_by_token(token) if token else None
        if session is None:
            return web.Response(status=303, headers={"Location": "/login?refused=1"})
        return self._welcome(session)

    async def _logout(self, request: web.Request) -> web.Response:
        self.sessions.leave(request[_SESSION].id)
        made = web.Response(status=303, headers={"Location": "/login"})
        made.del_cookie(COOKIE, path="/")
        return made

    # ---- files

    def _page(self, name: str) -> Handler:
        async def show(_: web.Request) -> web.Response:
            return self._asset(name)

        return show

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._static or name.endswith(".html"):
            return _failure(404, "no such file")
        return self._asset(name)

    def _asset(self, name: str) -> web.Response:
        type_ = _TYPES[name.rpartition(".")[2]]
        return web.Response(body=self._static[name], content_type=type_, charset="utf-8")

    # ---- the cluster

    async def _view(self, request: web.Request) -> web.Response:
        session = request[_SESSION]
        async with self.following.view() as view:
            await self._look(session, view)
            made = web.Response(body=_json(_everything(view, session)), content_type="application/json")
        made.enable_compression()
        return made

    async def _look(self, session: Session, view: View) -> None:
        spaces = {row.namespace for row in view.rows.values()}
        await self.sessions.access.look(session.sight, session.user, spaces)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Changes after a number, until the browser goes away; `reset` where it should ask for everything again."""
        if len(self._streams) >= _STREAMS:
            return _failure(429, f"{_STREAMS} browsers are listening already")
        session = request[_SESSION]
        number, epoch, mark = (_whole(request.query.get(name)) for name in ("number", "epoch", "mark"))
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            async with self.following.view() as view:
                await response.prepare(request)
                async for event, data in self._events(view, session, number, epoch, mark):
                    await response.write(b"event: %s\ndata: %s\n\n" % (event.encode(), _json(data)))
        except (ConnectionResetError, BrokenPipeError):
            pass
        finally:
            self._streams.discard(task)
        return response

    async def _events(
        self, view: View, session: Session, number: int, epoch: int, mark: int
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        sight = session.sight
        await self._look(session, view)
        changes = sight.changes
        while True:
            changed = view.since(number)
            if epoch != view.epoch or changed is None or sight.changes != changes:
                yield "reset", {}
                return
            units, nodes = changed
            if units or nodes or mark != view.marks.number:
                await self._look(session, view)
                yield "delta", _delta(view, session, units, nodes, mark)
                number, mark = view.number, view.marks.number
            else:
                number = view.number
            told = await self._news(view, number, mark)
            if await self.sessions.find(session.id) is None:
                yield "bye", {}
                return
            if not told:
                yield "beat", {"now": int(self.client.clock.now().timestamp())}
                await self._look(session, view)

    async def _news(self, view: View, number: int, mark: int) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BEAT), view.news:
                await view.news.wait_for(lambda: (view.number, view.marks.number) != (number, mark))
                return True
        return False

    async def _unit(self, request: web.Request) -> web.Response:
        session = request[_SESSION]
        async with self.following.view() as view:
            unit = view.follower.units.by_id.get(_whole(request.match_info["id"]))
            await self._look(session, view)
            if unit is None or not session.sight.may_see(unit.namespace):
                return _failure(404, "it is gone, or you may not see it")
            return _answer(details(view, unit, session.sight))

    async def _node(self, request: web.Request) -> web.Response:
        session = request[_SESSION]
        async with self.following.view() as view:
            await self._look(session, view)
            found = node_details(view, request.match_info["name"], session.sight) if session.sight.nodes else None
            return _answer(found) if found is not None else _failure(404, "it is gone, or you may not see it")

    async def _object(self, request: web.Request) -> web.Response:
        """Only what may be read by whoever asks, and only kinds that are shown here."""
        session, asked = request[_SESSION], request.query
        version, kind, name = asked.get("apiVersion", ""), asked.get("kind", ""), asked.get("name", "")
        namespace = asked.get("namespace", "")
        if kind not in (shown := _shown_kinds()):
            return _failure(400, f"kind: {kind!r} is not shown here; accepted are {', '.join(shown)}")
        group = version.rpartition("/")[0] if "/" in version else _GROUPS.get(kind, "")
        try:
            type_ = await self.client.discovery.find(f"{kind}.{group}" if group else kind)
        except NotServedError as error:
            return _failure(404, str(error))
        allowed = await self.sessions.access.may_get(session.user, type_.group, type_.plural, namespace, name)
        if not allowed:
            return _failure(404, "it is gone, or you may not see it")
        try:
            return _answer(await one_object(self.client, type_.api_version, type_.kind, name, namespace))
        except ApiError as error:
            return _failure(error.code if error.code in {403, 404} else 502, error.message or str(error))


_GROUPS: Final = dict.fromkeys(("PodGroup", "CompositePodGroup", "Workload"), "scheduling.k8s.io")


def _shown_kinds() -> tuple[str, ...]:
    return ("Pod", "Node", *_GROUPS, *(kind for _, kind in owners()))


def _everything(view: View, session: Session) -> dict[str, Any]:
    sight = session.sight
    return {
        "number": view.number,
        "mark": view.marks.number,
        "epoch": view.epoch,
        "now": int(view.clock.now().timestamp()),
        "user": sight.name,
        "levels": view.layout.levels,
        "device": view.layout.device,
        "mayNodes": sight.nodes,
        "everything": sight.everything,
        "unread": view.follower.unread,
        **_delta(view, session, set(view.rows), set(view.nodes), 0),
    }


def _delta(view: View, session: Session, units: set[int], nodes: set[str], mark: int) -> dict[str, Any]:
    """Rows of these units and nodes as they are now, as far as they may be seen; those that are gone by name."""
    sight = session.sight
    seen = {number: sight.may_see(row.namespace) for number, row in view.rows.items()} if not sight.everything else None
    found = [(number, view.rows.get(number)) for number in sorted(units)]
    rows = [view.nodes[name] for name in sorted(nodes) if name in view.nodes] if sight.nodes else []
    return {
        "number": view.number,
        "reading": view.reading,
        "units": [row.data for _, row in found if row is not None and sight.may_see(row.namespace)],
        "goneUnits": [number for number, row in found if row is None],
        "nodes": [without(row, seen) for row in rows] if seen is not None else rows,
        "goneNodes": [name for name in sorted(nodes) if name not in view.nodes] if sight.nodes else [],
        "marks": [
            one.row()
            for one in view.marks.every
            if one.number > mark and (sight.may_see(one.namespace) if one.unit else sight.nodes)
        ],
    }


def _read_static() -> dict[str, bytes]:
    folder = resources.files("kohort.web") / "static"
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name.rpartition(".")[2] in _TYPES}


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _answer(value: Any) -> web.Response:
    return web.Response(body=_json(value), content_type="application/json")


def _failure(code: int, text: str) -> web.Response:
    return web.Response(status=code, body=_json({"error": text}), content_type="application/json")


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 16 else -1
