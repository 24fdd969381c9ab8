"""In a worker: the store of the server, which is asked over a pipe, and what else only the server can do."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from kohort import frames
from kohort.server import status
from kohort.server.admission import quota_usage
from kohort.server.admission.attributes import CREATE
from kohort.server.admission.webhooks.review import WebhookCallError
from kohort.server.codec import encode
from kohort.server.store import packing
from kohort.server.store.records import ConflictError, Item, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.webhooks.matching import Hook


class Line:
    """The pipe to the server. `ask` waits for the answer: a worker has nothing else to do."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading, self._writing = reading, writing

    def read(self) -> Any:
        return frames.read(self._reading)

    def write(self, message: list[Any]) -> None:
        frames.write(self._writing, message)

    def ask(self, *question: Any) -> Any:
        self.write(list(question))
        return answered(self.read())


def answered(message: list[Any]) -> Any:
    """What an answer says, or the error that it is."""
    sort, *rest = message
    match sort:
        case "refused":
            refusal, headers, warnings = rest
            raise status.ApiError(refusal, headers=headers, warnings=warnings)
        case "store":
            raise StoreError(rest[0])
        case "conflict":
            raise ConflictError(None)
        case "webhook":
            raise WebhookCallError(rest[0])
    return rest[0]


class RemoteTable:
    def __init__(self, line: Line, name: str) -> None:
        self._line, self._name = line, name

    def get(self, namespace: str, name: str) -> Item | None:
        return _item(self._line.ask("get", self._name, namespace, name))

    def head(self, namespace: str, name: str) -> Item | None:
        return _item(self._line.ask("head", self._name, namespace, name))

    def items(self, namespace: str | None = None) -> list[Item]:
        """They come in pieces, so that the server does not stand still for them."""
        found = [Item(*one) for one in self._line.ask("items", self._name, namespace)]
        while piece := answered(self._line.read()):
            found += [Item(*one) for one in piece]
        return found

    @property
    def size(self) -> int:
        return int(self._line.ask("size", self._name))

    @property
    def changes(self) -> int:
        return int(self._line.ask("changes", self._name))


def _item(found: list[Any] | None) -> Item | None:
    return None if found is None else Item(*found)


class RemoteStore:
    """As far as handlers, listers and admission need it."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._tables: dict[str, RemoteTable] = {}

    def table(self, name: str) -> RemoteTable:
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = RemoteTable(self._line, name)
        return found

    @property
    def revision(self) -> int:
        return int(self._line.ask("revision"))

    def write(
        self,
        table: str,
        namespace: str,
        name: str,
        encode_at: Callable[[int], bytes],
        *,
        expect: Item | None,
        delete: bool = False,
    ) -> asyncio.Future[Item]:
        """The revision is known when it is written: the value is sent in two parts, around the place for it. What is
        large is packed here, where nobody waits for it."""
        mark = secrets.randbits(128) | 1 << 127
        before, _, after = encode_at(mark).partition(str(mark).encode())
        expected = None if expect is None else expect.revision
        packed = packing.around(before, after)
        revision = self._line.ask("write", table, namespace, name, before, after, expected, delete, packed)
        done: asyncio.Future[Item] = asyncio.get_running_loop().create_future()
        done.set_result(Item(namespace, name, revision, before + str(revision).encode() + after))
        return done


class RemoteQuotas:
    """The server counts: what others write at the same time counts, too. It looks again just before it writes."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is None:
            return
        kind, now = (attrs.resource.group, attrs.resource.plural), datetime.now(UTC)
        new = quota_usage.usage_of(kind, attrs.object, now, stated=attrs.operation == CREATE)
        old = None if attrs.old is None else quota_usage.usage_of(kind, attrs.old, now, stated=False)
        shown = (quota_usage.to_wire(new), None if old is None else quota_usage.to_wire(old))
        self._line.ask("quota", attrs.operation, attrs.subresource, attrs.namespace, attrs.name, *shown)


def webhook_client(line: Line) -> Callable[[Hook, dict[str, Any]], Any]:
    async def call(hook: Hook, review: dict[str, Any]) -> bytes:
        found: bytes = line.ask("webhook", hook.configuration, hook.name, dict(hook.spec), encode(review))
        return found

    return call
