"""ResourceQuota: no write goes beyond what a namespace may have; the status of a quota says what is used.

Usage is counted from the newest values in the store, those included whose commit is under way; nothing else happens
between the check and the start of the write (this plugin is the last), so concurrent writes cannot slip through
together.
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kohort.apimachinery import quantity
from kohort.apimachinery.quantity import ZERO, Quantities
from kohort.server import status
from kohort.server import storage_codec as stored
from kohort.server.admission import quota_usage
from kohort.server.admission.attributes import CREATE, UPDATE
from kohort.server.admission.quota_ledger import QuotaLedger
from kohort.server.store import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.admission.quota_usage import Source, Usage
    from kohort.server.resources import Resources
    from kohort.server.store import Item, Store

_TABLE: Final = "resourcequotas"
_UPDATED: Final = {
    quota_usage.PODS,
    quota_usage.SERVICES,
    quota_usage.CLAIMS,
}  # others count the same whatever is in them
_AT_ONCE: Final = 0.005  # seconds of counting for a status without giving the loop back
_PAUSE: Final = 0.05  # seconds in which changes gather before statuses are written


def _is_counted(attrs: AdmissionAttributes) -> bool:
    """Whether a write may use more than was used before."""
    if attrs.subresource not in ("", "resize") or not attrs.resource.namespaced:
        return False
    kind = (attrs.resource.group, attrs.resource.plural)
    return attrs.operation == CREATE or (attrs.operation == UPDATE and kind in _UPDATED)


class ResourceQuotas:
    """The plugin, and `run`, which keeps the statuses right."""

    def __init__(
        self, store: Store, resources: Resources, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store, self._resources, self._now = store, resources, now
        self._ledgers: dict[Source, dict[str, QuotaLedger]] = {}  # by namespace

    # ---- admission

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return _is_counted(attrs)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is None or not _is_counted(attrs) or not self._quotas(attrs.namespace):
            return
        kind, now = (attrs.resource.group, attrs.resource.plural), self._now()
        found = quota_usage.usage_of(kind, attrs.object, now)
        before = None if attrs.old is None else quota_usage.usage_of(kind, attrs.old, now, stated=False)
        await self.check(attrs, found, before)

    async def check(self, attrs: AdmissionAttributes, found: Usage, before: Usage | None) -> None:
        """The same, for what is used by an object and was by the one that it replaces."""
        if not _is_counted(attrs):
            return
        quotas = self._quotas(attrs.namespace)
        fitting = [one for one in quotas if quota_usage.scopes_match(one.get("spec") or {}, found)]
        if attrs.operation == CREATE and (attrs.resource.group, attrs.resource.plural) == quota_usage.PODS:
            self._check_required(attrs, fitting, found)
        asked = [(quota, _asked(quota, found, before)) for quota in fitting]
        for quota, names in asked:
            await self._read_large(quota, names)
        for quota, names in asked:  # from here on nothing else happens
            self._check(attrs, quota, names)

    def counted(self, kind: Source, item: Item, usage: Usage) -> None:
        """Somebody has written an item, and knows what it uses."""
        ledger = self._ledgers.get(kind, {}).get(item.namespace)
        if ledger is not None:
            ledger.counted(item, usage)

    def _check_required(self, attrs: AdmissionAttributes, quotas: Iterable[Object], found: Usage) -> None:
        for quota in quotas:
            missing = quota_usage.missing_requests(_hard(quota), found)
            if missing:
                why = f"failed quota: {quota['metadata']['name']}: must specify {missing}"
                raise status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, why)

    def _check(self, attrs: AdmissionAttributes, quota: Object, asked: Quantities) -> None:
        if not asked:
            return
        hard, used = _hard(quota), self.used(quota, only=asked)
        over = {name for name, more in asked.items() if used[name] + more > hard[name]}
        if over:
            parts = {"requested": asked, "used": used, "limited": hard}
            told = ", ".join(
                f"{word}: {quantity.listed({name: amounts[name] for name in over})}" for word, amounts in parts.items()
            )
            why = f"exceeded quota: {quota['metadata']['name']}, {told}"
            raise status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, why)

    # ---- counting

    def _quotas(self, namespace: str | None) -> list[Object]:
        table = self._store.table(_TABLE)
        return [stored.decode(item.value) for item in table.items(namespace)]

    def used(self, quota: Object, only: Iterable[str] | None = None) -> Quantities:
        """What the namespace uses of everything that the quota limits."""
        names = list(_hard(quota) if only is None else only)
        spec, namespace = quota.get("spec") or {}, quota["metadata"]["namespace"]
        found: Quantities = dict.fromkeys(names, ZERO)
        for kind in sorted({quota_usage.source(name) for name in names}):
            ledger = self._ledger(kind, namespace)
            sums = ledger.total(spec) if ledger is not None else {}
            found |= {name: sums[name] for name in names if quota_usage.source(name) == kind and name in sums}
        return found

    def _ledger(self, kind: Source, namespace: str) -> QuotaLedger | None:
        """None: such objects are not served."""
        resource = self._resources.of_plural(*kind)
        if resource is None:
            return None
        table = self._store.table(resource.table)
        if kind not in self._ledgers:
            self._ledgers[kind] = {}
            table.head_listeners.append(partial(self._head_changed, kind))
        kept = self._ledgers[kind]
        if namespace not in kept:
            kept[namespace] = QuotaLedger(kind, table, namespace, self._now)
        return kept[namespace]

    async def _settled(self, quota: Object) -> None:
        """What has changed since the last count is read in turns with everything else."""
        names = _hard(quota)
        await self._read_large(quota, names)
        for ledger in self._ledgers_of(quota, names):
            while not ledger.settle(_AT_ONCE):
                await asyncio.sleep(0)

    async def _read_large(self, quota: Object, names: Iterable[str]) -> None:
        """What takes long to read of what counts for some names, beside everything else."""
        for ledger in self._ledgers_of(quota, names):
            while (item := ledger.large()) is not None:
                ledger.counted(item, await asyncio.to_thread(ledger.usage_of, item))

    def _ledgers_of(self, quota: Object, names: Iterable[str]) -> list[QuotaLedger]:
        namespace = quota["metadata"]["namespace"]
        kinds = sorted({quota_usage.source(name) for name in names})
        return [one for one in (self._ledger(kind, namespace) for kind in kinds) if one is not None]

    def _head_changed(self, kind: Source, namespace: str, name: str) -> None:
        ledger = self._ledgers[kind].get(namespace)
        if ledger is not None:
            ledger.changed(name)

    def _forget(self) -> None:
        """Drop the ledgers of namespaces without a quota."""
        limited = {item.namespace for item in self._store.table(_TABLE).items()}
        for kept in self._ledgers.values():
            for namespace in [one for one in kept if one not in limited]:
                del kept[namespace]

    # ---- status

    async def run(self) -> None:
        """Until cancelled: after every change that can matter, the statuses are put right."""
        while True:
            waits = [asyncio.ensure_future(self._store.table(name).changed()) for name in self._tables()]
            try:
                await self.sync()
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waits:
                    one.cancel()
            await asyncio.sleep(_PAUSE)

    async def sync(self) -> None:
        """Write the status of every quota that is not as it should be."""
        self._forget()
        resource = self._resources.of_plural("", _TABLE)
        for item in self._store.table(_TABLE).items() if resource is not None else ():
            quota = stored.decode(item.value)
            await self._settled(quota)
            wanted = status_of(quota, self.used(quota))
            if resource is None or not _differs(quota.get("status") or {}, wanted):
                continue
            new = {**quota, "status": wanted}
            with contextlib.suppress(ConflictError):  # then something changed, and there will be another turn
                await self._store.write(
                    _TABLE,
                    item.namespace,
                    item.name,
                    lambda revision, one=resource, obj=new: stored.dump(one, obj, revision),  # type: ignore[misc]
                    expect=item,
                )

    def _tables(self) -> set[str]:
        kinds = {quota_usage.source(name) for quota in self._quotas(None) for name in _hard(quota)}
        found = (self._resources.of_plural(*kind) for kind in kinds)
        return {_TABLE, *(one.table for one in found if one is not None)}


def status_of(quota: Object, used: Quantities) -> dict[str, Any]:
    hard = (quota.get("spec") or {}).get("hard") or {}
    return {"hard": dict(hard), "used": {name: str(used[name]) for name in sorted(hard)}}


def _hard(quota: Object) -> Quantities:
    return quantity.parse_all((quota.get("spec") or {}).get("hard"))


def _asked(quota: Object, found: Usage, before: Usage | None) -> Quantities:
    """How much more a write wants of what the quota limits."""
    spec = quota.get("spec") or {}
    held = before.quantities if before is not None and quota_usage.scopes_match(spec, before) else {}
    more = {name: value - held.get(name, ZERO) for name, value in found.quantities.items() if name in _hard(quota)}
    return {name: value for name, value in more.items() if value > ZERO}


def _differs(now: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """In amounts, not in words: another controller may write the same differently."""
    return any(
        {name: one.value for name, one in quantity.parse_all(now.get(member)).items()}
        != {name: one.value for name, one in quantity.parse_all(wanted[member]).items()}
        for member in ("hard", "used")
    )
