"""Requests that cost by their form: compressed bodies, long queries, lists and watches that nobody reads."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from tests.abuse.attack import Attack, Sort, Source


def _compressed(source: Source) -> Iterator[Attack]:
    body = gzip.compress(b" " * source.pick(1 << 20, 64 << 20), 9, mtime=0)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    yield Attack(source.sort, "POST", source.space("api/v1", "configmaps"), body, headers)


def _query(source: Source) -> Iterator[Attack]:
    terms = ",".join(f"a{number} in (b,c)" for number in range(source.pick(10, 500)))
    fields = ",".join(f"metadata.name!=a{number}" for number in range(source.pick(10, 500)))
    yield source.send("GET", source.space("api/v1", f"pods?labelSelector={quote(terms)}"))
    yield source.send("GET", source.space("api/v1", f"pods?fieldSelector={quote(fields)}"))
    yield source.send("GET", source.space("api/v1", f"configmaps?{'a=b&' * source.pick(10, 1000)}limit=1"))
    yield source.send("GET", source.space("api/v1", f"configmaps?limit=1&continue={'A' * 4000}"))


def _unread(source: Source) -> Iterator[Attack]:
    """Watches and lists of everything in the namespace."""
    for plural in ("configmaps", "pods", "events"):
        yield source.send("GET", source.space("api/v1", f"{plural}?watch=1&timeoutSeconds=120"), unread=True)
    yield source.send("GET", source.space("api/v1", "configmaps"), unread=True)


def _tables(source: Source) -> Iterator[Attack]:
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    for path in ("configmaps", "pods?includeObject=Object", "events?limit=500"):
        yield Attack(source.sort, "GET", source.space("api/v1", path), headers={"Accept": accept})


def _sweep(source: Source) -> Iterator[Attack]:
    """Deletes of many at once, and of what does not exist."""
    yield source.config_map({"labels": {"sweep": "yes"}})
    yield source.send("DELETE", source.space("api/v1", "configmaps?labelSelector=sweep%3Dyes"))
    yield source.send("DELETE", source.space("api/v1", f"pods/none-{source.number}?gracePeriodSeconds=0"))


SORTS: Final = (
    Sort("gzip", _compressed, stored=False),
    Sort("query", _query, stored=False),
    Sort("unread", _unread, stored=False),
    Sort("tables", _tables, stored=False),
    Sort("sweep", _sweep),
)
