"""A whole server: the store, the API, who may do what, and the port. `kohort up` and the pytest fixture start this."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kohort.kube.clock import REAL
from kohort.server import bootstrap
from kohort.server.admission.chain import Admission, admission
from kohort.server.api import Api
from kohort.server.auth import credentials, endpoints
from kohort.server.auth.authenticator import Authenticator
from kohort.server.auth.rbac import Authorizer
from kohort.server.auth.reviews import Reviews
from kohort.server.auth.serviceaccounts import ServiceAccountTokens
from kohort.server.controllers import (
    ALL,
    ControllerManager,
    clusterrole_aggregation,
    event_expiry,
    namespace_bootstrap,
)
from kohort.server.crd import DefinitionController
from kohort.server.http import HttpServer
from kohort.server.pace import Pace
from kohort.server.store import Store, StoreError
from kohort.server.store.journal import MemoryJournal
from kohort.server.store.sqlite import SqliteJournal
from kohort.server.workers.pool import Chosen, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kohort.kube.clock import Clock
    from kohort.server.auth.credentials import Credentials
    from kohort.server.auth.tls import Pki
    from kohort.server.settings import Settings

log = logging.getLogger(__name__)
_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}
_ADDRESSES: Final = {"localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_PAUSE: Final = 1.0  # before a loop that failed goes on
_PRELOAD: Final = 2.0  # seconds after the start
_PRELOADED: Final = (
    "kohort.server.crd.rules",
    "kohort.server.workers.session",
    "kohort.server.registry.policies",
    "kohort.server.admission.policies.evaluate",
    "kohort.server.admission.policies.patches",
    "kohort.server.admission.webhooks.conditions",
    "kohort.server.crd.custom_kind",
    "kohort.server.crd.rule_check",
    "kohort.server.crd.structural",
    "kohort.server.yaml_codec",
    "kohort.api.expansion",
    "re2",
)
_COMPACTION: Final = 10.0  # seconds between two times that old history is forgotten
_LOOK: Final = 1.0  # seconds between looks at how large it is
_RECENT: Final = 3.0  # seconds of it that stay, however large


class Server:
    """`async with Server(settings) as server: ...`; or `start` and `close`."""

    def __init__(self, settings: Settings, clock: Clock = REAL) -> None:
        if settings.host not in _LOOPBACK and not settings.secure:
            raise ValueError(f"host {settings.host}: without TLS and tokens only loopback is listened on (127.0.0.1)")
        self.settings = settings
        self.clock = clock
        self.ctx = settings.context()
        self.store = Store(self._journal())
        self.token = ""
        self.pki: Pki | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.api: Api
        self.http: HttpServer
        self.admission: Admission

    def _journal(self) -> MemoryJournal | SqliteJournal:
        settings = self.settings
        if settings.in_memory:
            return MemoryJournal()
        return SqliteJournal(settings.store_path, {"Kubernetes": self.ctx.release.minor})

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def url(self) -> str:
        scheme = "https" if self.settings.secure else "http"
        return f"{scheme}://{self.settings.host}:{self.http.port}"

    async def start(self) -> None:
        """Returns when requests are answered and the kubeconfig is written."""
        settings = self.settings
        await self.store.open()
        self.api = Api(self.store, self.ctx, address=f"{settings.host}:{settings.port}")
        self.api.core.service_allocator.use(settings.service_range)
        context = None
        authenticator = None
        if settings.secure and not settings.listen:
            self.api.authorizer = Authorizer(self.api.core.lister)
        elif settings.secure:
            shown = self._credentials()
            context, authenticator = shown.context, self._secure(shown)
        self.admission = admission(
            self.api.core,
            self.api.authorizer,
            service_accounts=settings.service_accounts,
            own_kinds=settings.custom_kinds,
        )
        self.api.core.use(self.admission.plugins)
        self.api.core.min_request_timeout = settings.limits.min_request_timeout
        self.api.core.marked_seconds = settings.marked_seconds
        await bootstrap.bootstrap(self.api)
        if settings.custom_kinds:
            await bootstrap.custom_kinds(self.api)
        self.definitions = DefinitionController(self.api, own_rules=settings.custom_kinds)
        await self.definitions.start()  # before the garbage collector: an owner may be a custom resource
        self.controllers = ControllerManager(self.api, self.clock, ALL if settings.controllers else ())
        self.controllers.start()
        if settings.listen:
            self.api.pace = Pace()
            if settings.limits.workers:
                self.api.workers = self.api.metrics.workers = self._workers()
            self.http = HttpServer(self.api, context=context, authenticator=authenticator, limits=settings.limits)
            await self.http.listen(settings.host, settings.port)
            await bootstrap.endpoints(self.api, _ADDRESSES.get(settings.host, settings.host), self.http.port)
        authority = self.pki.ca_pem if self.pki is not None else None
        self._tasks = [asyncio.create_task(self._keep(name, loop)) for name, loop in self._loops(authority).items()]
        if settings.listen and settings.credentials is None:
            credentials.write_kubeconfig(settings.kubeconfig_path, url=self.url, authority=authority, token=self.token)

    def _workers(self) -> WorkerPool:
        settings, api = self.settings, self.api
        chosen = Chosen(
            authorize=api.authorizer is not None,
            service_accounts=settings.service_accounts,
            own_kinds=settings.custom_kinds,
            service_range=settings.service_range,
        )
        return WorkerPool(api.core, self.admission, settings.limits, chosen)

    def _loops(self, authority: bytes | None) -> dict[str, Callable[[], Coroutine[None, None, None]]]:
        store, resources = self.store, self.api.resources
        loops: dict[str, Callable[[], Coroutine[None, None, None]]] = {
            "compaction": self._compact,
            "event expiry": lambda: event_expiry.run(store, self.settings.event_ttl),
        }
        if self.settings.listen:
            loops["preloading"] = _preload
        if self.settings.controllers:
            loops["resource quotas"] = self.admission.quotas.run
            loops["clusterrole aggregation"] = lambda: clusterrole_aggregation.run(store, resources)
            if authority is not None:
                loops["namespace bootstrap"] = lambda: namespace_bootstrap.run(store, resources, authority)
        return loops

    def _credentials(self) -> Credentials:
        settings = self.settings
        if settings.credentials is not None:
            return settings.credentials.load()
        found = credentials.own(settings.data, settings.host)
        self.pki, self.token = found.pki, found.token
        return found

    def _secure(self, shown: Credentials) -> Authenticator:
        settings, api = self.settings, self.api
        accounts = ServiceAccountTokens(shown.key, api.core.lister, issuer=shown.issuer, audiences=shown.audiences)
        authenticator = Authenticator(shown.static, accounts, anonymous=settings.anonymous)
        authorizer = Authorizer(api.core.lister)
        api.authenticator, api.authorizer = authenticator, authorizer if settings.authorize else None
        endpoints.install(api, Reviews(authorizer, authenticator), accounts, shown.key, lambda: self.url)
        return authenticator

    async def close(self) -> None:
        """Requests under way are answered, what was written is on disk."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if hasattr(self, "http"):
            await self.http.close()
        elif hasattr(self, "api"):
            self.api.stop()
        if hasattr(self, "controllers"):
            await self.controllers.stop()
            await self.definitions.stop()
        if hasattr(self, "api") and self.api.workers is not None:
            await self.api.workers.close()
        if hasattr(self, "admission"):
            await self.admission.caller.close()
        await self.store.close()

    async def _keep(self, name: str, loop: Callable[[], Coroutine[None, None, None]]) -> None:
        """A loop that goes on after a fault; while nothing can be written it waits."""
        while True:
            try:
                await loop()
                return
            except StoreError:
                await self.store.until_writable()
            except Exception:
                log.exception("%s", name)
            await asyncio.sleep(_PAUSE)

    async def _compact(self) -> None:
        """Forget history that is older than it needs to be, or larger.

        What is large goes as well, but not its last seconds: every watcher would have to list again.
        """
        marks: deque[tuple[float, int]] = deque()
        aged = 0.0
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_LOOK, self.settings.history_seconds))
            now, upto = loop.time(), 0
            marks.append((now, self.store.revision))
            if now - aged >= _COMPACTION:
                aged = now
                while marks and now - marks[0][0] >= self.settings.history_seconds:
                    upto = marks.popleft()[1]
                self.store.compact(upto)
            while self.store.kept > self.settings.history_bytes and marks and now - marks[0][0] >= _RECENT:
                self.store.compact(marks.popleft()[1])


async def _preload() -> None:
    """What the first request of its sort would else load on the loop, for a tenth of a second."""
    await asyncio.sleep(_PRELOAD)
    for module in _PRELOADED:
        await asyncio.to_thread(import_module, module)
