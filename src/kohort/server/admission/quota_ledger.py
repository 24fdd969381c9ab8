"""What the objects of one kind in one namespace use together, kept change by change.

A quota is asked at every write, and a namespace may hold thousands of objects: counting them each time makes a Job of a
thousand pods a million steps.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kohort.apimachinery.quantity import ZERO, Quantities
from kohort.server.admission import quota_usage
from kohort.server.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from kohort.server.admission.quota_usage import Source, Usage
    from kohort.server.store import Item, Table

_LARGE: Final = 1 << 15  # bytes: some milliseconds
_MOST_SUMS: Final = 64  # scopes of quotas
_SMALLEST, _LARGEST = -20, 35  # powers of ten within which a sum can be taken back without a rest


class QuotaLedger:
    """Newest values count, also those whose commit is under way: `changed` is told of each name."""

    def __init__(self, kind: Source, table: Table, namespace: str, now: Callable[[], datetime]) -> None:
        self._kind, self._table, self._namespace, self._now = kind, table, namespace, now
        self._usages: dict[str, Usage] = {}
        self._going: dict[str, datetime] = {}  # terminating: when they no longer count
        self._odd: set[str] = set()  # amounts so large or small that sums lose digits
        self._sums: dict[bytes, tuple[Mapping[str, Any], Quantities]] = {}
        self._changed = {item.name for item in table.heads(namespace)}
        self._known: dict[str, tuple[Item, Usage]] = {}  # of what has changed

    def changed(self, name: str) -> None:
        self._changed.add(name)

    def counted(self, item: Item, usage: Usage) -> None:
        """Whoever wrote an item, or has read it elsewhere, knows what it uses."""
        if item.name in self._changed:
            self._known[item.name] = (item, replace(usage, unstated={}))

    def large(self) -> Item | None:
        """One that takes long to read, of those that have changed."""
        for name in self._changed:
            item = self._table.head(self._namespace, name)
            if item is not None and len(item.value) > _LARGE and self._known.get(name, (None,))[0] is not item:
                return item
        return None

    def usage_of(self, item: Item) -> Usage:
        return quota_usage.usage_of(self._kind, quota_usage.counted(self._kind, item.value), self._now(), stated=False)

    def total(self, spec: Mapping[str, Any]) -> Quantities:
        """Of the objects that the scopes of a quota pick."""
        self.settle()
        if self._odd:
            self._sums.clear()
        key = encode([spec.get("scopes"), spec.get("scopeSelector")])
        if key not in self._sums:
            if len(self._sums) >= _MOST_SUMS:
                self._sums.clear()
            sums: Quantities = {}
            for usage in self._usages.values():
                _add(sums, spec, usage)
            self._sums[key] = (spec, sums)
        return self._sums[key][1]

    def settle(self, seconds: float = math.inf) -> bool:
        """Read what has changed, or as much of it as fits into so many seconds. Whether that was all."""
        until = time.perf_counter() + seconds
        if self._odd:
            self._sums.clear()
        now = self._now()
        for name in [name for name, moment in self._going.items() if moment < now]:
            del self._going[name]
            self._changed.add(name)
        while self._changed:
            self._settle(self._changed.pop(), now)
            if self._changed and time.perf_counter() > until:
                return False
        return True

    def _settle(self, name: str, now: datetime) -> None:
        item = self._table.head(self._namespace, name)
        before = self._usages.pop(name, None)
        self._odd.discard(name)
        self._going.pop(name, None)
        usage: Usage | None = None
        known = self._known.pop(name, None)
        if item is not None:
            usage = known[1] if known is not None and known[0] is item else self.usage_of(item)
            self._usages[name] = usage
            if usage.until is not None and usage.until >= now:
                self._going[name] = usage.until
            if not all(_SMALLEST <= one.value.adjusted() <= _LARGEST for one in usage.quantities.values()):
                self._odd.add(name)
        for spec, sums in self._sums.values():
            if before is not None:
                _take(sums, spec, before)
            if usage is not None:
                _add(sums, spec, usage)


def _add(sums: Quantities, spec: Mapping[str, Any], usage: Usage) -> None:
    if quota_usage.scopes_match(spec, usage):
        for name, value in usage.quantities.items():
            sums[name] = sums.get(name, ZERO) + value


def _take(sums: Quantities, spec: Mapping[str, Any], usage: Usage) -> None:
    if quota_usage.scopes_match(spec, usage):
        for name, value in usage.quantities.items():
            sums[name] = sums[name] - value
