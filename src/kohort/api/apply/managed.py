"""metadata.managedFields: who wrote which fields, how, in which version, through which endpoint, and when last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from kohort.api.apply import fields as sets
from kohort.api.apply.fields import Fields
from kohort.api.kind import Object

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MOST_UPDATERS: Final = 10  # upstream keeps that many; the oldest become one entry
_ANCIENT: Final = "ancient-changes"
_UNKNOWN: Final = "unknown"
_LONGEST_NAME: Final = 128


@dataclass(frozen=True, slots=True)
class Manager:
    """Who. One that applies is the same in every version of the API, one that updates is not."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @classmethod
    def of(cls, name: str, operation: str, api_version: str, subresource: str = "") -> Manager:
        return cls(name, operation, "" if operation == APPLY else api_version, subresource)

    @property
    def identity(self) -> str:
        """The text by which upstream sorts managers."""
        members = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({name: value for name, value in members.items() if value}).decode()

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager has. `time` is None for one that applied what was there already."""

    fields: Fields
    api_version: str
    time: str | None = None


Managed = dict[Manager, Owned]


def manager_name(field_manager: str, user_agent: str) -> str:
    """Who writes: as the request says, else by the first word of its user agent."""
    if field_manager:
        return field_manager
    first = user_agent.partition("/")[0][:_LONGEST_NAME]
    return "".join(letter for letter in first if letter.isprintable()) or _UNKNOWN


# ---- reading and writing


def decode(entries: Any) -> Managed:
    """Entries that this server wrote. Raises ValueError if they are not such."""
    managed: Managed = {}
    for entry in entries or ():
        operation, version = entry.get("operation"), entry.get("apiVersion")
        if operation not in {APPLY, UPDATE}:
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError(f"invalid fieldsType {entry.get('fieldsType')!r}: FieldsV1 is accepted")
        manager = Manager.of(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        managed[manager] = Owned(entry.get("fieldsV1") or {}, version, entry.get("time"))
    return managed


def encode(managed: Managed) -> list[Object]:
    """Appliers first, then by time, name, version, endpoint."""

    def order(item: tuple[Manager, Owned]) -> tuple[str, ...]:
        who, what = item
        return who.operation, what.time or "", who.name, what.api_version, who.subresource

    return [_entry(who, what) for who, what in sorted(managed.items(), key=order)]


def _entry(who: Manager, what: Owned) -> Object:
    entry: Object = {"manager": who.name, "operation": who.operation, "apiVersion": what.api_version}
    if what.time is not None:
        entry["time"] = what.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": _in_order(what.fields)}
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def _in_order(fields: Fields) -> Fields:
    """By name, as upstream writes them: people compare them as text."""
    return {element: _in_order(fields[element]) if fields[element] else {} for element in sorted(fields)}


def stored(live: Object) -> Managed:
    """What the stored object says; nothing if it says nonsense."""
    try:
        return decode(_entries(live))
    except (ValueError, AttributeError):
        return {}


def before_update(live: Object, new: Object, subresource: str, *, dynamic: bool = False) -> Managed:
    """What counts before an update: a client may set or reset managedFields, but not through a subresource.

    The empty list resets, but a custom resource (`dynamic`) loses it while it is read: there only [{}] does.
    """
    entries = _entries(new)
    if subresource or entries is None or entries == _entries(live) or (dynamic and entries == []):
        return stored(live)
    if entries in ([], [{}]):  # the way to forget all managers
        return {}
    try:
        found = {
            who: replace(what, fields=sets.read(what.fields)) for who, what in decode(entries).items() if what.fields
        }
    except (ValueError, AttributeError, TypeError):
        found = {}
    return found or stored(live)


def _entries(one: Object) -> Any:
    metadata = one.get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, Mapping) else None


def put(one: Object, managed: Managed) -> None:
    """Write managedFields into an object of our own."""
    metadata = one.setdefault("metadata", {})
    if managed:
        metadata["managedFields"] = encode(managed)
    else:
        metadata.pop("managedFields", None)


# ---- keeping it small


def capped(managed: Managed) -> Managed:
    """At most ten updaters: the oldest of one version are put together."""
    updaters = [who for who in managed if who.operation == UPDATE]
    excess = len(updaters) - MOST_UPDATERS
    if excess <= 0:
        return managed
    kept, first, buckets = dict(managed), dict[str, Manager](), dict[Manager, list[Fields]]()
    for who in sorted(updaters, key=lambda who: (managed[who].time or "", who.identity)):
        if excess <= 0:
            break
        version = managed[who].api_version
        if version not in first:
            first[version] = who
            continue
        bucket = Manager.of(_ANCIENT, UPDATE, version)
        if bucket not in kept:
            kept[bucket] = kept.pop(first[version])
        buckets.setdefault(bucket, [kept[bucket].fields]).append(managed[who].fields)
        if who != bucket:
            del kept[who]
        kept[bucket] = managed[who]
        excess -= 1
    for bucket, parts in buckets.items():
        kept[bucket] = replace(kept[bucket], fields=sets.union_of(reversed(parts)))
    return kept
