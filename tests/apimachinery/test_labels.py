from __future__ import annotations

from typing import Any

import pytest

from kohort.apimachinery.labels import holds, matches, meets, node_meets_term, tolerates


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {"a": "b"}, False),
        ({}, {}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "x"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {}, True),
        ({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}, {"a": "b"}, False),
    ],
)
def test_label_selector(selector: dict[str, Any] | None, labels: dict[str, str], expected: bool) -> None:
    assert matches(selector, labels) is expected


@pytest.mark.parametrize(
    ("operator", "values", "value", "expected"),
    [
        ("Gt", ["5"], "6", True),
        ("Gt", ["5"], "5", False),
        ("Lt", ["5"], "4", True),
        ("Lt", ["5"], "many", False),
        ("Gt", [], "6", False),
        ("Exists", [], "", True),
        ("DoesNotExist", [], None, True),
        ("DoesNotExist", [], "x", False),
    ],
)
def test_requirement(operator: str, values: list[str], value: str | None, expected: bool) -> None:
    labels = {} if value is None else {"k": value}
    assert meets({"key": "k", "operator": operator, "values": values}, labels) is expected


def test_an_empty_node_selector_term_matches_nothing() -> None:
    assert not node_meets_term({}, {"a": "b"}, "n1")
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert node_meets_term(field, {}, "n1")
    assert not node_meets_term(field, {}, "n2")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"key": "gpu", "value": "yes", "effect": "NoExecute"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], expected: bool) -> None:
    assert tolerates([toleration], {"key": "gpu", "value": "yes", "effect": "NoSchedule"}) is expected


def test_numeric_tolerations_compare_the_taint() -> None:
    taint = {"key": "sla", "value": "950", "effect": "NoSchedule"}
    assert tolerates([{"key": "sla", "operator": "Gt", "value": "900"}], taint)
    assert not tolerates([{"key": "sla", "operator": "Lt", "value": "900"}], taint)


@pytest.mark.parametrize(
    "rule", [{}, {"key": "a"}, {"operator": "In"}, {"key": None, "operator": None}, {"key": "a", "operator": "Is"}]
)
def test_a_requirement_that_is_not_valid_holds_for_nothing(rule: dict[str, Any]) -> None:
    """Rules that compare selectors also see objects that other rules refuse."""
    assert not matches({"matchExpressions": [rule]}, {"a": "b"})


class _Values(list[str]):
    """A long list that nobody should go through."""

    def __contains__(self, _: object) -> bool:
        raise AssertionError


def test_a_label_that_is_not_there_is_not_looked_for_in_long_lists() -> None:
    assert not holds("In", None, _Values(["a"]))
    assert holds("NotIn", None, _Values(["a"]))
