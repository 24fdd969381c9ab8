"""Lists that are asked for before there is anybody to read them."""

from typing import Any

import pytest
from tests.kube.fake import FakeApi, answer_of, status

from kohort.kube.ahead import FRESH, Ahead
from kohort.kube.client import Client
from kohort.kube.clock import VirtualClock
from kohort.kube.errors import TransportError
from kohort.kube.informer import Informer
from kohort.kube.transport import InProcess
from kohort.kube.wire import Request, Response

PODS = "/api/v1/pods"


class Counting(FakeApi):
    def __init__(self) -> None:
        super().__init__()
        self.lists = 0
        self.answer: Response | None = None
        self.cuts = False

    async def handle(self, request: Request) -> Response:
        if request.path == PODS and "watch" not in request.query:
            self.lists += 1
            if self.cuts:
                raise TransportError("cut")
            if self.answer is not None:
                return self.answer
        return await super().handle(request)


class Bed:
    def __init__(self) -> None:
        self.api, self.clock = Counting(), VirtualClock()
        self.ahead = Ahead(InProcess(self.api, clock=self.clock), self.clock)
        self.client = Client(self.ahead, clock=self.clock)

    async def asked(self) -> None:
        self.ahead.ask_list(PODS, 2)
        await self.clock.advance()

    async def names(self) -> list[str]:
        found = await self.client.resource("pods").list(page=2)
        return [one["metadata"]["name"] for one in found.items]


async def test_all_pages_are_there_when_they_are_asked_for_and_once() -> None:
    bed = Bed()
    for name in "abcde":
        bed.api.put(name)
    await bed.asked()
    assert bed.api.lists == 3
    bed.api.put("late")
    assert await bed.names() == list("abcde")
    assert bed.api.lists == 3
    assert await bed.names() == ["a", "b", "c", "d", "e", "late"], "the second one asks"
    await bed.client.close()


async def test_no_more_is_kept_than_a_limit_and_nothing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed()
    for name in "abcdefgh":
        bed.api.put(name)
    monkeypatch.setattr("kohort.kube.ahead._MOST", 1)
    await bed.asked()
    assert bed.api.lists == 1
    assert await bed.names() == list("abcdefgh")
    assert bed.api.lists == 4
    assert bed.ahead._waiting() == 0
    await bed.client.close()


async def test_an_informer_sees_what_came_after_it() -> None:
    bed = Bed()
    bed.api.put("early")
    await bed.asked()
    bed.api.put("late")
    bed.api.remove("early")
    resource: Any = bed.client.resource("pods")
    async with Informer(resource, streaming=False, page=2, clock=bed.clock) as informer:
        await informer.ready()
        await bed.clock.advance()
        assert [key.name for key in list(informer.cache.keys())] == ["late"]
    await bed.client.close()


@pytest.mark.parametrize("how", ["old", "refused", "cut"])
async def test_what_is_no_good_is_asked_anew(how: str) -> None:
    bed = Bed()
    bed.api.put("a")
    bed.api.cuts = how == "cut"
    bed.api.answer = answer_of(503, status(503, "ServiceUnavailable")) if how == "refused" else None
    await bed.asked()
    bed.api.cuts, bed.api.answer = False, None
    if how == "old":
        await bed.clock.advance(FRESH + 1)
    bed.api.put("b")
    assert await bed.names() == ["a", "b"]
    await bed.client.close()


async def test_who_ends_before_the_answer_leaves_nothing() -> None:
    bed = Bed()
    bed.ahead.ask_list(PODS, 2)
    await bed.client.close()
    assert not bed.ahead._asked
