"""Events go an hour after their last change. Upstream, etcd does this with leases; here a loop looks once a minute."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

from kohort.apimachinery.times import parse
from kohort.server import codec, storage_codec, timestamps
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from datetime import datetime

    from kohort.server.store import Item, Store

TABLE: Final = "events"
_SECONDS: Final = 60.0
_SLICE: Final = 200  # events between two turns of others
Seen = dict[tuple[str, str], tuple[int, "datetime"]]  # the revision of an event, and when it was written


async def run(store: Store, ttl: float) -> None:
    """Until cancelled."""
    seen: Seen = {}
    while True:
        await sync(store, ttl, seen)
        await asyncio.sleep(min(_SECONDS, ttl))


async def sync(store: Store, ttl: float, seen: Seen) -> None:
    """Delete what is older than `ttl` seconds. `seen` is kept from turn to turn: an event is decoded once."""
    table, now = store.table(TABLE), timestamps.now()
    items = table.items()
    for number, item in enumerate(items):
        if number % _SLICE == 0:
            await asyncio.sleep(0)
        known = seen.get(item.key)
        if known is None or known[0] != item.revision:
            known = seen[item.key] = (item.revision, now if known is not None else _written(item, now))
        if (now - known[1]).total_seconds() > ttl:
            with contextlib.suppress(ConflictError):  # it was written again
                await store.write(
                    TABLE, item.namespace, item.name, lambda revision, one=item: _last(one, revision),  # type: ignore[misc]
                    expect=item, delete=True,
                )  # fmt: skip
    there = {item.key for item in items}
    for key in [key for key in seen if key not in there]:
        del seen[key]


def _last(item: Item, revision: int) -> bytes:
    obj = storage_codec.decode(item.value)
    obj["metadata"]["resourceVersion"] = str(revision)
    return codec.encode(obj)


def _written(item: Item, now: datetime) -> datetime:
    """The newest time that an event speaks of; not later than now."""
    obj: dict[str, Any] = storage_codec.decode(item.value)
    series = obj.get("series") or {}
    meta = obj.get("metadata") or {}
    said = (obj.get("lastTimestamp"), obj.get("eventTime"), series.get("lastObservedTime"))
    given = [text for text in (meta.get("creationTimestamp"), *said) if isinstance(text, str)]
    times = [found for found in map(parse, given) if found is not None]
    return min(max(times, default=now), now)
