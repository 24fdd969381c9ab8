"""Work of one request grows with its size, not with the square of it: lists of 3 MB bodies are long.

Each request is sent at two sizes, and looked at twice. Steps of Python are counted: four times the size takes no more
than four times the steps, on every machine. What Python's own C does in one step (`x in a_list`) takes a clock: one
long list takes about as much processor time as sixteen lists that are as long together; a quadratic walk through it
takes up to sixteen times as much.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.server.crd.server import Running
from tests.support.steps import counted

from kohort.kube.wire import Request

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/default/configmaps"
LISTS = "/apis/x.test/v1/namespaces/default/lists"
SMALL, MOST_STEPS = 500, 4.25
SHORT, LONG, MOST_SECONDS = 500, 8_000, 3.0
TURNS = 5


def _definition() -> dict[str, Any]:
    keyed = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}
    by_key = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    strings = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    spec = {"type": "object", "properties": {"set": strings, "map": {"type": "array", **by_key, "items": keyed}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "lists", "kind": "Listed", "singular": "listed"}
    definition = {"group": "x.test", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "lists.x.test"}, "spec": definition}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running() as running:
        running.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition())
        deadline = time.monotonic() + 60
        while not running.request("GET", LISTS).ok:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield running


def _map(name: str, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}


def _list(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x.test/v1", "kind": "Listed", "metadata": {"name": name}, "spec": spec}


def _owners(count: int) -> list[dict[str, str]]:
    return [{"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": str(uuid.uuid4())} for i in range(count)]


def _names(count: int) -> list[str]:
    return [f"example.org/f{number}" for number in range(count)]


def _keyed(count: int) -> list[dict[str, str]]:
    return [{"k": name} for name in _names(count)]


Step = tuple[str, str, Any, str]
CASES: dict[str, Callable[[str, int], list[Step]]] = {
    "owners": lambda at, n: [("POST", MAPS, _map(at, ownerReferences=_owners(n)), "")],
    "owners merged": lambda at, n: [
        ("POST", MAPS, _map(at, ownerReferences=_owners(n)), ""),
        ("PATCH", f"{MAPS}/{at}", {"metadata": {"ownerReferences": _owners(n)}}, STRATEGIC),
    ],
    "owners applied": lambda at, n: [
        ("PATCH", f"{MAPS}/{at}?fieldManager=m", _map(at, ownerReferences=_owners(n)), APPLY)
    ],
    "finalizers merged": lambda at, n: [
        ("POST", MAPS, _map(at, finalizers=_names(n)), ""),
        ("PATCH", f"{MAPS}/{at}", {"metadata": {"finalizers": _names(n + 10)}}, STRATEGIC),
    ],
    "a set": lambda at, n: [("POST", LISTS, _list(at, set=_names(n)), "")],
    "a set with repeated items": lambda at, n: [("POST", LISTS, _list(at, set=_names(n) * 2), "")],
    "a map": lambda at, n: [
        ("POST", LISTS, _list(at, map=_keyed(n)), ""),
        ("PATCH", f"{LISTS}/{at}", {"spec": {"map": _keyed(n)[::-1]}}, MERGE),
    ],
    "a map and a set, applied": lambda at, n: [
        ("PATCH", f"{LISTS}/{at}?fieldManager=m", _list(at, map=_keyed(n), set=_names(n)), APPLY),
        ("PATCH", f"{LISTS}/{at}?fieldManager=m", _list(at, map=_keyed(n)[::-1], set=_names(n)[::-1]), APPLY),
        ("PATCH", f"{LISTS}/{at}?fieldManager=o&force=true", _list(at, map=_keyed(n)[::2]), APPLY),
    ],
}


def _requests(steps: list[Step]) -> list[Request]:
    made = []
    for method, path, body, media in steps:
        parts = urlsplit(path)
        headers = {"content-type": media or "application/json", "accept": "application/json", "user-agent": "test/1"}
        made.append(Request(method, parts.path, parse_qs(parts.query), headers, json.dumps(body).encode()))
    return made


async def _answer(server: Any, requests: list[Request]) -> None:
    for request in requests:
        found = await server.api.handle(request)
        assert found.status in (200, 201, 422), found.body


async def _steps(server: Any, requests: list[Request]) -> int:
    with counted() as steps:
        await _answer(server, requests)
    return steps.count


async def _seconds(server: Any, requests: list[Request]) -> float:
    """Of the thread that answers: what other threads of this process do is not the request's work."""
    began = time.thread_time()
    await _answer(server, requests)
    return time.thread_time() - began


def has_linear_steps(server: Any, make: Callable[[str, int], list[Step]], name: str, small: int = SMALL) -> None:
    fewer, more = (server.wait(_steps(server, _requests(make(f"{name}-{n}", n)))) for n in (small, 4 * small))
    assert more <= MOST_STEPS * fewer, f"{4 * small}: {more} steps, {small}: {fewer}"


def _has_linear_seconds(server: Any, make: Callable[[str, int], list[Step]], name: str) -> None:
    """The fastest of several turns counts: a pause of the garbage collector is not the request's work."""
    short = long = float("inf")
    for turn in range(TURNS):
        pieces = [_requests(make(f"{name}-{turn}-{piece}", SHORT)) for piece in range(LONG // SHORT)]
        short = min(short, sum(server.wait(_seconds(server, piece)) for piece in pieces))
        long = min(long, server.wait(_seconds(server, _requests(make(f"{name}-{turn}", LONG)))))
        if long < MOST_SECONDS * short:
            return
    pytest.fail(f"{LONG} at once: {long:.2f} s, {SHORT} at a time: {short:.2f} s in the fastest of {TURNS} turns")


@pytest.mark.parametrize("case", CASES)
def test_long_lists(server: Running, case: str) -> None:
    has_linear_steps(server, CASES[case], f"counted-{case.replace(' ', '-').replace(',', '')}")


@pytest.mark.parametrize("case", CASES)
def test_long_lists_in_processor_time(server: Running, case: str) -> None:
    _has_linear_seconds(server, CASES[case], f"timed-{case.replace(' ', '-').replace(',', '')}")


class _Looking:
    """A server that looks for each item of a set in a list of all of them, in Python or in C."""

    def __init__(self, server: Running, look: Callable[[str, list[str]], bool]) -> None:
        self.api, self.wait = SimpleNamespace(handle=self._handle), server.wait
        self._server, self._look = server, look

    async def _handle(self, request: Request) -> Any:
        items = json.loads(request.body)["spec"]["set"]
        assert not any(self._look(item + "x", items) for item in items)
        return await self._server.api.handle(request)


def test_a_quadratic_walk_is_found(server: Running) -> None:
    quadratic = _Looking(server, lambda item, items: any(item == other for other in items))
    with pytest.raises(AssertionError, match="steps"):
        has_linear_steps(quadratic, CASES["a set"], "looked-for")
    hidden = _Looking(server, lambda item, items: item in items)
    has_linear_steps(hidden, CASES["a set"], "hidden")
    with pytest.raises(pytest.fail.Exception, match="at once"):
        _has_linear_seconds(hidden, CASES["a set"], "hidden")
