"""`python -m kohort.server.workers.process`: a worker. It answers one request after the other, until its input ends.

Requests come in as plain data; the handlers are those of the server, over a store that is asked for what it holds.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from kohort import tuning
from kohort.api.kind import Context
from kohort.kube.wire import Request, User
from kohort.server import status
from kohort.server.admission.chain import admission
from kohort.server.auth.rbac import Authorizer
from kohort.server.core import Core
from kohort.server.crd import served
from kohort.server.crd.definition import GROUP, PLURAL, Native
from kohort.server.handlers.resource_handlers import ResourceHandlers
from kohort.server.negotiation import MediaTypeOptions
from kohort.server.requestinfo import RequestInfo
from kohort.server.resources import native_resources
from kohort.server.service_allocator import Given
from kohort.server.store.records import StoreError
from kohort.server.workers.pool import Chosen
from kohort.server.workers.remote import Line, RemoteQuotas, RemoteStore, webhook_client

if TYPE_CHECKING:
    from kohort.server.resources import Resource
    from kohort.server.store import Store

log = logging.getLogger(__name__)
_NICENESS: Final = 5  # the server's own work comes first
_SPARE: Final = 32 << 20  # bytes that it may hold for the next request


class Worker:
    """The server's handlers, built once."""

    def __init__(self, line: Line, ctx: Context, chosen: Chosen) -> None:
        self._line, self._chosen = line, chosen
        self._resources = native_resources(ctx)
        self._native = Native.of(self._resources.every())
        found = self._resources.of_plural(GROUP, PLURAL)
        assert found is not None
        self._definitions = served.definitions(found, self._native)
        self._resources.add(self._definitions)
        self._served: dict[str, tuple[int, list[Resource]]] = {}
        self._changes = -1
        self._store = RemoteStore(line)
        core = Core(cast("Store", self._store), self._resources, ctx)
        core.authorize_create = lambda _info: line.ask("authorize_create")
        core.service_allocator.use(chosen.service_range)
        core.service_allocator.given = lambda: [Given(ip, frozenset(ports)) for ip, ports in line.ask("services")]
        made = admission(
            core,
            Authorizer(core.lister) if chosen.authorize else None,
            service_accounts=chosen.service_accounts,
            own_kinds=chosen.own_kinds,
            call_webhook=webhook_client(line),
            quotas=RemoteQuotas(line),
        )
        core.use(made.plugins)
        self._handlers = ResourceHandlers(core)

    def refresh(self, changes: int) -> None:
        """Serve what the server serves. `changes`: how often that has changed there."""
        if changes == self._changes:
            return
        items = {item.name: item for item in self._store.table(self._definitions.table).items()}
        for name in [name for name in self._served if name not in items]:
            self._withdraw(name)
        for name, item in items.items():
            if name in self._served and self._served[name][0] == item.revision:
                continue
            self._withdraw(name)
            fresh = served.resources_of(self._definitions, item, self._native, own_rules=self._chosen.own_kinds)
            for one in fresh:
                self._resources.add(one)
            self._served[name] = (item.revision, fresh)
        self._changes = changes

    def _withdraw(self, name: str) -> None:
        for one in self._served.pop(name, (0, []))[1]:
            self._resources.remove(one.group, one.version, one.plural)

    async def answer(self, asked: dict[str, Any]) -> list[Any]:
        """The last message about a request."""
        self.refresh(asked["changes"])
        resource = self._resources.find(*asked["resource"])
        if resource is None:  # it was not yet established when the definitions were read, and that counts as no change
            self._changes = -1
            self.refresh(asked["changes"])
            resource = self._resources.find(*asked["resource"])
        if resource is None:
            return ["unknown"]
        info = request_info(asked, resource)
        try:
            found = await self._handlers.answer(info)
        except status.ApiError as error:
            return ["refused", error.status, error.headers, [*info.warnings, *error.warnings]]
        except StoreError as error:
            return ["store", str(error)]
        except EOFError:
            raise
        except Exception as error:
            log.exception("%r %r", info.request.method, info.request.path)
            return ["fault", f"{type(error).__name__}: {error}"]
        return ["done", found.status, found.headers, found.body]


def request_info(asked: dict[str, Any], resource: Resource) -> RequestInfo:
    user = None
    if asked["user"] is not None:
        name, uid, groups, extra = asked["user"]
        user = User(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})
    request = Request(asked["method"], asked["path"], asked["query"], asked["headers"], asked["body"], user)
    return RequestInfo(
        request,
        resource,
        asked["verb"],
        asked["namespace"],
        asked["name"],
        asked["subresource"],
        user,
        MediaTypeOptions(*asked["accepted"]),
    )


def _give_back(settled: int) -> int:
    """What a large request took is given back to the system, where its library can. The bytes that are still held."""
    held = tuning.resident()
    if held < settled + _SPARE:
        return held
    gc.collect()
    tuning.give_back()
    return tuning.resident()


def main() -> int:
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the server ends in order, and this with it
    with suppress(OSError):
        os.nice(_NICENESS)
    reading, writing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that prints by accident gets between the messages
    line = Line(reading, writing)
    try:
        settings = line.read()
        ctx = Context.of(settings["minor"], settings["gates"], settings["options"])
        worker = Worker(line, ctx, Chosen(**settings["chosen"]))
        tuning.settle()
        settled = tuning.resident()
        with asyncio.Runner() as runner:
            while True:
                line.write(runner.run(worker.answer(line.read())))
                line.write(["idle", _give_back(settled)])
    except (EOFError, BrokenPipeError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
