"""get and list: selectors, pages, which revision is read; representations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.server.talk import Talk

from kohort.server import storage_codec

MAPS = "/api/v1/namespaces/d/configmaps"
PODS = "/api/v1/namespaces/d/pods"


def pod(name: str, **labels: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def padded(one: dict[str, Any], size: int) -> dict[str, Any]:
    """With so many bytes more."""
    one["spec"]["containers"][0]["env"] = [{"name": f"V{number:07}", "value": ""} for number in range(size // 30)]
    one["metadata"]["annotations"] = {"note": "x" * size}
    return one


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk()
    made.create("/api/v1/namespaces", {"metadata": {"name": "d"}})
    made.create("/api/v1/namespaces", {"metadata": {"name": "e"}})
    yield made
    made.close()


def names(found: Any) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("a=1", ["p1"]),
        ("a==1", ["p1"]),
        ("a!=1", ["p2", "p3"]),
        ("a in (1,2)", ["p1", "p2"]),
        ("a notin (1)", ["p2", "p3"]),
        ("a", ["p1", "p2"]),
        ("!a", ["p3"]),
        ("a,b", ["p2"]),
        ("a>1", ["p2"]),
        ("a<2", ["p1"]),
        (" a = 1 , !b ", ["p1"]),
        ("", ["p1", "p2", "p3"]),
    ],
)
@pytest.mark.parametrize("size", [0, 40_000])  # large objects are not read as a whole
def test_label_selectors(talk: Talk, selector: str, wanted: list[str], size: int) -> None:
    for one in (pod("p1", a="1"), pod("p2", a="2", b="x"), pod("p3")):
        talk.create(PODS, padded(one, size))
    assert names(talk.get(f"{PODS}?labelSelector={selector.replace(' ', '%20')}")) == wanted


@pytest.mark.parametrize("selector", ["a=", "a in ()", "=1", "a b", "a in (1", "a=1,", "!!a", "a=" + "x" * 64])
def test_selectors_that_are_none(talk: Talk, selector: str) -> None:
    answer = talk.request("GET", f"{PODS}?labelSelector={selector.replace(' ', '%20')}")
    assert answer.code == (200 if selector in {"a=", "a in ()"} else 400)


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("metadata.name=p1", ["p1"]),
        ("metadata.name!=p1", ["p2"]),
        ("spec.nodeName=n1", ["p1"]),
        ("spec.nodeName=", ["p2"]),
        ("status.phase=Pending,spec.nodeName!=n1", ["p2"]),
        ("metadata.namespace=d", ["p1", "p2"]),
    ],
)
@pytest.mark.parametrize("size", [0, 40_000])
def test_field_selectors(talk: Talk, selector: str, wanted: list[str], size: int) -> None:
    for name in ("p1", "p2"):
        talk.create(PODS, padded(pod(name), size))
    assert talk.request("POST", f"{PODS}/p1/binding", {"target": {"name": "n1"}}).code == 201
    assert names(talk.get(f"/api/v1/pods?fieldSelector={selector}")) == wanted


def test_every_selectable_field_of_a_large_object_reads_as_that_of_a_small_one(talk: Talk) -> None:
    tried = set()
    for resource in talk.api.core.resources.every():
        for path, get in resource.fields.items():
            if not resource.native:
                continue
            ours = path.replace("regarding.", "involvedObject.").replace("reportingController", "reportingComponent")
            small: dict[str, Any] = {"metadata": {"name": "n", "namespace": "d"}, "spec": {}, "status": {}}
            ours = {"name": "metadata.name", "status.successful": "status.succeeded"}.get(ours, ours)
            *above, last = ours.split(".")
            place = small.setdefault(above[0], {}) if above else small
            place[last] = [{"ip": "::1"}] if last == "podIPs" else {"component": "c"} if last == "source" else "text"
            wide = {f"k{number}": ["v"] for number in range(3000)}
            large = {**small, **{name: {**small[name], "wide": wide} for name in ("metadata", "spec", "status")}}
            read = storage_codec.selectable(resource, json.dumps({**large, "data": wide}).encode())
            assert get(read) == get(small) not in {"", "0", "false"}, (resource.plural, path)
            assert "wide" not in read["spec"]
            tried.add(path)
    assert len(tried) > 20


def test_pages_are_of_one_revision(talk: Talk) -> None:
    for number in range(7):
        talk.create(MAPS, {"metadata": {"name": f"c{number}"}})
    first = talk.get(f"{MAPS}?limit=3")
    assert names(first) == ["c0", "c1", "c2"]
    assert first["metadata"]["remainingItemCount"] == 4
    talk.create(MAPS, {"metadata": {"name": "c33"}})
    talk.request("DELETE", f"{MAPS}/c5")
    second = talk.get(f"{MAPS}?limit=3&continue={first['metadata']['continue']}")
    third = talk.get(f"{MAPS}?limit=3&continue={second['metadata']['continue']}")
    assert names(second) + names(third) == ["c3", "c4", "c5", "c6"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in third["metadata"]


def test_a_page_of_a_forgotten_revision_is_gone_and_can_be_resumed(talk: Talk) -> None:
    for number in range(4):
        talk.create(MAPS, {"metadata": {"name": f"c{number}"}})
    token = talk.get(f"{MAPS}?limit=2")["metadata"]["continue"]
    talk.create(MAPS, {"metadata": {"name": "c9"}})
    talk.store.compact(talk.store.revision)
    answer = talk.request("GET", f"{MAPS}?limit=2&continue={token}")
    assert (answer.code, answer.json()["reason"]) == (410, "Expired")
    again = answer.json()["metadata"]["continue"]
    assert names(talk.get(f"{MAPS}?continue={again}")) == ["c2", "c3", "c9"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resourceVersion=1", 200),
        ("resourceVersion=0", 200),
        ("resourceVersion=1&resourceVersionMatch=Exact", 200),
        ("resourceVersion=1&resourceVersionMatch=NotOlderThan", 200),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("resourceVersion=1&resourceVersionMatch=Sometimes", 422),
        ("resourceVersion=99999", 504),
        ("resourceVersion=abc", 400),
        ("resourceVersion=-1", 400),
        ("limit=-1", 200),
        ("limit=many", 400),
        ("continue=nonsense", 400),
        ("continue=e30", 400),
        ("fieldSelector=spec.unknown=x", 400),
        ("fieldSelector=metadata.name", 400),
    ],
)
def test_options_of_lists(talk: Talk, query: str, code: int) -> None:
    assert talk.request("GET", f"{MAPS}?{query}").code == code


def test_an_exact_revision_is_read_as_it_was(talk: Talk) -> None:
    one = talk.create(MAPS, {"metadata": {"name": "a"}, "data": {"k": "1"}})
    then = one["metadata"]["resourceVersion"]
    talk.request("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "2"}})
    talk.create(MAPS, {"metadata": {"name": "b"}})
    old = talk.get(f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert [(item["metadata"]["name"], item["data"]["k"]) for item in old["items"]] == [("a", "1")]
    assert names(talk.get(f"{MAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan")) == ["a", "b"]


def test_lists_are_in_the_order_of_keys_over_all_namespaces(talk: Talk) -> None:
    for where in ("e", "d"):
        for name in ("b", "a"):
            talk.create(f"/api/v1/namespaces/{where}/configmaps", {"metadata": {"name": name}})
    found = talk.get("/api/v1/configmaps")["items"]
    assert [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found] == [
        ("d", "a"),
        ("d", "b"),
        ("e", "a"),
        ("e", "b"),
    ]


def test_other_representations(talk: Talk) -> None:
    talk.create(PODS, pod("p1"))
    table = talk.request("GET", PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json").json()
    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"][:4] == ["p1", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    listed = talk.request("GET", PODS, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").json()
    assert listed["kind"] == "PartialObjectMetadataList"
    assert list(listed["items"][0]) == ["kind", "apiVersion", "metadata"]
    whole = talk.request("GET", f"{PODS}/p1", accept="application/yaml")
    assert yaml.safe_load(whole.body)["kind"] == "Pod"
    binary = "application/vnd.kubernetes.protobuf"
    assert talk.request("GET", PODS, accept=f"{binary},application/json").code == 200
    assert talk.request("GET", PODS, accept=binary).code == 406


def test_events_have_two_forms_over_one_store(talk: Talk) -> None:
    about = {"kind": "Pod", "namespace": "d", "name": "p1"}
    event = {"metadata": {"name": "e1"}, "regarding": about, "note": "hello", "reason": "Why", "type": "Normal"}
    event |= {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "me", "reportingInstance": "m-1"}
    answer = talk.request("POST", "/apis/events.k8s.io/v1/namespaces/d/events", {**event, "action": "Do"})
    assert answer.code == 201, answer.body
    older = talk.get("/api/v1/namespaces/d/events/e1")
    assert (older["message"], older["involvedObject"]["name"], older["reportingComponent"]) == ("hello", "p1", "me")
    found = talk.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name=p1")
    assert [item["note"] for item in found["items"]] == ["hello"]
    assert names(talk.get("/api/v1/events?fieldSelector=involvedObject.name=other")) == []


def test_versions_of_one_kind_share_their_objects(talk: Talk) -> None:
    group = {"metadata": {"name": "ring"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    talk.create("/apis/scheduling.k8s.io/v1beta1/namespaces/d/podgroups", group)
    other = talk.get("/apis/scheduling.k8s.io/v1alpha3/namespaces/d/podgroups/ring")
    assert other["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    assert other["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_documents_about_the_api(minor: str) -> None:
    talk = Talk(minor)
    try:
        assert talk.get("/version")["gitVersion"].startswith(f"v{minor}.")
        plain = {group["name"] for group in talk.get("/apis")["groups"]}
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        whole = talk.request("GET", "/apis", accept=accept).json()
        assert whole["kind"] == "APIGroupDiscoveryList"
        assert {group["metadata"]["name"] for group in whole["items"]} == plain
        index = talk.get("/openapi/v3")["paths"]
        for name in index:
            answer = talk.request("GET", f"/openapi/v3/{name}")
            assert answer.code == 200, name
            document = answer.json()
            text = json.dumps(document)
            for reference in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
                assert reference in document["components"]["schemas"], (name, reference)
        second = talk.get("/openapi/v2")
        for reference in {part.split('"')[0] for part in json.dumps(second["paths"]).split("#/parameters/")[1:]}:
            assert reference in second["parameters"]
        assert talk.request("GET", "/healthz").body == b"ok"
        assert b"apiserver_request_total" in talk.request("GET", "/metrics").body
    finally:
        talk.close()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v1/nonsense", 404),
        ("/api/v2", 404),
        ("/apis/none.example/v1/things", 404),
        ("/api/v1/namespaces/d/nodes", 404),
        ("/api/v1/nodes/x", 404),
        ("/api/v1/namespaces/d/pods/x/none", 404),
        ("/api/v1/namespaces/d/pods/x/exec", 501),
        ("/nowhere", 404),
        ("/", 200),
    ],
)
def test_paths(talk: Talk, path: str, code: int) -> None:
    assert talk.request("GET", path).code == code
