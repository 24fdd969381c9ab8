"""GroupingRules as objects: they come, change and go while the scheduler works, and say what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.grouping.cluster import Cluster

from kohort.api.kind import Context
from kohort.api.registry import find
from kohort.grouping.expressions import BUDGET
from kohort.grouping.model import Kind, Thing, WrongError
from kohort.grouping.settings import Grouping, extended, read
from kohort.scheduler.companion import Objects
from kohort.scheduler.groupingrules import GroupingRules

Json = dict[str, Any]
SPEC: Json = {
    "apiVersion": "flink.apache.org/v1beta1",
    "kind": "FlinkDeployment",
    "membership": {"label": "app"},
    "minimum": {"cel": "object.spec.taskManager.replicas + object.spec.jobManager.replicas"},
}
OWNER: Json = {
    "apiVersion": "flink.apache.org/v1beta1",
    "kind": "FlinkDeployment",
    "metadata": {"name": "wordcount"},
    "spec": {"taskManager": {"replicas": 2}, "jobManager": {"replicas": 1}},
}


def rule(name: str = "flink", generation: int = 1, **changes: Any) -> Json:
    spec = {key: value for key, value in {**SPEC, **changes}.items() if value is not None}
    meta = {"name": name, "uid": f"u-{name}", "generation": generation}
    return {"apiVersion": "kohort.dev/v1alpha1", "kind": "GroupingRule", "metadata": meta, "spec": spec}


def cluster() -> Cluster:
    found = Cluster()
    found.nodes(1, "2")
    return found


def put(found: Cluster, body: Json) -> None:
    cache = found.core.cache
    cache.set_grouping_rule(body["metadata"]["name"], body)
    cache.companion.readable(set(cache.companion.settings.reads))


def wrong(**changes: Any) -> list[str]:
    body = rule(**changes)
    kind = find("kohort.dev/v1alpha1", "GroupingRule")
    assert kind is not None
    return [str(one) for one in kind.validate(body, Context())]


def asking(cpu: str) -> list[Json]:
    return [{"resources": {"requests": {"cpu": cpu}}}]


def test_pods_that_wait_are_grouped_by_a_rule_that_changes_and_goes() -> None:
    found = cluster()
    found.own(OWNER)
    put(found, rule())
    found.pod("a", None, {"app": "wordcount"})
    found.pod("b", None, {"app": "wordcount"}, containers=asking("8"))
    found.settle(30)
    assert found.bound == {}, "two of three members are there"
    assert found.tree() == {"wordcount": (3, None)}
    put(found, rule(generation=2, minimum={"count": 1}))
    found.settle(30)
    assert len(found.bound) == 1
    assert "grouped by rule flink (FlinkDeployment default/wordcount)" in found.told("b")
    found.core.cache.set_grouping_rule("flink", None)
    assert found.core.cache.companion.settings.custom == ()
    assert [one.group for one in found.core.cache.members.values()] == [None, None]


def test_a_rule_that_comes_after_its_pods() -> None:
    found = cluster()
    found.own(OWNER)
    found.pod("a", None, {"app": "wordcount"}, containers=asking("8"))
    found.settle(30)
    assert "grouped by" not in found.told("a")
    put(found, rule(minimum={"count": 1}))
    found.settle(30)
    assert found.tree() == {"wordcount": (1, None)}
    assert "grouped by rule flink" in found.told("a")


def test_a_status_that_moves_regroups_nobody() -> None:
    rules = GroupingRules(Grouping())
    assert rules.set("flink", rule()) is not None
    assert rules.set("flink", {**rule(), "status": {"conditions": []}}) is None
    assert rules.set("flink", None) is not None


def test_ranks_by_the_label_that_a_rule_names() -> None:
    found = cluster()
    found.own(OWNER)
    put(found, rule(rank={"label": "worker-number"}))
    found.pod("a", None, {"app": "wordcount", "worker-number": "7"})
    found.pod("b", None, {"app": "wordcount", "worker-number": "3", "kohort.dev/rank": "1"})
    ranks = {one.pod.metadata.name: one.pod.rank for one in found.core.cache.members.values()}
    assert ranks == {"a": (7,), "b": (1,)}, "what the pod says itself counts"


def test_conditions_say_everything_that_is_wrong_once() -> None:
    rules = GroupingRules(Grouping())
    rules.set("flink", rule())
    rules.set("odd", rule("odd", 4, kind="No Kind", minimum={"cel": "object.spec.replicas +"}, topology="!"))
    told = {name: condition for name, _, condition in rules.conditions(Objects(), "now")}
    assert (told["flink"].status, told["flink"].reason) == ("True", "Valid")
    assert (told["odd"].status, told["odd"].reason, told["odd"].observed_generation) == ("False", "Invalid", 4)
    assert all(path in told["odd"].message for path in ("spec.kind", "spec.minimum.cel", "spec.topology"))
    written: Json = {"type": "Accepted", "status": "True", "reason": "Valid"}
    written |= {"message": told["flink"].message, "observedGeneration": 1}
    rules.set("flink", {**rule(), "status": {"conditions": [written]}})
    assert [name for name, _, _ in rules.conditions(Objects(), "now")] == ["odd"], (
        "what is there already is not written again"
    )


def test_a_kind_that_cannot_be_read_is_said() -> None:
    rules, objects = GroupingRules(Grouping()), Objects()
    rules.set("flink", rule())
    kind = Kind("flink.apache.org", "FlinkDeployment")
    objects.missed.add(kind)
    told = {condition.type: condition for _, _, condition in rules.conditions(objects, "now")}
    assert (told["KindReadable"].status, told["KindReadable"].reason) == ("False", "NotReadable")
    assert "may not list and watch it" in told["KindReadable"].message
    objects.readable.add(kind)
    told = {condition.type: condition for _, _, condition in rules.conditions(objects, "now")}
    assert told["KindReadable"].status == "True"


def test_names_that_are_taken() -> None:
    configured = read({"rules": [{**SPEC, "name": "flink"}]}, "grouping", [])
    made, problems = extended(configured, [rule(), rule("jobset")])
    assert made.custom == configured.custom
    assert "a rule of the configuration has this name" in str(problems["flink"][0])
    assert "a rule that comes with Kohort has this name" in str(problems["jobset"][0])


@pytest.mark.parametrize(
    ("minimum", "said"),
    [
        ({"cel": "object.spec.replicas +"}, "spec.minimum.cel"),
        ({"cel": "self.spec.replicas"}, "undeclared reference to 'self'"),
        ({"cel": "object.spec.name == 'x'"}, "it is of type bool, accepted is int"),
        ({"cel": "1" + " + 1" * 600}, "accepted are 1024"),
        ({"cel": "1", "count": 2}, "exactly one of them"),
        ({}, "exactly one of them"),
        ({"jsonPath": ["$$"]}, "accepted is a path in the spec"),
        ({"count": 0}, "a whole number from 1 on"),
    ],
)
def test_a_minimum_that_cannot_be_meant(minimum: Json, said: str) -> None:
    assert said in "\n".join(wrong(minimum=minimum))


def test_a_rule_that_is_right() -> None:
    assert wrong() == []
    assert wrong(minimum={"jsonPath": [".spec.a", ".spec.b[*].c"]}, rank={"label": "r"}, groupBy="g") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("object.spec.absent", "no such key: absent"),
        ("object.spec.name", "found 'x', accepted are whole numbers"),
        ("0 - 1", "found -1"),
        ("object.spec.items.filter(a, object.spec.items.exists(b, b == a + 1)).size()", f"costs more than {BUDGET}"),
    ],
)
def test_an_expression_that_fails_is_misconfigured_and_never_dear(text: str, said: str) -> None:
    from kohort.grouping.expressions import value

    owner = Thing("a/v1", "Kind", "default", "one", spec={"name": "x", "items": list(range(5000))})
    with pytest.raises(WrongError, match=said):
        value(text, owner)


def test_expressions_see_the_owner() -> None:
    from kohort.grouping.expressions import value

    owner = Thing("a/v1", "Kind", "default", "one", labels={"n": "4"}, spec={"groups": [{"n": 2}, {"n": 3}]})
    assert value("object.spec.groups.map(one, one.n).sum()", owner) == 5
    assert value("int(object.metadata.labels['n']) + size(object.metadata.name)", owner) == 7
    assert value("has(object.spec.more) ? object.spec.more : 1", owner) == 1
