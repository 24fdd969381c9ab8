"""On the server's side: one request in a worker process, with the answers to what it asks meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.childprocess import ChildEndedError
from kohort.kube.wire import Response
from kohort.server import status
from kohort.server.admission import quota_usage
from kohort.server.admission.attributes import AdmissionAttributes
from kohort.server.admission.webhooks.matching import Hook
from kohort.server.admission.webhooks.review import WebhookCallError
from kohort.server.store import ConflictError, StoreError
from kohort.server.store.packing import Packed
from kohort.server.workers import UnknownResourceError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kohort.childprocess import ChildProcess
    from kohort.server.admission.chain import Admission
    from kohort.server.admission.quota_usage import Usage
    from kohort.server.core import Core
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item

_PIECE: Final = 1 << 20  # bytes of items in one message
_SENT_HEADERS: Final = ("content-type", "user-agent")  # no others matter to a handler; credentials stay here


class Session:
    """One request. What the worker asks is answered from the store as it stands at that moment."""

    def __init__(self, worker: ChildProcess, core: Core, admission: Admission, info: RequestInfo) -> None:
        self._worker, self._core, self._admission, self._info = worker, core, admission, info
        self._counted: tuple[AdmissionAttributes, Usage, Usage | None] | None = None  # what quotas were asked about

    async def run(self) -> Response:
        await self._worker.send(question(self._info, self._core.resources.changes))
        while True:
            sort, *rest = await self._worker.read()
            match sort:
                case "done":
                    code, headers, body = rest
                    return Response(code, headers, body)
                case "refused":
                    refusal, headers, warnings = rest
                    raise status.ApiError(refusal, headers=headers, warnings=warnings)
                case "store":
                    raise StoreError(rest[0])
                case "fault":
                    raise status.internal(rest[0])
                case "unknown":
                    raise UnknownResourceError
            async for answer in self._answers(sort, rest):
                await self._worker.send(answer)

    async def _answers(self, sort: str, rest: list[Any]) -> AsyncIterator[list[Any]]:
        try:
            if sort == "items":
                for piece in self._items(*rest):
                    yield ["", piece]
                yield ["", []]
            else:
                yield ["", await self._answer(sort, rest)]
        except status.ApiError as error:
            yield ["refused", error.status, error.headers, list(error.warnings)]
        except ConflictError:
            yield ["conflict"]
        except StoreError as error:
            yield ["store", str(error)]
        except WebhookCallError as error:
            yield ["webhook", error.cause]

    async def _answer(self, sort: str, rest: list[Any]) -> Any:  # noqa: PLR0911 - a table of questions
        store = self._core.store
        match sort:
            case "get":
                return _plain(store.table(rest[0]).get(rest[1], rest[2]))
            case "head":
                return _plain(store.table(rest[0]).head(rest[1], rest[2]))
            case "size":
                return store.table(rest[0]).size
            case "changes":
                return store.table(rest[0]).changes
            case "revision":
                return store.revision
            case "write":
                return await self._write(*rest)
            case "quota":
                return await self._quota(*rest)
            case "services":
                return [[one.cluster_ip, sorted(one.node_ports)] for one in self._core.service_allocator.given()]
            case "authorize_create":
                return self._core.authorize_create(self._info)
            case "webhook":
                configuration, name, spec, review = rest
                return await self._admission.caller.send(Hook(configuration, name, spec), review)
        raise ChildEndedError(f"a question that nobody knows: {sort}")

    def _items(self, table: str, namespace: str | None) -> list[list[Any]]:
        pieces: list[list[Any]] = [[]]
        held = 0
        for item in self._core.store.table(table).items(namespace):
            if held > _PIECE:
                pieces.append([])
                held = 0
            pieces[-1].append(_plain(item))
            held += len(item.value)
        return pieces

    async def _write(
        self,
        table: str,
        namespace: str,
        name: str,
        before: bytes,
        after: bytes,
        expected: int | None,
        delete: bool,
        packed: list[bytes] | None,
    ) -> int:
        """What was true when the worker asked may no longer be: the version, the namespace and the quotas are looked
        at once more, and nothing else happens between that and the write."""
        core = self._core
        if self._counted is not None:
            await self._admission.quotas.check(*self._counted)  # which may wait; from here on nothing does
        head = core.store.table(table).head(namespace, name)
        if (None if head is None else head.revision) != expected:
            raise ConflictError(head)
        if head is None:
            core.check_namespace(self._info.resource, namespace)
            core.check_terminating(self._info.resource, namespace, name)
        written = core.store.write(
            table,
            namespace,
            name,
            lambda revision: b"".join((before, str(revision).encode(), after)),
            expect=head,
            delete=delete,
            packed=None if packed is None else Packed(*packed),
        )
        if self._counted is not None and not delete:
            self._tell_usage(table, namespace, name, self._counted[1])
        return (await written).revision

    def _tell_usage(self, table: str, namespace: str, name: str, usage: Usage) -> None:
        item, resource = self._core.store.table(table).head(namespace, name), self._info.resource
        if item is not None and table == resource.table:
            self._admission.quotas.counted((resource.group, resource.plural), item, usage)

    async def _quota(
        self, operation: str, subresource: str, namespace: str, name: str, new: list[Any], old: list[Any] | None
    ) -> None:
        """`new`, `old`: what the object uses, and the one that it replaces."""
        attrs = AdmissionAttributes(
            operation, self._info.resource, subresource, namespace, name, None, None, self._info.user
        )
        before = None if old is None else quota_usage.from_wire(old)
        self._counted = (attrs, quota_usage.from_wire(new), before)
        await self._admission.quotas.check(*self._counted)


def _plain(item: Item | None) -> list[Any] | None:
    return None if item is None else [item.namespace, item.name, item.revision, item.value]


def question(info: RequestInfo, changes: int) -> dict[str, Any]:
    request, resource, user, form = info.request, info.resource, info.user, info.accepted
    return {
        "method": request.method,
        "path": request.path,
        "query": dict(request.query),
        "headers": {name: request.headers[name] for name in _SENT_HEADERS if name in request.headers},
        "body": request.body,
        "user": None if user is None else [user.name, user.uid, list(user.groups), dict(user.extra)],
        "resource": [resource.group, resource.version, resource.plural],
        "verb": info.verb,
        "namespace": info.namespace,
        "name": info.name,
        "subresource": info.subresource,
        "accepted": [form.media, form.kind, form.version, form.stream, form.pretty],
        "changes": changes,
    }
