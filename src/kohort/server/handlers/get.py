"""get and list: which revision is read, which objects match, and pages of them."""

from __future__ import annotations

import base64
import binascii
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kohort.api.errors import forbidden, not_supported
from kohort.kube import timeslice
from kohort.server import options, status, storage_codec
from kohort.server.selectors import (
    Fields,
    Labels,
    SelectorError,
    fields_match,
    labels_match,
    parse_fields,
    parse_labels,
)
from kohort.server.store import CompactedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.api.errors import FieldError
    from kohort.api.kind import Object
    from kohort.server.core import Core
    from kohort.server.requestinfo import RequestInfo
    from kohort.server.resources import Resource
    from kohort.server.store import Item

_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"
_GONE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """Which objects somebody wants."""

    labels: Labels = ()
    fields: Fields = ()
    name: str = ""  # metadata.name=... is a lookup, not a search
    namespace: str | None = None

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields


def _nothing() -> None:
    return None


def selection_predicate(info: RequestInfo, check: Callable[[], None] = _nothing) -> SelectionPredicate:
    """The selectors of a request. `check`: what is looked at once they are read, before they are understood."""
    label_text, field_text = options.one(info.query, "labelSelector"), options.one(info.query, "fieldSelector")
    namespace = info.namespace if info.resource.namespaced and info.namespace else None
    if not label_text and not field_text:
        check()
        return SelectionPredicate(namespace=namespace)
    try:
        labels = parse_labels(label_text)
    except SelectorError as error:
        raise status.bad_request(f"unable to parse requirement: {error}") from None
    try:
        terms = parse_fields(field_text)
    except SelectorError as error:
        raise status.bad_request(str(error)) from None
    check()
    name = ""
    for term in terms:
        if term.path not in info.resource.fields:
            raise status.bad_request(_unknown_field(info.resource, term.path))
        if term.path == "metadata.name" and term.equal:
            name = term.value
    return SelectionPredicate(labels, terms, name, namespace)


def _unknown_field(resource: Resource, path: str) -> str:
    if set(resource.fields) <= {"metadata.name", "metadata.namespace"}:
        return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
    return f"field label not supported: {path}"


def matches(resource: Resource, predicate: SelectionPredicate, stored: Object) -> bool:
    """`stored`: an object as it is kept."""
    if predicate.labels and not labels_match(predicate.labels, (stored.get("metadata") or {}).get("labels") or {}):
        return False
    if not predicate.fields:
        return True
    found = {term.path: resource.fields[term.path](stored) for term in predicate.fields}
    return fields_match(predicate.fields, found)


@dataclass(frozen=True, slots=True)
class ListPage:
    items: list[Item]
    revision: int
    token: str = ""
    remaining: int | None = None


class Reader:
    def __init__(self, core: Core) -> None:
        self.core = core

    def get(self, info: RequestInfo) -> Item:
        resource, store = info.resource, self.core.store
        version = options.one(info.query, "resourceVersion")
        if version not in ("", "0") and version_number(version) > store.revision:
            raise status.version_too_large(int(version), store.revision)
        item = store.table(resource.table).get(info.namespace if resource.namespaced else "", info.name)
        if item is None:
            raise status.not_found(resource.group, resource.plural, info.name)
        return item

    async def page(self, info: RequestInfo) -> ListPage:
        """A list, or the part of it that was asked for; all of one revision, though selecting takes several turns."""
        store, resource = self.core.store, info.resource
        limit = max(0, options.whole(info.query, "limit") or 0)  # less than nothing is no limit
        token = options.one(info.query, "continue")
        version, match = options.one(info.query, "resourceVersion"), options.one(info.query, "resourceVersionMatch")
        predicate = selection_predicate(info, partial(check_versions, version, match, token))
        if token:
            revision, after = self._continued(token)
        else:
            revision, after = self._revision(version, match, limit), None
        try:
            store.check(revision)
            items = self._all(resource, predicate, revision)
        except CompactedError:
            if token and after is not None:
                raise status.expired(_GONE, _token(-1, after)) from None
            raise status.expired(f"The resourceVersion for the provided list is too old: {version}") from None
        if after is not None:
            items = [item for item in items if item.key > after]
        return await self._cut(resource, predicate, items, limit, revision)

    def _all(self, resource: Resource, predicate: SelectionPredicate, revision: int) -> list[Item]:
        table = self.core.store.table(resource.table)
        if revision != self.core.store.revision:
            found_then = table.items_at(revision, predicate.namespace)
            if predicate.name and (predicate.namespace is not None or not resource.namespaced):
                return [item for item in found_then if item.name == predicate.name]
            return found_then
        if predicate.name and predicate.namespace is not None:
            found = table.get(predicate.namespace, predicate.name)
            return [found] if found is not None else []
        if predicate.name and not resource.namespaced:
            found = table.get("", predicate.name)
            return [found] if found is not None else []
        return table.items(predicate.namespace)

    async def _cut(
        self, resource: Resource, predicate: SelectionPredicate, items: list[Item], limit: int, revision: int
    ) -> ListPage:
        if predicate.everything:
            if not limit or len(items) <= limit:
                return ListPage(items, revision)
            return ListPage(items[:limit], revision, _token(revision, items[limit - 1].key), len(items) - limit)
        found: list[Item] = []
        slices = self.core.slices
        end = time.perf_counter() + timeslice.SECONDS
        for index, item in enumerate(items):
            if time.perf_counter() >= end:
                end = await slices.turn()
            if not matches(resource, predicate, storage_codec.selectable(resource, item.value)):
                continue
            found.append(item)
            if limit and len(found) == limit and index + 1 < len(items):
                # How many of the rest match is not known: upstream leaves the number out, too.
                return ListPage(found, revision, _token(revision, item.key))
        return ListPage(found, revision)

    def _revision(self, version: str, match: str, limit: int) -> int:
        newest = self.core.store.revision
        if version in ("", "0"):
            return newest
        asked = version_number(version)
        if asked > newest:
            raise status.version_too_large(asked, newest)
        if match == _EXACT or (limit and not match):
            return asked
        return newest

    def _continued(self, token: str) -> tuple[int, tuple[str, str]]:
        try:
            padded = token + "=" * (-len(token) % 4)
            given: Any = msgspec.json.decode(base64.urlsafe_b64decode(padded))
            revision, start = given["rv"], given["start"]
            if given["v"] != "meta.k8s.io/v1" or not isinstance(revision, int) or not isinstance(start, str):
                raise ValueError
        except (binascii.Error, msgspec.DecodeError, RecursionError, KeyError, TypeError, ValueError):
            raise status.bad_request("continue key is not valid: it is not one that this server gave out") from None
        namespace, _, name = start.partition("/")
        newest = self.core.store.revision
        if revision > newest:
            raise status.bad_request("continue key is not valid: it is of a revision that does not exist yet")
        return (revision if revision > 0 else newest), (namespace, name)


def _token(revision: int, key: tuple[str, str]) -> str:
    text = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": f"{key[0]}/{key[1]}"})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def version_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 19:
        raise status.bad_request(f'invalid resource version "{text[:40]}": expected an unsigned number')
    return int(text)


def _invalid_list(*found: FieldError) -> status.ApiError:
    return status.invalid("meta.k8s.io", "ListOptions", "", list(found))


def check_versions(version: str, match: str, token: str) -> None:
    """Which of resourceVersion, resourceVersionMatch and continue go together."""
    if match:
        _check_match(version, match, token)
    if version:
        version_number(version)
    if token and version not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")


def _check_match(version: str, match: str, token: str) -> None:
    if match not in (_EXACT, _NOT_OLDER):
        raise _invalid_list(not_supported("resourceVersionMatch", match, (_EXACT, _NOT_OLDER, "")))
    if token:
        raise _invalid_list(
            forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        )
    if not version:
        text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _invalid_list(forbidden("resourceVersionMatch", text))
    if match == _EXACT and version == "0":
        text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise _invalid_list(forbidden("resourceVersionMatch", text))


def list_meta(page: ListPage) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(page.revision)}
    if page.token:
        meta["continue"] = page.token
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    return meta
