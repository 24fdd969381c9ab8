"""Entries of managedFields: who is who, too many of them, endpoints, changed schemas, `kubectl apply` before."""

import json
from typing import Any

import pytest

from kohort.api import apply as ssa
from kohort.api.apply import fields as sets
from kohort.api.apply.managed import MOST_UPDATERS
from kohort.api.apply.scale import parent_entries, path_of, scale_entries

Object = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


def config_map(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}


def config_maps(subresource: str = "") -> ssa.Target:
    structure = ssa.native("1.37", "v1", "ConfigMap")
    assert structure is not None
    return ssa.Target("v1", "ConfigMap", structure, subresource)


def update(old: Object | None, new: Object, manager: str, now: str = NOW, subresource: str = "") -> Object:
    made = ssa.update_managed_fields(old, new, of=config_maps(subresource), manager=manager, now=now)
    made["metadata"]["uid"] = "u"
    return made


def owners(one: Object) -> dict[str, Object]:
    return {entry["manager"]: entry["fieldsV1"] for entry in one["metadata"].get("managedFields", ())}


def test_a_create_owns_what_it_wrote_and_not_what_is_always_there() -> None:
    made = update(None, config_map(a="1"), "alice")
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "alice",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ]


def test_an_update_takes_what_it_changes_and_joins_its_earlier_one() -> None:
    made = update(None, config_map(a="1", b="1"), "alice")
    made = update(made, {**made, "data": {"a": "2", "b": "1"}}, "bob", "2026-01-01T00:00:01Z")
    made = update(made, {**made, "data": {"a": "2", "b": "1", "c": "1"}}, "bob", "2026-01-01T00:00:02Z")
    assert owners(made) == {"alice": {"f:data": {".": {}, "f:b": {}}}, "bob": {"f:data": {"f:a": {}, "f:c": {}}}}


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    made = update(None, config_map(a="1"), "alice")
    assert update(made, dict(made), "bob") == made


def test_an_object_that_is_not_tracked_stays_so_until_it_is_applied() -> None:
    plain = config_map(a="1")
    plain["metadata"]["uid"] = "u"
    assert "managedFields" not in update(plain, {**plain, "data": {"a": "2"}}, "alice")["metadata"]
    applied = ssa.apply(plain, config_map(b="1"), of=config_maps(), manager="alice", now=NOW).object
    assert owners(applied) == {"alice": {"f:data": {"f:b": {}}}, "before-first-apply": {"f:data": {".": {}, "f:a": {}}}}


def test_more_than_ten_updaters_become_one_ancient_entry() -> None:
    made = update(None, config_map(), "m0")
    for number in range(1, 15):
        data = {**made.get("data", {}), f"k{number}": "1"}
        made = update(made, {**made, "data": data}, f"m{number:02}", f"2026-01-01T00:00:{number:02}Z")
    entries = made["metadata"]["managedFields"]
    assert len(entries) == MOST_UPDATERS
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["time"] == "2026-01-01T00:00:05Z"
    everything: Object = {}
    for entry in entries:
        everything = sets.union(everything, entry["fieldsV1"])
    assert set(everything["f:data"]) == {".", *(f"f:k{number}" for number in range(1, 15))}


@pytest.mark.parametrize("reset", [[], [{}]])
def test_managed_fields_can_be_forgotten(reset: list[Object]) -> None:
    made = update(None, config_map(a="1"), "alice")
    made = update(made, {**made, "metadata": {**made["metadata"], "managedFields": reset}}, "bob")
    assert "managedFields" not in made["metadata"]


@pytest.mark.parametrize(
    "entries",
    [
        [{"manager": "x", "operation": "Steal", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2"}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"q": {}}}],
        [{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": 1}}],
        ["nonsense"],
    ],
)
def test_nonsense_in_managed_fields_leaves_what_was_stored(entries: Any) -> None:
    made = update(None, config_map(a="1"), "alice")
    again = update(made, {**made, "metadata": {**made["metadata"], "managedFields": entries}}, "bob")
    assert owners(again) == owners(made)


def test_a_client_may_write_managed_fields_itself() -> None:
    made = update(None, config_map(a="1"), "alice")
    entries = [{**made["metadata"]["managedFields"][0], "manager": "eve"}]
    made = update(made, {**made, "metadata": {**made["metadata"], "managedFields": entries}}, "bob")
    assert set(owners(made)) == {"eve"}
    assert set(owners(update(made, {**made, "metadata": {"uid": "u", "managedFields": []}}, "bob", NOW, "status"))) == {
        "eve"
    }


def test_keys_are_written_in_one_way() -> None:
    assert sets.read({'k:{ "b": 1.0, "a":"<" }': {}}) == {'k:{"a":"\\u003c","b":1}': {}}
    assert sets.shown(("f:ports", sets.keyed({"port": 80, "protocol": "TCP"}))) == '.ports[port=80,protocol="TCP"]'
    assert sets.shown(("f:finalizers", sets.valued("a"))) == '.finalizers[="a"]'


@pytest.mark.parametrize(
    ("field_manager", "agent", "name"),
    [
        ("me", "kubectl/1", "me"),
        ("", "kubectl/v1.37 (linux)", "kubectl"),
        ("", "", "unknown"),
        ("", "x" * 200, "x" * 128),
    ],
)
def test_who_writes(field_manager: str, agent: str, name: str) -> None:
    assert ssa.manager_name(field_manager, agent) == name


# ---- kubectl apply, then kubectl apply --server-side

LAST = "kubectl.kubernetes.io/last-applied-configuration"


def applied_by_the_client(**data: str) -> Object:
    made = config_map(**data)
    made["metadata"]["annotations"] = {LAST: json.dumps(made)}
    return update(None, made, "kubectl-client-side-apply")


def test_server_side_apply_takes_over_from_kubectl_without_conflict() -> None:
    live = applied_by_the_client(a="1", b="1")
    done = ssa.apply(live, config_map(a="2", b="1"), of=config_maps(), manager="kubectl", now=NOW)
    assert not done.conflicts
    assert done.object["data"] == {"a": "2", "b": "1"}
    assert json.loads(done.object["metadata"]["annotations"][LAST])["data"] == {"a": "2", "b": "1"}
    assert ssa.apply(live, config_map(a="2"), of=config_maps(), manager="other", now=NOW).conflicts


def test_what_somebody_else_changed_since_is_a_conflict() -> None:
    live = applied_by_the_client(a="1", b="1")
    live = update(live, {**live, "data": {"a": "1", "b": "5"}}, "bob")
    done = ssa.apply(live, config_map(a="2", b="1"), of=config_maps(), manager="kubectl", now=NOW)
    assert [(conflict.manager.name, conflict.field) for conflict in done.conflicts] == [("bob", ".data.b")]
    assert ssa.conflict_message(done.conflicts) == 'Apply failed with 1 conflict: conflict with "bob" using v1: .data.b'


def test_several_conflicts_are_told_by_manager() -> None:
    live = update(None, config_map(a="1", b="1"), "bob")
    live = update(live, {**live, "data": {**live["data"], "c": "1"}}, "alice")
    done = ssa.apply(live, config_map(a="2", b="2", c="2"), of=config_maps(), manager="x", now=NOW)
    assert ssa.conflict_message(done.conflicts) == (
        'Apply failed with 3 conflicts: conflicts with "alice" using v1:\n- .data.c\n'
        'conflicts with "bob" using v1:\n- .data.a\n- .data.b'
    )
    status = ssa.conflict_status(done.conflicts)
    assert (status["code"], status["reason"], len(status["details"]["causes"])) == (409, "Conflict", 3)
    assert done.object == live


# ---- other versions, other schemas, the scale endpoint


def test_owners_in_versions_that_are_gone_are_forgotten() -> None:
    live = update(None, config_map(a="1"), "alice")
    live["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    of = ssa.Target("v1", "ConfigMap", config_maps().structure, versions={"v1"})
    done = ssa.apply(live, config_map(b="2"), of=of, manager="bob", now=NOW)
    assert "alice" not in owners(done.object)


def widget(sort: Object) -> ssa.Target:
    spec = {"type": "object", "properties": {"m": sort}}
    schema = {"type": "object", "properties": {"spec": spec}}
    return ssa.Target("x.io/v1", "Widget", ssa.custom(schema), dynamic=True)


def test_a_map_that_became_atomic_is_owned_as_a_whole() -> None:
    body = {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": {"m": {"a": "1"}}}
    strings: Object = {"type": "object", "additionalProperties": {"type": "string"}}
    live = ssa.apply(None, body, of=widget(strings), manager="alice", now=NOW).object
    assert owners(live) == {"alice": {"f:spec": {"f:m": {"f:a": {}}}}}
    atomic = widget({**strings, "x-kubernetes-map-type": "atomic"})
    other = {**body, "spec": {"m": {"b": "1"}}}
    conflicts = ssa.apply(live, other, of=atomic, manager="bob", now=NOW).conflicts
    assert [conflict.field for conflict in conflicts] == [".spec.m"]
    assert owners(ssa.apply(live, body, of=atomic, manager="bob", now=NOW).object)["alice"] == {"f:spec": {"f:m": {}}}


def test_whoever_scales_owns_the_replicas_of_the_parent() -> None:
    structure = ssa.native("1.37", "apps/v1", "Deployment")
    scale = ssa.native("1.37", "autoscaling/v1", "Scale")
    assert structure is not None
    assert scale is not None
    of = ssa.Target("apps/v1", "Deployment", structure)
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 1}}
    parent = ssa.apply(None, body, of=of, manager="alice", now=NOW).object
    path = path_of(".spec.replicas")
    shown = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "x"}, "spec": {"replicas": 1}}
    shown["metadata"] = {"name": "x", "uid": "u", "managedFields": scale_entries(parent, path)}
    scaled = ssa.update_managed_fields(
        shown,
        {**shown, "spec": {"replicas": 3}},
        of=ssa.Target("autoscaling/v1", "Scale", scale, "scale"),
        manager="bob",
        now=NOW,
    )
    entries = parent_entries(parent, scaled, path, "apps/v1")
    assert [(one["manager"], one["subresource"], one["apiVersion"], one["fieldsV1"]) for one in entries] == [
        ("bob", "scale", "apps/v1", {"f:spec": {"f:replicas": {}}})
    ]
