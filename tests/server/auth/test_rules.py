"""One rule against one request; rules against rules."""

import pytest
from tests.support.steps import counted

from kohort.server.auth import rules
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.auth.rules import Rule

PODS = Rule(("get", "list"), ("",), ("pods",))


def wish(verb: str = "get", resource: str = "pods", group: str = "", name: str = "") -> AuthorizerAttributes:
    resource, _, subresource = resource.partition("/")
    return AuthorizerAttributes(verb, group, resource, subresource, namespace="d", name=name)


ALLOWS = [
    (PODS, wish(), True),
    (PODS, wish("delete"), False),
    (PODS, wish("GET"), False),
    (PODS, wish(group="apps"), False),
    (PODS, wish(resource="pod"), False),
    (PODS, wish(resource="pods/log"), False),
    (Rule(("*",), ("",), ("pods",)), wish("anything"), True),
    (Rule(("get",), ("*",), ("pods",)), wish(group="apps"), True),
    (Rule(("get",), ("",), ("*",)), wish(resource="pods/log"), True),
    (Rule(("get",), ("",), ("pods/log",)), wish(resource="pods/log"), True),
    (Rule(("get",), ("",), ("pods/log",)), wish(), False),
    (Rule(("get",), ("",), ("pods/*",)), wish(resource="pods/log"), False),
    (Rule(("get",), ("",), ("*/log",)), wish(resource="pods/log"), True),
    (Rule(("get",), ("",), ("*/log",)), wish(resource="pods/logs"), False),
    (Rule(("get",), ("",), ("*/log",)), wish(), False),
    (Rule(("get",), ("",), ("*/*",)), wish(resource="pods/log"), False),
    (Rule(("get",), ("",), ("pods",), ("a",)), wish(name="a"), True),
    (Rule(("get",), ("",), ("pods",), ("a",)), wish(name="b"), False),
    (Rule(("list",), ("",), ("pods",), ("a",)), wish("list"), False),
    (Rule(("get",), ("",), ("pods",), ("*",)), wish(name="b"), False),
    (Rule(("*",), ("*",), ("*",)), AuthorizerAttributes("get", path="/healthz"), False),
    (Rule(("get",), paths=("/healthz",)), AuthorizerAttributes("get", path="/healthz"), True),
    (Rule(("get",), paths=("/healthz",)), AuthorizerAttributes("get", path="/healthz/etcd"), False),
    (Rule(("get",), paths=("/healthz*",)), AuthorizerAttributes("get", path="/healthz/etcd"), True),
    (Rule(("get",), paths=("/healthz/*",)), AuthorizerAttributes("get", path="/healthz"), False),
    (Rule(("get",), paths=("/*/x",)), AuthorizerAttributes("get", path="/a/x"), False),
    (Rule(("get",), paths=("*",)), AuthorizerAttributes("get", path="/a"), True),
    (Rule(("get",), paths=("*",)), wish(), False),
    (Rule(("*",), ("*",), ("*",)), wish("*", "*", "*"), True),
    (PODS, wish("*", "*", "*"), False),
]


@pytest.mark.parametrize(("rule", "asked", "allowed"), ALLOWS)
def test_rule_and_request(rule: Rule, asked: AuthorizerAttributes, allowed: bool) -> None:
    assert rules.allows(rule, asked) is allowed


COVERED = [
    ([PODS], [Rule(("get",), ("",), ("pods",))], []),
    ([PODS], [Rule(("get",), ("",), ("pods",), ("a",))], []),
    ([Rule(("get",), ("",), ("pods",), ("a",))], [PODS], ["get list"]),
    ([PODS, Rule(("delete",), ("",), ("pods",))], [Rule(("get", "delete"), ("",), ("pods",))], []),
    ([Rule(("*",), ("*",), ("*",))], [Rule(("x",), ("y",), ("z/w",), ("n",))], []),
    ([Rule(("get",), ("",), ("*/log",))], [Rule(("get",), ("",), ("pods/log",))], []),
    ([Rule(("get",), ("",), ("*/log",))], [Rule(("get",), ("",), ("pods",))], ["get"]),
    ([PODS], [Rule(("*",), ("",), ("pods",))], ["*"]),
    ([Rule(("get",), paths=("/a/*",))], [Rule(("get",), paths=("/a/b",))], []),
    ([Rule(("get",), paths=("/a/*",))], [Rule(("get",), paths=("/a",))], ["get"]),
    ([], [], []),
]


@pytest.mark.parametrize(("held", "wanted", "missing"), COVERED)
def test_rules_that_cover_rules(held: list[Rule], wanted: list[Rule], missing: list[str]) -> None:
    assert [" ".join(one.verbs) for one in rules.uncovered(held, wanted)] == missing


def test_what_is_missing_is_listed_as_upstream_lists_it() -> None:
    """Recorded from Kubernetes 1.37."""
    wanted = [
        Rule(("get", "delete"), ("", "apps"), ("pods", "pods/log"), ("x",)),
        Rule(("get",), paths=("/metrics",)),
    ]
    assert [str(one) for one in rules.uncovered([PODS], wanted)] == [
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["x"], Verbs:["delete"]}',
        '{APIGroups:[""], Resources:["pods/log"], ResourceNames:["x"], Verbs:["get" "delete"]}',
        '{APIGroups:["apps"], Resources:["pods"], ResourceNames:["x"], Verbs:["get" "delete"]}',
        '{APIGroups:["apps"], Resources:["pods/log"], ResourceNames:["x"], Verbs:["get" "delete"]}',
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
    ]


def _cube(size: int) -> Rule:
    return Rule(*(tuple(f"{letter}{number}" for number in range(size)) for letter in "vgr"))


def test_a_rule_of_half_a_million_permissions_is_compared_at_once() -> None:
    """A kilobyte of role: it took minutes when each permission was compared with each rule."""
    held = [Rule(_cube(79).verbs, (f"g{number}",), ("*",)) for number in range(80)]
    with counted() as steps:
        missing = rules.uncovered(held, [_cube(80)])
    assert steps.count < 5_000_000  # each permission looked at a few times; with each rule: 41 million
    assert {rule.verbs for rule in missing} == {("v79",)}
    assert len(missing) == 6_400


def test_more_than_anybody_waits_for_is_not_compared() -> None:
    with counted() as steps:
        with pytest.raises(rules.TooManyError):
            rules.uncovered([Rule(("x",), ("*",), ("*",))] * 50, [_cube(80)])
        with pytest.raises(rules.TooManyError):
            rules.uncovered([Rule(("x",), paths=("/a",))] * 1_000, [Rule(_cube(80).verbs, paths=_cube(80).groups)])
    assert steps.count < 10_000_000
    assert rules.uncovered([Rule(("*",), ("*",), ("*",))] * 50, [_cube(80)]) == []
