"""The pod status cache: that a pod of a gang runs is decoded, defaulted and validated once.

A kubelet says of every pod of a template what it said of the one before, but for moments and addresses. What the
pipeline makes of such a patch depends on the patch, on the status and the spec that it meets, and on who manages what;
when all of that is as it was for an earlier pod, moments and addresses aside, so is the result: the patch merged into
the status, and one more manager. It is kept only if that was so to the last byte. Which moments and addresses are the
same ones is part of what is compared. A pod whose status has a manager already takes the long way, and so does
everything with mutating webhooks or policies; validating admission sees each pod whole.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kohort.api import patch as patches
from kohort.apimachinery.times import parse
from kohort.server import storage_codec, timestamps
from kohort.server.codec import encode
from kohort.server.pod_admission_cache import MUTATING, UID, VALIDATING
from kohort.server.remembered import Key, Remembered

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.options import WriteOptions
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.resources import Resource
    from kohort.server.store import Item, Store

_MOST_MANAGERS: Final = 4  # far from where the oldest are put together
_WRITTEN: Final = b'"time":"'
_TIME_LENGTH: Final = len("2026-11-17T10:00:00Z")
_OF_STATUS: Final = (b'"subresource"', b'"f:status"')
_MASKED_SPEC: Final = ("nodeName", "hostname", "subdomain")
_TIME: Final = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS: Final = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_ADDRESS_HOLE, _TIME_HOLE = b"\x00", b"\x01"  # JSON has no such characters


_decode: Final = msgspec.json.Decoder(list[dict[str, Any]]).decode


class _UnusualError(Exception):
    """Something can only be done the long way."""


class Change(NamedTuple):
    """A patch of a status that may be known: what the result depends on, the address that its managers name, and when
    the last of those that there are has written."""

    key: Key
    status: Any
    address: bytes
    managed: bytes


class _Manager(NamedTuple):
    """The one that comes, with holes for the pod's address and the moment; and who is the last of the others."""

    entry: bytes
    operation: str
    name: str


class PodStatusCache:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._managers: Remembered[_Manager] = Remembered()
        self.allowed = True

    def use(self, plugins: list[Any]) -> None:
        """Admission changed: mutating plugins that are `repeatable` leave the status of pods alone."""
        self._managers.clear()
        self.allowed = all(getattr(one, "repeatable", False) for one in plugins)

    def change(self, info: RequestInfo, patch: Any, stored: Object, chosen: WriteOptions) -> Change | None:
        """Of a pod as `load_quickly` reads it. None: this one goes the long way."""
        if info.resource.table != "pods" or info.subresource != "status" or not self.allowed or chosen.dry_run:
            return None
        if any(self._store.table(name).size for name in MUTATING):
            return None
        try:
            return _change(patch, stored, chosen)
        except _UnusualError:
            return None

    def build(self, change: Change, stored: Object, chosen: WriteOptions) -> Object | None:
        """The pod as the long way would leave it; None if that is not known. Its managers are text, unless somebody
        may look at them."""
        manager = self._managers.get(change.key)
        new = _built(manager, change, stored, chosen) if manager is not None else None
        if new is not None and any(self._store.table(name).size for name in VALIDATING):
            for one in (stored, new):
                one["metadata"]["managedFields"] = _decode(one["metadata"]["managedFields"])
        return new

    def add(self, change: Change, stored: Object, chosen: WriteOptions, resource: Resource, item: Item) -> None:
        """What the long way has made. It is kept if the short one would make the same."""
        managers = _decode(storage_codec.unmanaged(item).managers or b"[]")
        manager = _manager(managers, change.address) if len(managers) > 1 else None
        if manager is None or change.key in self._managers:
            return
        new = _built(manager, change, stored, chosen, managers[-1]["time"])
        if new is None or storage_codec.dump(resource, new, item.revision) != item.value:
            return
        self._managers.keep(change.key, manager)


def _manager(managers: list[Object], address: bytes) -> _Manager | None:
    """None: address or moment stand elsewhere, too, where they may be something else."""
    text, time = encode(managers[-1]), str(managers[-1].get("time") or "-").encode()
    if text.count(time) != 1 or (text.count(address) != 1 and address):
        return None
    text = text.replace(time, _TIME_HOLE)
    if address:
        text = text.replace(address, _ADDRESS_HOLE)
    return _Manager(text, str(managers[-2].get("operation")), str(managers[-2].get("manager")))


def _built(manager: _Manager, change: Change, stored: Object, chosen: WriteOptions, time: str = "") -> Object | None:
    now = time or timestamps.stamp()
    if (manager.operation, change.managed.decode(), manager.name) > ("Update", now, chosen.manager):
        return None  # they stand in an order
    meta = dict(stored["metadata"])
    managers = bytes(meta.pop("managedFields"))
    entry = manager.entry.replace(_TIME_HOLE, now.encode()).replace(_ADDRESS_HOLE, change.address)
    meta["managedFields"] = msgspec.Raw(b"%b,%b]" % (managers[:-1], entry))
    status = patches.merge(stored.get("status") or {}, change.status)
    if "conditions" in status:
        conditions = [{name: value for name, value in one.items() if value is not None} for one in status["conditions"]]
        status = {**status, "conditions": conditions}
    return {**stored, "metadata": meta, "status": status}


def _change(patch: Any, stored: Object, chosen: WriteOptions) -> Change:
    meta, spec = stored["metadata"], stored.get("spec")
    if not isinstance(patch, dict) or not patch.keys() <= {"metadata", "status"} or not isinstance(spec, dict):
        raise _UnusualError
    given = patch.get("metadata")
    if given is not None and given != {"uid": meta.get("uid")}:
        raise _UnusualError
    if meta.get("deletionTimestamp") or not meta.get("generation"):
        raise _UnusualError
    values: dict[str, str] = {}
    before, after = stored.get("status"), patch.get("status")
    if not isinstance(after, dict):
        raise _UnusualError
    addresses = after.get("podIPs")
    if addresses is not None and (not isinstance(addresses, list) or len(addresses) != 1):
        raise _UnusualError  # managers name each, in an order
    same = encode([_masked(before, values), _masked(after, values), _masked_spec(spec), given is None])
    address = str(after.get("podIP") or "") if addresses else ""
    if addresses and (address not in values or addresses[0].get("ip") != address):
        raise _UnusualError
    managers, last = _managed(meta)
    key = (same, managers, tuple(meta), tuple(stored), chosen.manager, chosen.validation)
    return Change(key, after, address.encode(), last)


def _managed(meta: Object) -> tuple[bytes, bytes]:
    """Who manages the pod, and what; and when the last of them has written. Managers name an owner by its uid."""
    managers = meta.get("managedFields")
    if not isinstance(managers, msgspec.Raw):
        raise _UnusualError
    text = bytes(managers)
    first, *others = text.split(_WRITTEN)
    if not 0 < len(others) <= _MOST_MANAGERS or any(one in text for one in _OF_STATUS):
        raise _UnusualError
    if not all(one[_TIME_LENGTH : _TIME_LENGTH + 1] == b'"' for one in others):
        raise _UnusualError
    text = _WRITTEN.join([first, *(one[_TIME_LENGTH:] for one in others)])
    for owner in meta.get("ownerReferences") or ():
        if UID.fullmatch(owner.get("uid") or ""):
            text = text.replace(owner["uid"].encode(), b"")
    return text, others[-1][:_TIME_LENGTH]


def _masked_spec(spec: dict[str, Any]) -> dict[str, Any]:
    masked = dict(spec)
    for name in _MASKED_SPEC:
        if name in spec:
            masked[name] = bool(spec[name])
    group = spec.get("schedulingGroup")
    if isinstance(group, dict) and group.get("podGroupName"):
        masked["schedulingGroup"] = {**group, "podGroupName": ""}
    return masked


# ---- a status without its moments and addresses


def _masked(status: Any, values: dict[str, str]) -> Any:
    """Each moment and each address is replaced by a number, the same value by the same number."""
    if not isinstance(status, dict):
        raise _UnusualError
    found = dict(status)
    for name, mask in _MASKS.items():
        if name in found:
            found[name] = mask(found[name], values)
    return found


def _moment(value: Any, values: dict[str, str]) -> str:
    if not isinstance(value, str) or not _is_time(value):
        raise _UnusualError
    return values.setdefault(value, f"time {len(values)}")


@lru_cache(maxsize=1024)
def _is_time(text: str) -> bool:
    try:
        return _TIME.fullmatch(text) is not None and parse(text) is not None
    except ValueError:
        return False


def _address(value: Any, values: dict[str, str]) -> str:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise _UnusualError
    return values.setdefault(value, f"address {len(values)}")


def _each(value: Any, member: str, mask: Any, values: dict[str, str]) -> Any:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise _UnusualError
    return [{**one, member: mask(one[member], values)} if member in one else one for one in value]


def _addresses(value: Any, values: dict[str, str]) -> Any:
    return _each(value, "ip", _address, values)


def _conditions(value: Any, values: dict[str, str]) -> Any:
    return _each(value, "lastTransitionTime", _moment, values)


def _containers(value: Any, values: dict[str, str]) -> Any:
    return _each(value, "state", _state, values)


def _state(value: Any, values: dict[str, str]) -> Any:
    running = value.get("running") if isinstance(value, dict) else None
    if not isinstance(running, dict) or "startedAt" not in running:
        return value
    return {**value, "running": {**running, "startedAt": _moment(running["startedAt"], values)}}


_MASKS: Final = {
    "startTime": _moment,
    "podIP": _address,
    "hostIP": _address,
    "podIPs": _addresses,
    "hostIPs": _addresses,
    "conditions": _conditions,
    "containerStatuses": _containers,
}
