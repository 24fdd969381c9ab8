"""Definitions on our server: names, conditions, resources that come and go, what becomes of objects."""

import gc
import json
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.crd.documents import Object, crd, gizmo
from tests.server.crd.server import Running

from kohort.api import registry
from kohort.api.crd import crds
from kohort.server import storage_codec
from kohort.server.crd import resources

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GIZMOS = "/apis/kohort.test/v1/namespaces/default/gizmos"


@pytest.fixture
def server() -> Iterator[Running]:
    with Running() as running:
        yield running


@pytest.fixture
def served(server: Running) -> Running:
    assert server.request("POST", CRDS, crd()).code == 201
    until(lambda: server.request("GET", GIZMOS).ok)
    return server


def until(there: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def conditions(server: Running, name: str = "gizmos.kohort.test") -> dict[str, tuple[str, str]]:
    status = server.request("GET", f"{CRDS}/{name}").json().get("status") or {}
    return {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions") or ()}


def test_a_definition_is_established_and_served(served: Running) -> None:
    until(lambda: "Established" in conditions(served))
    assert conditions(served) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    found = served.request("GET", "/apis/kohort.test/v1").json()["resources"]
    assert [(one["name"], one["kind"]) for one in found] == [
        ("gizmos", "Gizmo"),
        ("gizmos/scale", "Scale"),
        ("gizmos/status", "Gizmo"),
    ]
    assert (found[0]["shortNames"], found[0]["categories"], found[0]["singularName"]) == (["giz"], ["all"], "gizmo")
    assert "test.kohort.v1.Gizmo" in served.request("GET", "/openapi/v2").json()["definitions"]
    assert (
        "test.kohort.v1.Gizmo"
        in served.request("GET", "/openapi/v3/apis/kohort.test/v1").json()["components"]["schemas"]
    )


def test_the_life_of_an_object(served: Running) -> None:
    made = served.request("POST", GIZMOS, gizmo("a", stray=1, status=1) | {"status": {"replicas": 9}})
    assert made.code == 201
    assert set(made.warnings) == {'unknown field "spec.stray"', 'unknown field "spec.status"'}
    obj = made.json()
    assert obj["spec"] == {"size": 1, "mode": "slow"}
    assert "status" not in obj
    assert obj["metadata"]["generation"] == 1

    changed = served.request("PUT", f"{GIZMOS}/a", {**obj, "spec": {"size": 2}, "status": {"replicas": 5}}).json()
    assert (changed["metadata"]["generation"], changed.get("status")) == (2, None)
    status = {**changed, "spec": {"size": 7}, "status": {"replicas": 4, "selector": "a=b"}}
    changed = served.request("PUT", f"{GIZMOS}/a/status", status).json()
    assert (changed["spec"]["size"], changed["status"]["replicas"], changed["metadata"]["generation"]) == (2, 4, 2)

    scale = served.request("GET", f"{GIZMOS}/a/scale").json()
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 4, "selector": "a=b"})
    scale["spec"]["replicas"] = 3
    assert served.request("PUT", f"{GIZMOS}/a/scale", scale).json()["spec"] == {"replicas": 3}
    assert served.request("GET", f"{GIZMOS}/a").json()["spec"]["size"] == 3

    patch = served.request("PATCH", f"{GIZMOS}/a", {"spec": {"size": 4}}, content_type="application/merge-patch+json")
    assert patch.json()["spec"]["size"] == 4
    applied = served.request(
        "PATCH",
        f"{GIZMOS}/a?fieldManager=me&force=true",
        gizmo("a", labels={"x": "y"}),
        content_type="application/apply-patch+yaml",
    ).json()
    assert (applied["spec"]["size"], applied["spec"]["labels"]) == (1, {"x": "y"})
    assert {one["manager"] for one in applied["metadata"]["managedFields"]} >= {"me", "test"}

    assert served.request("DELETE", f"{GIZMOS}/a").code == 200
    assert served.request("GET", f"{GIZMOS}/a").code == 404


def test_columns(served: Running) -> None:
    served.request("POST", GIZMOS, gizmo("a"))
    obj = served.request("GET", f"{GIZMOS}/a").json()
    obj["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    served.request("PUT", f"{GIZMOS}/a/status", obj)
    table = served.request("GET", GIZMOS, accept="application/json;as=Table;v=v1;g=meta.k8s.io").json()
    assert [(one["name"], one["type"], one["priority"]) for one in table["columnDefinitions"]][:4] == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Ready", "string", 0),
        ("Mode", "string", 1),
    ]
    assert table["rows"][0]["cells"][:4] == ["a", 1, "True", "slow"]


def test_rules_with_functions_of_kubernetes_are_enforced(server: Running) -> None:
    body = crd()
    rule = {"rule": "!has(self.name) || sets.contains(['ab', 'cd'], [self.name])", "message": "ab or cd"}
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {**schema["properties"]["spec"], "x-kubernetes-validations": [rule]}
    answer = server.request("POST", CRDS, body)
    assert (answer.code, answer.warnings) == (201, [])
    until(lambda: server.request("GET", GIZMOS).ok)
    assert server.request("POST", GIZMOS, gizmo("a", name="ab")).code == 201
    assert server.request("POST", GIZMOS, gizmo("b", name="xy")).code == 422


def test_names_that_are_taken_wait_until_they_are_free(served: Running) -> None:
    other = crd("gizmoses", "Gizmo")
    other["spec"]["names"].pop("shortNames")
    assert served.request("POST", CRDS, other).code == 201
    until(lambda: "Established" in conditions(served, "gizmoses.kohort.test"))
    assert conditions(served, "gizmoses.kohort.test")["NamesAccepted"] == ("False", "ListKindConflict")
    assert conditions(served, "gizmoses.kohort.test")["Established"] == ("False", "NotAccepted")
    assert served.request("GET", "/apis/kohort.test/v1/gizmoses").code == 404
    assert served.request("DELETE", f"{CRDS}/gizmos.kohort.test").code == 200
    until(lambda: conditions(served, "gizmoses.kohort.test").get("Established", ("",))[0] == "True")
    assert served.request("GET", "/apis/kohort.test/v1/gizmoses").code == 200


def test_a_definition_takes_its_objects_along_and_waits_for_them(served: Running) -> None:
    held: Object = gizmo("held")
    held["metadata"]["finalizers"] = ["kohort.test/hold"]
    for one in (gizmo("free"), held):
        assert served.request("POST", GIZMOS, one).code == 201
    assert served.request("DELETE", f"{CRDS}/gizmos.kohort.test").code == 200
    until(lambda: conditions(served).get("Terminating") == ("True", "InstanceDeletionInProgress"))
    until(lambda: served.request("GET", f"{GIZMOS}/free").code == 404)
    assert served.request("GET", f"{GIZMOS}/held").json()["metadata"]["deletionTimestamp"]
    assert served.request("POST", GIZMOS, gizmo("late")).code in (403, 405)
    free = [{"op": "remove", "path": "/metadata/finalizers"}]
    # While it ends, a definition's objects can still be let go by those who hold them.
    answer = served.request("PATCH", f"{GIZMOS}/held", free, content_type="application/json-patch+json")
    assert answer.code == 200, answer.body
    until(lambda: served.request("GET", f"{CRDS}/gizmos.kohort.test").code == 404)
    until(lambda: served.request("GET", GIZMOS).code == 404)
    assert "kohort.test" not in json.dumps(served.request("GET", "/apis").json())


def test_versions_with_one_schema_are_one_object(server: Running) -> None:
    body = crd()
    first = body["spec"]["versions"][0]
    body["spec"]["versions"] = [
        {**first, "name": "v1alpha1", "storage": False},
        first,
        {**first, "name": "v2", "storage": False, "served": False},
    ]
    assert server.request("POST", CRDS, body).code == 201
    until(lambda: server.request("GET", GIZMOS).ok)
    group = server.request("GET", "/apis/kohort.test").json()
    assert [one["version"] for one in group["versions"]] == ["v1", "v1alpha1"]
    assert server.request("POST", GIZMOS, gizmo("a")).code == 201
    older = server.request("GET", GIZMOS.replace("/v1/", "/v1alpha1/") + "/a").json()
    assert (older["apiVersion"], older["spec"]["size"]) == ("kohort.test/v1alpha1", 1)
    assert server.request("GET", GIZMOS.replace("/v1/", "/v2/")).code == 404


def test_a_changed_schema_counts_at_once(served: Running) -> None:
    until(lambda: "Established" in conditions(served))
    stored = served.request("GET", f"{CRDS}/gizmos.kohort.test").json()
    spec = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["fresh"] = {"type": "string", "default": "yes"}
    assert served.request("PUT", f"{CRDS}/gizmos.kohort.test", stored).code == 200

    def fresh() -> bool:
        made = served.request("POST", f"{GIZMOS}?dryRun=All", gizmo("a")).json()
        return bool(made["spec"].get("fresh") == "yes")

    until(fresh)


def test_a_new_default_is_seen_in_what_was_stored_before(served: Running) -> None:
    until(lambda: "Established" in conditions(served))
    assert served.request("POST", GIZMOS, gizmo("old")).code == 201
    stored = served.request("GET", f"{CRDS}/gizmos.kohort.test").json()
    spec = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["fresh"] = {"type": "string", "default": "yes"}
    assert served.request("PUT", f"{CRDS}/gizmos.kohort.test", stored).code == 200
    until(lambda: served.request("GET", f"{GIZMOS}/old").json()["spec"].get("fresh") == "yes")
    (listed,) = served.request("GET", GIZMOS).json()["items"]
    assert listed["spec"]["fresh"] == "yes"


def test_our_own_definitions_have_our_own_rules(server: Running) -> None:
    body = next(one for one in crds() if one["spec"]["names"]["kind"] == "JobSet")
    assert server.request("POST", CRDS, body).code == 201
    path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
    until(lambda: server.request("GET", path).ok)
    found = server.api.resources.of_plural("jobset.x-k8s.io", "jobsets")
    assert found is not None
    assert found.rules is registry.find("jobset.x-k8s.io/v1alpha2", "JobSet")


def _roles(plural: str = "roles", kind: str = "Role") -> Object:
    made = crd()
    made["metadata"] = {"name": f"{plural}.rbac.authorization.k8s.io"}
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    made["spec"]["group"] = "rbac.authorization.k8s.io"
    made["spec"]["names"] = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return made


def test_a_definition_cannot_take_the_place_of_a_built_in_api(server: Running) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    refused = server.request("POST", CRDS, _roles())
    assert refused.code == 422
    assert "roles.rbac.authorization.k8s.io is served by the API server itself" in refused.json()["message"]
    assert server.request("POST", roles, {"metadata": {"name": "r"}, "rules": []}).code == 201


def test_another_version_of_a_built_in_group_may_be_defined(server: Running) -> None:
    made = _roles("guilds", "Guild")
    for one in made["spec"]["versions"]:
        one["name"] = f"{one['name']}alpha9"
    assert server.request("POST", CRDS, made).code == 201
    until(lambda: server.request("GET", "/apis/rbac.authorization.k8s.io/v1alpha9/namespaces/default/guilds").ok)
    taken = made | {"spec": {**made["spec"], "versions": [{**made["spec"]["versions"][0], "name": "v1"}]}}
    found = server.request("GET", f"{CRDS}/{made['metadata']['name']}").json()
    taken["metadata"] = found["metadata"]
    assert server.request("PUT", f"{CRDS}/{made['metadata']['name']}", taken).code == 422


def test_a_stored_definition_of_a_built_in_api_is_not_served(server: Running) -> None:
    """One from another release, in whose place a built-in API came."""
    made = _roles() | {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1"}
    made["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    name = made["metadata"]["name"]
    table = "apiextensions.k8s.io/customresourcedefinitions"

    async def put() -> None:
        def encode(revision: int) -> bytes:
            made["metadata"]["resourceVersion"] = str(revision)
            return json.dumps(made).encode()

        await server.store.write(table, "", name, encode, expect=None)

    server.wait(put())
    until(lambda: conditions(server, name).get("Established", ("",))[0] == "True")
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
    assert server.request("POST", roles, {"metadata": {"name": "r"}, "rules": []}).code == 201
    assert server.request("DELETE", f"{CRDS}/{name}").ok
    until(lambda: server.request("GET", f"{CRDS}/{name}").code == 404)
    assert server.request("GET", f"{roles}/r").code == 200


def test_the_others_of_a_group_are_not_read_for_one(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group may have hundreds, each with a megabyte of schemas."""
    read: list[str] = []
    load = storage_codec.load

    def counted(resource: Any, item: Any) -> Object:
        if resource.plural == "customresourcedefinitions":
            read.append(item.name)
        return load(resource, item)

    for number in range(5):
        assert served.request("POST", CRDS, alike(number)).code == 201
    until(lambda: all(conditions(served, f"p{number}.kohort.test").get("Established") for number in range(5)))
    monkeypatch.setattr(storage_codec, "load", counted)
    assert served.request("POST", CRDS, alike(5)).code == 201
    until(lambda: served.request("GET", "/apis/kohort.test/v1/p5").ok)
    assert served.request("DELETE", f"{CRDS}/p5.kohort.test").code == 200
    until(lambda: served.request("GET", "/apis/kohort.test/v1/p5").code == 404)
    assert set(read) <= {"p5.kohort.test"}


def alike(number: int) -> Object:
    body = crd(f"p{number}", f"Kind{number}")
    body["spec"]["names"].pop("shortNames")
    return body


def test_openapi_forgets_a_definition_without_making_the_others(
    served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = "/openapi/v3/apis/kohort.test/v1"
    other = crd("others", "Other", "another.test")
    assert served.request("POST", CRDS, other).code == 201
    until(lambda: served.request("GET", "/apis/another.test/v1/others").ok)
    made: list[str] = []
    make = resources.openapi

    def counted(one: Object) -> dict[str, Any]:
        made.append(one["metadata"]["name"])
        return make(one)

    monkeypatch.setattr(resources, "openapi", counted)
    assert "test.kohort.v1.Gizmo" in served.request("GET", document).json()["components"]["schemas"]
    assert made == ["gizmos.kohort.test"], "a group's document is made of that group's definitions"
    changed = crd()
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "said anew"
    changed["metadata"] = served.request("GET", f"{CRDS}/gizmos.kohort.test").json()["metadata"]
    assert served.request("PUT", f"{CRDS}/gizmos.kohort.test", changed).code == 200
    until(lambda: "said anew" in json.dumps(served.request("GET", document).json()))
    made.clear()
    assert served.request("DELETE", f"{CRDS}/gizmos.kohort.test").code == 200
    until(lambda: served.request("GET", document).code == 404)
    assert made == []
    definitions = served.request("GET", "/openapi/v2").json()["definitions"]
    assert "test.another.v1.Other" in definitions
    assert "test.kohort.v1.Gizmo" not in definitions


def test_nothing_is_held_of_a_definition_that_is_gone(server: Running) -> None:
    """Its schemas may be megabytes, and a tenant may come with another one every minute."""
    plurals = [f"p{number}" for number in range(3)]
    for number, plural in enumerate(plurals):
        assert server.request("POST", CRDS, alike(number)).code == 201
        path = f"/apis/kohort.test/v1/namespaces/default/{plural}"
        until(lambda path=path: server.request("GET", path).ok)  # type: ignore[misc]
        body = gizmo("a") | {"kind": f"Kind{number}"}
        assert server.request("POST", path, body).code == 201
        apply = "application/apply-patch+yaml"
        assert server.request("PATCH", f"{path}/a?fieldManager=m&force=true", body, content_type=apply).code == 200
        assert server.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io").ok
    held = [weakref.ref(one) for one in server.api.resources.every() if one.plural in plurals]
    assert len(held) == len(plurals)
    for plural in plurals:
        name = f"{CRDS}/{plural}.kohort.test"
        assert server.request("DELETE", name).code == 200
        until(lambda name=name: server.request("GET", name).code == 404)  # type: ignore[misc]
    assert server.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "after"}}).code == 201
    until(lambda: gc.collect() >= 0 and not any(one() for one in held))
