"""The API itself, without any transport: a request comes in, a response goes out.

HTTP (kohort.server.http) and clients of the same process (kohort.kube.transport.InProcess) both call `Api.handle`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kohort.kube.wire import Response
from kohort.server import negotiation, options, render, requestinfo, status
from kohort.server.auth.attributes import AuthorizerAttributes, forbidden
from kohort.server.auth.impersonate import apply as impersonate
from kohort.server.core import Core
from kohort.server.discovery_handler import DiscoveryHandler
from kohort.server.handlers import delete
from kohort.server.handlers.resource_handlers import ResourceHandlers
from kohort.server.handlers.watch import Watch
from kohort.server.metrics import Metrics
from kohort.server.resources import native_resources
from kohort.server.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kohort.api.kind import Context, Object
    from kohort.kube.wire import Request, User
    from kohort.server.negotiation import MediaTypeOptions
    from kohort.server.pace import Pace
    from kohort.server.requestinfo import RequestInfo, ResourcePath
    from kohort.server.resources import Resource
    from kohort.server.store import Item, Store
    from kohort.server.workers.pool import WorkerPool

log = logging.getLogger(__name__)
_HEALTH: Final = {"/healthz", "/livez", "/readyz"}
_READINESS: Final = {"store"}  # a restart would not mend it
_UPGRADED: Final = {("pods", "exec"), ("pods", "attach"), ("pods", "portforward")}
_WITH_BODY: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_CONNECTING: Final = {"exec", "attach", "portforward", "proxy"}
_LONGEST_PATH: Final = 256
_CREATES: Final = 1024  # paths of creates that are remembered
_NOWHERE: Final = requestinfo.ResourcePath("", "")


class _Create(NamedTuple):
    """What the path of a create means, as long as the resources have not changed."""

    resource: Resource
    namespace: str
    asked: AuthorizerAttributes
    form: MediaTypeOptions


class Api:
    """Parts that others own are given: `authenticator` and `authorizer` (None: everybody may do everything),
    `plugins` (admission), `special` (answers of resources that are not stored, such as reviews and tokens; keys are
    (plural, subresource))."""

    def __init__(
        self,
        store: Store,
        ctx: Context,
        *,
        authenticator: Any = None,
        authorizer: Any = None,
        plugins: Sequence[Any] = (),
        version: str = "",
        address: str = "127.0.0.1:6443",
    ) -> None:
        self.store, self.ctx = store, ctx
        self.authenticator, self.authorizer = authenticator, authorizer
        self.resources = native_resources(ctx)
        self.core = Core(store, self.resources, ctx, plugins)
        self.core.authorize_create = self._authorize_create
        self.core.reread()
        self.handlers = ResourceHandlers(self.core)
        self.workers: WorkerPool | None = None  # for requests that take long
        self.pace: Pace | None = None  # for many short ones; None: whatever comes is answered at once
        self.metrics = Metrics(store, ctx)
        self.discovery = DiscoveryHandler(ctx.release.minor, self.resources, version, address)
        self.special: dict[tuple[str, str], Callable[[RequestInfo], Awaitable[tuple[int, Item | Object]]]] = {}
        self.checks: dict[str, Callable[[], bool]] = {"ping": lambda: True, "store": lambda: store.accepts_writes}
        self._stop = asyncio.Event()
        self._creates: dict[tuple[str, str], _Create] = {}  # by path and what is accepted
        self._creates_at = -1  # the state of the resources that they are of

    def stop(self) -> None:
        """End all watches."""
        self._stop.set()
        self.store.wake()

    # ---- one request

    async def handle(self, request: Request, read_body: Callable[[], Awaitable[bytes]] | None = None) -> Response:
        """Never raises: whatever goes wrong is a Status. `read_body` brings a body that has not come yet; it is asked
        once it is known that its sender may do what the request is for."""
        began = time.perf_counter()
        if self.pace is None:
            return await self._handled(request, read_body, began)
        return await self.pace.handled(request, self._handled(request, read_body, began))

    async def _handled(
        self, request: Request, read_body: Callable[[], Awaitable[bytes]] | None, began: float
    ) -> Response:
        verb, resource, deprecation = "", "", ""
        try:
            user = self._authenticate(request)
            info = self._like_before(request, user)
            at = requestinfo.address(request.path) if info is None and request.path.startswith("/api") else None
            if info is None and (at is None or not at.plural):
                found = self._non_resource(request, user, at)
            else:
                info = info or self._request_info(request, at or _NOWHERE, user)
                verb, resource, deprecation = info.verb, info.resource.plural, info.resource.deprecation
                try:
                    if read_body is not None and verb in _WITH_BODY:
                        info.request = replace(request, body=await read_body())
                    found = await self._answer(info)
                except status.ApiError as error:
                    error.warnings = (*info.warnings, *error.warnings)  # warnings about the body go with a refusal, too
                    raise
        except status.ApiError as error:
            found = render.failure(error)
        except StoreError as error:
            found = render.failure(status.unavailable(f"the store does not accept writes: {error}", seconds=1))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("%r %r", request.method, request.path)  # quoted: a path may hold line breaks
            found = render.failure(status.internal(f"{type(error).__name__}: {error}"))
        if deprecation:
            render.add_warning(found, deprecation)
        self.metrics.count(verb, resource, found.status, time.perf_counter() - began)
        if request.method == "HEAD" and found.seconds is None:
            found.body = b""
        return found

    def _authenticate(self, request: Request) -> User | None:
        user = request.user
        if user is None and self.authenticator is not None:
            user = self.authenticator.user(request.headers)
            if user is None:
                raise status.unauthorized()
        if user is not None and self.authorizer is not None:
            user = impersonate(user, request.headers, self.authorizer.allows)
        return user

    def _authorize(self, user: User | None, attributes: AuthorizerAttributes) -> None:
        if self.authorizer is None:
            return
        if user is None:
            raise status.unauthorized()
        allowed, reason = self.authorizer.allows(user, attributes)
        if not allowed:
            raise forbidden(user, attributes, reason)

    def _authorize_create(self, info: RequestInfo) -> None:
        """An update or an apply that makes an object needs `create` as well. Asked after the rules of the kind."""
        resource = info.resource
        at = requestinfo.ResourcePath(
            resource.group, resource.version, info.namespace, resource.plural, info.name, info.subresource
        )
        self._authorize(info.user, _attributes(at, "create"))

    # ---- what is not a resource

    def _non_resource(self, request: Request, user: User | None, at: ResourcePath | None) -> Response:
        path = request.path
        self._authorize(user, AuthorizerAttributes(request.method.lower(), path=path))
        if request.method not in ("GET", "HEAD"):
            raise status.method_not_allowed()
        root = path.split("/")[1]
        if f"/{root}" in _HEALTH:
            return self._health(request, path)
        if path == "/metrics":
            text, media = self.metrics.text()
            return Response(200, {"content-type": media}, text)
        found = self.discovery.answer(request, at)
        if found is None:
            raise status.no_such_path()
        return found

    def _health(self, request: Request, path: str) -> Response:
        parts = path.strip("/").split("/")
        excluded = set(request.query.get("exclude", []))
        if parts[0] == "livez":
            excluded |= _READINESS
        checks = {name: check() for name, check in self.checks.items() if name not in excluded}
        if len(parts) > 1:
            if parts[1] not in checks:
                raise status.no_such_path()
            checks = {parts[1]: checks[parts[1]]}
        well = all(checks.values())
        lines = [f"[{'+' if good else '-'}]{name} {'ok' if good else 'failed'}" for name, good in checks.items()]
        if well and "verbose" not in request.query:
            text = "ok"
        else:
            text = "\n".join([*lines, f"{parts[0]} check {'passed' if well else 'failed'}\n"])
        return Response(200 if well else 500, {"content-type": "text/plain; charset=utf-8"}, text.encode())

    # ---- resources

    def _request_info(self, request: Request, at: ResourcePath, user: User | None) -> RequestInfo:
        resource = requestinfo.find(self.resources, at)
        named = bool(at.name)
        watching = at.watch or (not named and options.flag(request.query, "watch"))
        verb = requestinfo.request_verb(
            request.method, named, watching and request.method == "GET" and not at.subresource
        )
        asked = _attributes(at, verb)
        if not named and verb in ("list", "watch"):
            asked = asked._replace(name=options.singled_out(request.query))
        self._authorize(user, asked)
        custom = resource is not None and not resource.native
        if verb == "create" and named and not at.subresource and not custom:
            verb = ""
        if verb in ("update", "patch") and not named and not custom:
            verb = ""
        if resource is None or (at.rest and at.subresource not in _CONNECTING):
            raise status.no_such_path()
        if resource.namespaced != bool(at.namespace) and (named or not resource.namespaced or verb not in _ACROSS):
            if resource.namespaced and not named and verb == "create":
                raise status.method_not_allowed()
            if not (resource.namespaced and not named):
                raise status.no_such_path()
        if verb == "get" and (at.plural, at.subresource) in _UPGRADED and not at.group:
            # A websocket starts as a GET and may do what a POST may do.
            self._authorize(user, _attributes(at, "create"))
        self._check_verb(resource, at, verb)
        form = negotiation.negotiate(request.headers.get("accept", ""), whole=not resource.stored)
        name = at.name
        if custom and not at.subresource:
            # Whatever the path of a custom resource is, the verb decides: what is created has the name of its body.
            if verb in ("update", "patch") and not named:
                raise status.bad_request("name must be provided")
            name = "" if verb == "create" else at.name
        if verb == "create" and not named and not at.subresource:
            self._keep_create(request, _Create(resource, at.namespace, asked, form))
        return requestinfo.RequestInfo(request, resource, verb, at.namespace, name, at.subresource, user, form)

    def _keep_create(self, request: Request, create: _Create) -> None:
        if len(request.path) <= _LONGEST_PATH:
            if len(self._creates) >= _CREATES:
                self._creates.clear()
            self._creates[request.path, request.headers.get("accept", "")] = create

    def _like_before(self, request: Request, user: User | None) -> RequestInfo | None:
        """Pods and events are created by the thousand under one path: what that means is found once for each state of
        the resources, and whether this user may do it is asked each time. None: nothing like it came before."""
        if request.method != "POST":
            return None
        if self._creates_at != self.resources.changes:  # a resource that is gone must not stay
            self._creates.clear()
            self._creates_at = self.resources.changes
        one = self._creates.get((request.path, request.headers.get("accept", "")))
        if one is None:
            return None
        self._authorize(user, one.asked)
        return requestinfo.RequestInfo(request, one.resource, "create", one.namespace, "", "", user, one.form)

    def _check_verb(self, resource: Resource, at: ResourcePath, verb: str) -> None:
        if at.subresource:
            sub = resource.subresources.get(at.subresource)
            if sub is None:
                if at.subresource in _CONNECTING:
                    raise status.ApiError(
                        status.failure(
                            501, "NotImplemented", f"{at.subresource}: there are no containers here to connect to"
                        )
                    )
                raise _no_subresource(resource, at.name)
            if verb not in sub.verbs:
                raise status.method_not_allowed()
        elif verb not in resource.verbs:
            raise status.method_not_allowed()

    async def _answer(self, info: RequestInfo) -> Response:
        special = self.special.get((info.resource.plural, info.subresource))
        if special is not None:
            code, found = await special(info)
            return self.handlers.renderer.one(info, found, code)
        if not info.subresource:
            match info.verb:
                case "watch":
                    return self._watch(info)
                case "list" | "deletecollection":
                    page = await self.handlers.reader.page(info)
                    if info.verb == "deletecollection":
                        await self._delete_all(info, page.items)
                    if info.resource.conversion is not None and self.core.converter is not None:
                        page = replace(page, items=await self.core.converter.items(info.resource, page.items))
                    return self.handlers.renderer.page(info, page)
        if self.workers is None:
            return await self.handlers.answer(info)
        return await self.workers.answer(info, self.handlers.answer)

    async def _delete_all(self, info: RequestInfo, items: list[Item]) -> None:
        """One after the other, large ones as if they had been asked for one by one; whoever is gone meanwhile is
        gone."""
        chosen = delete.read_options(info)
        for item in items:
            try:
                if self.workers is None or not self.workers.is_large(item):
                    await self.handlers.deleter.remove(info, item.namespace, item.name, chosen)
                    continue
                one = replace(info, verb="delete", namespace=item.namespace, name=item.name, warnings=[])
                one.accepted = negotiation.DEFAULT
                await self.workers.answer(one, self.handlers.answer)
            except status.ApiError as error:
                if error.code not in (404, 409):
                    raise

    def _watch(self, info: RequestInfo) -> Response:
        if info.name:  # the old way: one object by its name
            selector = f"metadata.name={info.name}"
            query = {**info.request.query, "fieldSelector": [selector]}
            info.request = replace(info.request, query=query)
        watch = Watch(self.core, info, self._stop, self.metrics)
        media = "application/json;stream=watch" if info.accepted.stream else "application/json"
        headers = {"content-type": media, "cache-control": "no-cache, private"}
        if info.request.whole_lines:
            return Response(200, headers, b"", watch.seconds, watch.lines())
        return Response(200, headers, watch.chunks(), watch.seconds)


_ACROSS: Final = {"list", "watch", "deletecollection"}


def _attributes(at: ResourcePath, verb: str) -> AuthorizerAttributes:
    namespace = at.namespace or (at.name if at.plural == "namespaces" and not at.group else "")
    return AuthorizerAttributes(verb, at.group, at.plural, at.subresource, namespace, at.name, at.version)


def _no_subresource(resource: Resource, name: str) -> status.ApiError:
    """Of a custom resource, upstream says that the object is not there."""
    return status.no_such_path() if resource.native else status.not_found(resource.group, resource.plural, name)
