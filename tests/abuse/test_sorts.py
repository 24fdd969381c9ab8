"""Every sort of hostile request is what it says: the server stores some of it, refuses the rest, and answers all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from tests.abuse.attack import Attack, Sort, Source
from tests.abuse.report import Row
from tests.abuse.sorts import SORTS

from kohort.kube.transport import ADMIN
from kohort.kube.wire import Request
from kohort.server.server import Server
from kohort.server.settings import Settings

NAMESPACE = "default"
SEED = 1
BATCHES = 4  # until something is stored
LOOKS = 200  # at a kind that is not served yet


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    folder = tmp_path_factory.mktemp("abuse")
    async with Server(Settings(Path(folder), port=0, in_memory=True, listen=False)) as made:
        yield made


async def answered(server: Server, one: Attack) -> int:
    parts = urlsplit(one.path)
    query = parse_qs(parts.query, keep_blank_values=True)
    headers = {name.lower(): value for name, value in one.headers.items()}
    return (await server.api.handle(Request(one.method, parts.path, query, headers, one.body, ADMIN))).status


async def sent(server: Server, one: Attack) -> int:
    for _ in range(LOOKS):
        if (code := await answered(server, one)) != 404 or ".example/" not in one.path:
            break
        await asyncio.sleep(0.01)
    return code


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: sort.name)
async def test_a_sort_is_stored_or_refused(server: Server, sort: Sort) -> None:
    source, row = Source(NAMESPACE, sort.name, SEED), Row(sort)
    for _ in range(BATCHES):
        for one in sort.make(source):
            if one.unread:
                continue
            code = await sent(server, one)
            row.count(one, code)
            if one.defines and code != 201:
                break
        if row.reached:
            break
    assert not [code for code in row.codes if code >= "500"], row.codes
    assert row.reached, row.codes


async def test_the_same_seed_sends_the_same() -> None:
    for sort in SORTS:
        first, again = (list(sort.batches(Source("a", sort.name, SEED), 1)) for _ in range(2))
        assert first == again
    assert len({sort.name for sort in SORTS}) == len(SORTS)
