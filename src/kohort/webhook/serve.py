"""Where API servers ask: bounded in size, in number and in time. What cannot be answered in time is said so at once,
and the failurePolicy of the configuration decides (the chart's lets the write go on).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kohort.childprocess import ChildEndedError, ChildPool
from kohort.kube.errors import KubeError
from kohort.webhook.review import Answer, BadReviewError, Question, read, write
from kohort.webhook.worker import FAILED, LOOK

log = logging.getLogger(__name__)
LARGEST: Final = 8 << 20  # bytes of a question: an object and its predecessor, of the largest that is stored
VALIDATE: Final = "/validate"
GROUP: Final = "/group"
_MODULE: Final = "kohort.webhook.worker"
_WORKERS: Final = 2
_IDLE: Final = 600.0  # seconds; starting one takes half of what an API server waits
_WAITING: Final = 100  # questions at once
_SECONDS: Final = 10.0  # for one, unless the API server says less
_MARGIN: Final = 0.9  # of its time: an answer that comes too late is none
_BUCKETS: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# kind, name (None: all), namespace -> what there is
Look = Callable[[str, str | None, str | None], Awaitable[list[dict[str, Any]]]]
Group = Callable[[Question], Awaitable[Answer]]


class NoAnswerError(Exception):
    """Why there is none, with a code of HTTP."""

    def __init__(self, code: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.code = code


class Reviewer:
    """Gives questions to worker processes. `about`: what they have to know of this cluster, at this moment.

    Which group a pod is in takes no time worth mentioning: `group` is asked here.
    """

    def __init__(self, look: Look, about: Callable[[], dict[str, Any]], group: Group) -> None:
        self._look, self._about, self._group = look, about, group
        self._pool = ChildPool(_MODULE, _WORKERS, _IDLE)
        self._under_way = 0
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "kohort_webhook_requests",
            "Questions of API servers, by kind of the object and what was said",
            ["kind", "decision"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "kohort_webhook_request_duration_seconds",
            "Time from a question to its answer",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        Gauge(
            "kohort_webhook_requests_in_flight", "Questions that wait for their answer", registry=self.registry
        ).set_function(lambda: self._under_way)

    async def warm(self) -> None:
        """The first question should not wait for a process to start."""
        async with self._pool.borrowed():
            pass

    async def close(self) -> None:
        await self._pool.close()

    async def answer(self, path: str, body: bytes, seconds: float) -> bytes:
        began, kind, word = monotonic(), "", "failed"
        if self._under_way >= _WAITING:
            self._requests.labels(kind, word).inc()
            raise NoAnswerError(HTTPStatus.TOO_MANY_REQUESTS, f"{_WAITING} questions wait already")
        self._under_way += 1
        try:
            async with asyncio.timeout(seconds):
                word, kind, said = await (self._judge(body) if path == VALIDATE else self._place(body))
            return said
        except TimeoutError:
            raise NoAnswerError(HTTPStatus.GATEWAY_TIMEOUT, f"no answer was found within {seconds:.1f} s") from None
        except BadReviewError as error:
            raise NoAnswerError(HTTPStatus.BAD_REQUEST, str(error)) from None
        except ChildEndedError:
            raise NoAnswerError(HTTPStatus.INTERNAL_SERVER_ERROR, "the worker process has ended") from None
        except KubeError as error:
            raise NoAnswerError(HTTPStatus.BAD_GATEWAY, f"what the object refers to cannot be read: {error}") from None
        finally:
            self._under_way -= 1
            self._requests.labels(kind, word).inc()
            self._seconds.observe(monotonic() - began)

    async def _place(self, body: bytes) -> tuple[str, str, bytes]:
        question = read(body)
        said = await self._group(question)
        return "grouped" if said.patch else "allowed", question.kind.kind, write(question.uid, said)

    async def _judge(self, body: bytes) -> tuple[str, str, bytes]:
        async with self._pool.borrowed() as worker:
            await worker.send([body, self._about()])
            while True:
                what, *said = await worker.read()
                if what == LOOK:
                    await worker.send(await self._look(*said))
                    continue
                break
        if what == FAILED:
            raise NoAnswerError(HTTPStatus.BAD_REQUEST, str(said[0]))
        word, kind, answer = said
        return word, kind, answer


def seconds_of(text: str) -> float:
    """What an API server writes into `?timeout=`: 3s, 500ms."""
    found = re.fullmatch(r"(\d{1,5})(ms|s)", text)
    if found is None:
        return _SECONDS * _MARGIN
    return min(int(found[1]) / (1000 if found[2] == "ms" else 1), _SECONDS) * _MARGIN


def application(reviewer: Reviewer) -> web.Application:
    async def review(request: web.Request) -> web.Response:
        seconds = seconds_of(request.query.get("timeout", ""))
        try:
            async with asyncio.timeout(seconds):
                body = await request.read()
            said = await reviewer.answer(request.path, body, seconds)
        except TimeoutError:
            return web.Response(status=HTTPStatus.REQUEST_TIMEOUT, text="the question did not come in time")
        except NoAnswerError as error:
            log.warning("a question was not answered: %s", error)
            return web.Response(status=error.code, text=str(error))
        return web.Response(body=said, content_type="application/json")

    made = web.Application(client_max_size=LARGEST)
    for path in (VALIDATE, GROUP):
        made.router.add_post(path, review)
    return made
