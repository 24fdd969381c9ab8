"""Values of custom resources without a type: 1 is not true, 1.0 is 1, null is nothing where a field is declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.crd.server import Running
from tests.server.widgets import APPLY, JSON_PATCH, MERGE, WIDGETS, serve, widget

CONFUSED = [(1, True), (True, 1), (0, False), ({"a": 1}, {"a": True}), ([1], [True]), ({"a": [0]}, {"a": [False]})]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running() as running:
        serve(running)
        yield running


def managers(one: dict[str, Any]) -> set[str]:
    return {entry["manager"] for entry in one["metadata"]["managedFields"] if "f:any" in entry["fieldsV1"]["f:spec"]}


@pytest.mark.parametrize(("before", "after"), CONFUSED)
def test_a_number_that_becomes_a_boolean_is_a_change(server: Running, before: Any, after: Any) -> None:
    made = server.request("POST", f"{WIDGETS}?fieldManager=x", widget("w", any=before)).json()
    try:
        change = {"spec": {"any": after}}
        found = server.request("PATCH", f"{WIDGETS}/w?fieldManager=y", change, content_type=MERGE).json()
        assert repr(found["spec"]["any"]) == repr(after)
        assert found["metadata"]["generation"] == 2
        assert found["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
        assert "y" in managers(found)
        test = [{"op": "test", "path": "/spec/any", "value": before}]
        assert server.request("PATCH", f"{WIDGETS}/w", test, content_type=JSON_PATCH).code == 422
        asked = server.request("PATCH", f"{WIDGETS}/w?fieldManager=z", widget("w", any=before), content_type=APPLY)
        assert asked.code == 409, "somebody else has it, with another value"
        same = server.request("PUT", f"{WIDGETS}/w?fieldManager=q", found).json()
        assert same == found
        back = {**found, "spec": {"any": before}}
        assert repr(server.request("PUT", f"{WIDGETS}/w", back).json()["spec"]["any"]) == repr(before)
    finally:
        server.request("DELETE", f"{WIDGETS}/w")


@pytest.mark.parametrize(("written", "kept"), [("1.0", 1), ("1e3", 1000), ("-0.0", 0), ("1.5", 1.5), ("true", True)])
def test_a_whole_number_is_kept_without_a_point(server: Running, written: str, kept: Any) -> None:
    head = '"apiVersion":"kohort.test/v1","kind":"Widget","metadata":{"name":"n"}'
    text = f'{{{head},"spec":{{"any":{written},"free":{{"x":[{written}]}}}}}}'
    found = server.request("POST", f"{WIDGETS}?dryRun=All", text=text).json()["spec"]
    assert repr(found) == repr({"free": {"x": [kept]}, "any": kept}) or repr(found) == repr(
        {"any": kept, "free": {"x": [kept]}}
    )
    server.request("POST", WIDGETS, widget("n"))
    change = f'{{"spec":{{"any":{written}}}}}'
    patched = server.request("PATCH", f"{WIDGETS}/n", text=change, content_type=MERGE).json()["spec"]["any"]
    server.request("DELETE", f"{WIDGETS}/n")
    assert repr(patched) == repr(kept)


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"any": None}, {}),
        ({"size": None, "port": None}, {}),
        ({"free": {"x": None}, "any": {"y": None}}, {"free": {"x": None}, "any": {"y": None}}),
        ({"parts": [{"name": "a", "weight": None}]}, {"parts": [{"name": "a", "weight": None, "sort": "round"}]}),
    ],
)
def test_null_in_a_declared_field_that_does_not_take_it_is_nothing(
    server: Running, spec: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert server.request("POST", f"{WIDGETS}?dryRun=All", widget("n", **spec)).json()["spec"] == kept
