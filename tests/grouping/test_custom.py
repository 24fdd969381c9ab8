"""GroupingRules: kinds that nobody has heard of, and what is said of a rule that cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest
from tests.grouping.cluster import Cluster, settings

from kohort.api.errors import FieldError
from kohort.grouping.settings import document, read

Json = dict[str, Any]
FLINK: Json = {
    "name": "flink",
    "apiVersion": "flink.apache.org/v1beta1",
    "kind": "FlinkDeployment",
    "membership": {"label": "app"},
    "groupBy": "component",
    "minimum": {"jsonPath": "{.spec.taskManager.replicas}"},
}
BODY: Json = {
    "apiVersion": "flink.apache.org/v1beta1",
    "kind": "FlinkDeployment",
    "metadata": {"name": "wordcount"},
    "spec": {"taskManager": {"replicas": 3}, "jobManager": {"replicas": 1}},
}


def grouping(*rules: Json, **more: Any) -> Any:
    errors: list[FieldError] = []
    made = read({"rules": list(rules), **more}, "grouping", errors)
    assert errors == []
    return made


def cluster(*rules: Json) -> Cluster:
    found = Cluster(settings=settings(custom=grouping(*rules).custom))
    found.nodes(1, "2")
    return found


def test_a_kind_that_nobody_has_heard_of() -> None:
    found = cluster(FLINK)
    found.own(BODY)
    for index in range(3):
        found.pod(f"tm-{index}", None, {"app": "wordcount", "component": "taskmanager"})
    found.settle()
    assert found.tree() == {"wordcount/taskmanager": (3, None)}
    assert found.bound == {}
    assert "grouped by rule flink (FlinkDeployment default/wordcount)" in found.told("tm-0")
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 3


def test_owners_are_followed_through_a_statefulset() -> None:
    rule = {key: value for key, value in FLINK.items() if key not in {"membership", "groupBy"}}
    rule["minimum"] = {"jsonPath": [".spec.taskManager.replicas", ".spec.jobManager.replicas"]}
    found = cluster(rule)
    body = found.own(BODY)
    above = {"apiVersion": BODY["apiVersion"], "kind": BODY["kind"], "name": "wordcount", "controller": True}
    above["uid"] = body["metadata"]["uid"]
    inner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "tm", "ownerReferences": [above]}}
    found.own({**inner, "spec": {"replicas": 4}})
    for index in range(4):
        found.pod(f"tm-{index}", inner)
    found.settle()
    assert found.tree() == {"wordcount": (4, None)}
    assert found.bound == {}


def test_a_number_that_is_none_is_said() -> None:
    found = cluster(FLINK)
    found.own({**BODY, "metadata": {"name": "odd"}, "spec": {"taskManager": {"replicas": "many"}}})
    found.pod("tm", None, {"app": "odd"})
    found.settle()
    assert "Misconfigured: FlinkDeployment default/odd: {.spec.taskManager.replicas}: 'many'" in found.told("tm")


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        ({"name": None}, "rules[0].name", "accepted is a name of small letters"),
        ({"name": "jobset"}, "rules[0].name", "jobset"),
        ({"kind": 3}, "rules[0].kind", "accepted is the kind of the owner"),
        ({"apiVersion": "Flink"}, "rules[0].apiVersion", "accepted is GROUP/VERSION"),
        ({"membership": "app"}, "rules[0].membership", "accepted is {label: KEY}"),
        ({"minimum": 0}, "rules[0].minimum", "accepted are a whole number from 1 on"),
        ({"minimum": {"jsonPath": "spec replicas"}}, "rules[0].minimum.jsonPath", "such as .spec.replicas"),
        ({"groupBy": "no label!"}, "rules[0].groupBy", "accepted is a label's key"),
        ({"minMember": 3}, "rules[0].minMember", "not known; accepted are name, apiVersion"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(change: Json, field: str, text: str) -> None:
    rule = {key: value for key, value in {**FLINK, **change}.items() if value is not None}
    errors: list[FieldError] = []
    read({"rules": [rule]}, "grouping", errors)
    (error,) = errors
    assert error.field == f"grouping.{field}"
    assert text in str(error)


def test_all_that_is_wrong_is_told_at_once() -> None:
    errors: list[FieldError] = []
    read({"sources": ["*", "slurm"], "rules": [{}, 3], "what": 1}, "grouping", errors)
    fields = {one.field for one in errors}
    assert {"grouping.sources", "grouping.rules[1]", "grouping.what", "grouping.rules[0].minimum"} <= fields


def test_sources_are_selected_as_controllers_are() -> None:
    made = grouping(sources=["*", "-spark"])
    assert "spark" not in made.sources
    assert "jobset" in made.sources
    assert grouping(sources=["kueue"]).sources == {"kueue"}


def test_what_is_published_is_what_is_read() -> None:
    made = grouping(FLINK, sources=["kueue"], namespaces=["team-a"], schedulerNames=["kohort"])
    again: list[FieldError] = []
    assert document(read(document(made), "grouping", again)) == document(made)
    assert again == []
