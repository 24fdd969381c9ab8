"""Work of one request grows with its size, not with the square of it: lists of 3 MB bodies are long.

Each request is sent at two sizes; the larger one may take eight times as long for four times the size. A quadratic walk
takes sixteen times as long.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.crd.server import Running

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
MAPS = "/api/v1/namespaces/default/configmaps"
LISTS = "/apis/x.test/v1/namespaces/default/lists"
SMALL, LARGE = 2_000, 8_000
MOST, LEAST_SECONDS = 8.0, 0.05  # below this, what is measured is the machine
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
        deadline = time.monotonic() + 10
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


def _seconds(server: Running, steps: list[Step]) -> float:
    bodies = [(method, path, json.dumps(body), media or "application/json") for method, path, body, media in steps]
    began = time.process_time()
    for method, path, text, media in bodies:
        code = server.request(method, path, text=text, content_type=media).code
        assert code in (200, 201, 422), code
    return time.process_time() - began


@pytest.mark.parametrize("case", CASES)
def test_long_lists(server: Running, case: str) -> None:
    """The fastest of several turns counts: a pause of the garbage collector is not the request's work."""
    make, name = CASES[case], case.replace(" ", "-").replace(",", "")
    small = large = float("inf")
    for turn in range(TURNS):
        small = min(small, _seconds(server, make(f"{name}-small-{turn}", SMALL)))
        large = min(large, _seconds(server, make(f"{name}-large-{turn}", LARGE)))
        if large < MOST * max(small, LEAST_SECONDS):
            return
    pytest.fail(f"{LARGE}: {large:.2f} s, {SMALL}: {small:.2f} s in the fastest of {TURNS} turns")
