"""What those who decide read of the store: decoded once, and kept no longer than it is true."""

from __future__ import annotations

import json

import pytest
from tests.server.talk import Talk

from kohort.api.kind import Object
from kohort.server import storage_codec
from kohort.server.resources import Resource
from kohort.server.store import Item

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/d/roles"
SERVICES = "/api/v1/namespaces/d/services"


def test_a_role_that_changes_often_costs_one_role(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        talk.create(ROLES, {"metadata": {"name": f"r{number}"}, "rules": []})
    lister = talk.api.core.lister
    assert len(lister.list("rbac.authorization.k8s.io", "roles")) == 20
    read: list[str] = []
    load = storage_codec.load

    def counted(resource: Resource, item: Item) -> Object:
        read.append(item.name)
        return load(resource, item)

    monkeypatch.setattr(storage_codec, "load", counted)
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    talk.request("PUT", f"{ROLES}/r7", {"metadata": {"name": "r7"}, "rules": [rule]})
    read.clear()
    found = lister.list("rbac.authorization.k8s.io", "roles")
    assert read == ["r7"]
    assert [one["rules"] for one in found if one["metadata"]["name"] == "r7"] == [[rule]]
    talk.request("DELETE", f"{ROLES}/r7")
    read.clear()
    assert len(lister.list("rbac.authorization.k8s.io", "roles")) == 19
    assert read == []


def test_of_services_only_what_was_given_out_is_kept(talk: Talk) -> None:
    port = {"port": 80}
    large = {"a.b/c": "x" * 100_000}
    spec = {"type": "NodePort", "ports": [port]}
    first = talk.create(SERVICES, {"metadata": {"name": "first", "annotations": large}, "spec": spec})
    second = talk.create(SERVICES, {"metadata": {"name": "second"}, "spec": spec})
    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    assert first["spec"]["ports"][0]["nodePort"] != second["spec"]["ports"][0]["nodePort"]
    kept = talk.api.core.service_allocator._known
    assert len(json.dumps([str(one) for one in kept.values()])) < 1000
    taken = {"clusterIP": first["spec"]["clusterIP"], "ports": [port]}
    assert talk.request("POST", SERVICES, {"metadata": {"name": "third"}, "spec": taken}).code == 422
    talk.request("DELETE", f"{SERVICES}/first")
    assert talk.request("POST", SERVICES, {"metadata": {"name": "third"}, "spec": taken}).code == 201


def test_large_objects_are_not_kept_without_their_managers() -> None:
    large = Item("d", "large", 1, b'{"metadata":{"name":"large"},"data":{"x":"' + b"y" * 100_000 + b'"}}')
    assert storage_codec.unmanaged(large) == (large.value, b"")
    assert large.value not in storage_codec._split
