"""What kubectl and other clients that nobody here wrote found, each as a small test of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.crd.server import Running

from kohort.api.crd import crds

APPLY = "application/apply-patch+yaml"


@pytest.fixture(scope="module")
def talk() -> Iterator[Running]:
    with Running(shipped=True) as one:
        one.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
        yield one


# ---- bodies


def _applied(talk: Running, text: str, name: str = "c", query: str = "") -> Any:
    path = f"/api/v1/namespaces/d/configmaps/{name}?fieldManager=me{query}"
    return talk.request("PATCH", path, text=text, content_type=APPLY)


@pytest.mark.parametrize("data", ['{"level": "info"}', " *foo", '{"level": "info"}\n *foo\n- *bar\n', '"a": "b", *c'])
def test_text_that_looks_like_json_or_an_alias_is_text(talk: Running, data: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": data}}
    answer = _applied(talk, json.dumps(body))
    assert answer.code in (200, 201), answer.body
    assert answer.json()["data"]["k"] == data
    block = "".join(f"    {line}\n" for line in data.splitlines())
    written = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: y}}\ndata:\n  k: |2\n{block}"
    answer = _applied(talk, written, "y")
    assert answer.code in (200, 201), answer.body
    assert answer.json()["data"]["k"].split() == data.split()


def test_keys_that_repeat_are_found_beside_text_with_colons(talk: Running) -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"{\\"a\\": 1}","k":"2"}}'
    answer = _applied(talk, text, query="&fieldValidation=Strict")
    assert answer.code == 400
    assert 'key "k" already set in map' in answer.json()["message"]
    answer = talk.request("POST", "/api/v1/namespaces/d/configmaps?fieldValidation=Strict", text=text)
    assert answer.code == 400
    assert 'duplicate field "data.k"' in answer.json()["message"]


def test_an_alias_is_refused_with_its_line(talk: Running) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z, labels: &l {a: b}, annotations: *l}\n"
    answer = _applied(talk, text, "z")
    assert answer.code == 400
    assert answer.json()["message"] == "line 3: YAML aliases (*l) are not accepted in a request"


# ---- OpenAPI: kubectl apply and diff choose their patches by it

PATCHES = ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")


def _patch_paths(talk: Running) -> Iterator[tuple[str, list[str]]]:
    for name in talk.get("/openapi/v3")["paths"]:
        for path, entry in talk.get(f"/openapi/v3/{name}")["paths"].items():
            if "patch" in entry:
                yield path, list(entry["patch"]["requestBody"]["content"])


def test_the_patches_that_openapi_lists_are_those_that_are_accepted(talk: Running) -> None:
    seen = 0
    for path, listed in _patch_paths(talk):
        at = path.replace("{namespace}", "d").replace("{name}", "nobody") + "?fieldManager=me&force=true"
        kinds = [f"application/{one}" for one in PATCHES]
        if at.partition("?")[0].endswith("/nobody"):  # an apply would create it
            kinds = kinds[:3]
        taken = [kind for kind in kinds if talk.request("PATCH", at, text="[]", content_type=kind).code != 415]
        assert taken == [kind for kind in kinds if kind in listed], path
        assert "application/apply-patch+yaml" in listed, path
        seen += 1
    assert seen > 120


def test_openapi_says_what_a_subresource_takes(talk: Running) -> None:
    core = talk.get("/openapi/v3/api/v1")
    for path, kind in (("status", "Pod"), ("binding", "Binding"), ("eviction", "Eviction")):
        entry = core["paths"][f"/api/v1/namespaces/{{namespace}}/pods/{{name}}/{path}"]
        operation = entry["put" if path == "status" else "post"]
        (body,) = operation["requestBody"]["content"].values()
        name = body["schema"]["$ref"].rpartition("/")[2]
        assert name.endswith(f".{kind}")
        assert name in core["components"]["schemas"]
        assert operation["x-kubernetes-group-version-kind"]["kind"] == kind
    custom = talk.get("/openapi/v3/apis/leaderworkerset.x-k8s.io/v1")
    scale = custom["paths"]["/apis/leaderworkerset.x-k8s.io/v1/namespaces/{namespace}/leaderworkersets/{name}/scale"]
    assert scale["put"]["requestBody"]["content"]["*/*"]["schema"]["$ref"].endswith(".autoscaling.v1.Scale")


# ---- definitions


def test_a_definition_that_comes_with_us_belongs_to_whoever_applies_it(talk: Running) -> None:
    """Upstream's own JobSet definition has other words than ours; nobody else claims them."""
    theirs: Any = next(one for one in crds() if one["spec"]["names"]["kind"] == "JobSet")
    theirs["spec"]["names"]["shortNames"] = ["js"]
    theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "theirs"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{theirs['metadata']['name']}"
    assert [one["manager"] for one in talk.get(path)["metadata"]["managedFields"]] == ["kohort"]
    answer = talk.request("PATCH", f"{path}?fieldManager=kubectl", theirs, content_type=APPLY)
    assert answer.code == 200, answer.body
    assert answer.json()["spec"]["names"]["shortNames"] == ["js"]
