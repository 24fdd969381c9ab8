"""Long lists as streams: written piece by piece in time slices, and only as fast as the client reads."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from kohort.kube import timeslice
from kohort.kube.shares import of_loop
from kohort.server import codec, negotiation, options, storage_codec
from kohort.server.codec import encode
from kohort.server.pace import tenant_of
from kohort.server.printers import table

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from kohort.api.kind import Object
    from kohort.kube.timeslice import TimeSlices
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.store import Item

LONG: Final = 500  # items: kubectl's page
LARGE: Final = 1 << 20  # bytes
_CHUNK: Final = 128 << 10


def long(items: Sequence[Item]) -> bool:
    """Whether a list is sent in pieces."""
    return len(items) > LONG or sum(len(item.value) for item in items) > LARGE


def item_writer(info: RequestInfo, head: bytes) -> Callable[[Item], bytes]:
    """How one object stands in the list that was asked for. `head`: how objects of the resource begin."""
    resource, form = info.resource, info.accepted
    if form.kind == negotiation.OBJECT and form.media == codec.JSON:
        if not resource.native:
            return lambda item: storage_codec.object_bytes(resource, head, item)
        return lambda item: storage_codec.list_item_bytes(resource, item)
    write = _yaml_item if form.media == codec.YAML else encode
    if form.kind == negotiation.TABLE:
        row = table.row_printer(resource, options.one(info.query, "includeObject"), form.version)
        return lambda item: write(row(storage_codec.load(resource, item)))
    if form.kind in (negotiation.PARTIAL, negotiation.PARTIAL_LIST):
        return lambda item: write(table.partial(storage_codec.load(resource, item), form.version))
    return lambda item: write(storage_codec.load(resource, item))


async def stream(
    info: RequestInfo, envelope: Object, name: str, items: Sequence[Item], head: bytes, slices: TimeSlices
) -> AsyncGenerator[bytes]:
    """The list `envelope` whose member `name`, the last one, has these items."""
    write = item_writer(info, head)
    yaml = info.accepted.media == codec.YAML
    start = codec.to_yaml(envelope) + f"{name}:\n".encode() if yaml else _open(envelope, name)
    between = b"" if yaml else b","
    waiting: list[bytes] = [start]
    size, first = 0, True
    end = await slices.turn()
    for item in items:
        if not first:
            waiting.append(between)
        first = False
        piece = write(item)
        waiting.append(piece)
        size += len(piece)
        if size >= _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
        if time.perf_counter() >= end:
            end = await _later(info, slices, end)
    waiting.append(b"" if yaml else b"]}\n")
    yield b"".join(waiting)


async def _later(info: RequestInfo, slices: TimeSlices, end: float) -> float:
    """The next slice: this one is on the account of whoever reads, who may have to rest before another."""
    shares, tenant = of_loop(), tenant_of(info.request)
    shares.spent(tenant, time.perf_counter() - end + timeslice.SECONDS)
    while True:
        end = await slices.turn()
        rest = shares.asks(tenant)  # another list of the same tenant may have been faster
        if not rest:
            return end
        await asyncio.sleep(rest)


def _open(envelope: Object, name: str) -> bytes:
    return encode(envelope)[:-1] + b"," + encode(name) + b":["


def _yaml_item(value: Any) -> bytes:
    return codec.to_yaml([value])
