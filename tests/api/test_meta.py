"""Metadata rules that no recorded case of the scheduling kinds reaches, and the server's own fields."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api import meta
from kohort.api.kind import Kind, Object
from kohort.api.registry import find


def _kind(api_version: str, name: str) -> Kind:
    found = find(api_version, name)
    assert found is not None
    return found


WORKLOAD = _kind("scheduling.k8s.io/v1beta1", "Workload")
CLASS = _kind("scheduling.k8s.io/v1", "PriorityClass")
POD = _kind("v1", "Pod")


def _obj(**members: Any) -> Object:
    return {"metadata": members}


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ({"name": "a"}, []),
        ({}, [("REQUIRED", "metadata.name")]),
        ({"generateName": "night-"}, []),
        ({"generateName": "Night-"}, [("INVALID", "metadata.generateName")]),
        ({"name": "a", "generation": -1}, [("INVALID", "metadata.generation")]),
        ({"name": "a", "finalizers": ["foregroundDeletion"]}, []),
        ({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}, [("INVALID", "metadata.finalizers")]),
        ({"name": "a", "finalizers": ["a/b/c"]}, [("INVALID", "metadata.finalizers")]),
        (
            {"name": "a", "ownerReferences": [{"apiVersion": "batch/", "kind": "", "name": "x", "uid": "1"}]},
            [
                ("INVALID", "metadata.ownerReferences[0].apiVersion"),
                ("REQUIRED", "metadata.ownerReferences[0].kind"),
            ],
        ),
        ({"name": "a", "annotations": {"k": "x" * 262_143}}, []),
        ({"name": "a", "annotations": {"k": "x" * 262_144}}, [("TOO_LONG", "metadata.annotations")]),
    ],
)
def test_create(members: dict[str, Any], wanted: list[tuple[str, str]]) -> None:
    assert [(error.kind.name, error.field) for error in meta.check_create(WORKLOAD, _obj(**members))] == wanted


def test_a_cluster_wide_kind_has_no_namespace() -> None:
    [error] = meta.check_create(CLASS, _obj(name="a", namespace="b"))
    assert (error.kind.name, error.field) == ("FORBIDDEN", "metadata.namespace")


def test_generated_names_are_cut_to_58_and_5() -> None:
    obj = _obj(generateName="g" * 100)
    meta.prepare_create(obj, lambda: "12345")
    assert obj["metadata"]["name"] == "g" * 58 + "12345"


def test_without_a_source_of_endings_a_generated_name_stays_open() -> None:
    obj = _obj(generateName="night-")
    meta.prepare_create(obj)
    assert "name" not in obj["metadata"]


def test_the_server_keeps_its_own_fields_on_update() -> None:
    old = _obj(name="a", namespace="n", uid="1", creationTimestamp="t", deletionTimestamp="d", generation=4)
    new = _obj(name="a", generation=9, deletionTimestamp=None)
    meta.prepare_update(new, old)
    assert new["metadata"] == old["metadata"]
    assert meta.check_update(new, old) == []


@pytest.mark.parametrize("member", ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"])
def test_immutable(member: str) -> None:
    old = _obj(name="a", namespace="n", uid="1", creationTimestamp="t")
    new = _obj(**{**old["metadata"], member: "other"})
    assert [error.field for error in meta.check_update(new, old)] == [f"metadata.{member}"]


def test_finalizers_may_leave_but_not_join_what_is_being_deleted() -> None:
    old = _obj(name="a", deletionTimestamp="d", finalizers=["x.org/a", "x.org/b"])
    assert meta.check_update(_obj(name="a", deletionTimestamp="d", finalizers=["x.org/b"]), old) == []
    [error] = meta.check_update(_obj(name="a", deletionTimestamp="d", finalizers=["x.org/b", "x.org/c"]), old)
    assert (error.kind.name, error.field) == ("FORBIDDEN", "metadata.finalizers")


def test_generation_counts_changes_of_the_spec_where_the_kind_does() -> None:
    pod: Object = {"metadata": {}, "spec": {"nodeName": "a"}, "status": {}}
    meta.count(POD, pod)
    assert pod["metadata"]["generation"] == 1
    moved: Object = {"metadata": {}, "spec": {"nodeName": "b"}, "status": {}}
    meta.count(POD, moved, pod)
    assert moved["metadata"]["generation"] == 2
    reported: Object = {"metadata": {}, "spec": {"nodeName": "b"}, "status": {"phase": "Running"}}
    meta.count(POD, reported, moved)
    assert reported["metadata"]["generation"] == 2
    workload: Object = {"metadata": {"generation": 7}, "spec": {}}
    meta.count(WORKLOAD, workload)
    assert workload["metadata"]["generation"] == 7
