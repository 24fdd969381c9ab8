"""PriorityClass, and which class a group without a name gets (spec workload-api 3.5)."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.result import WriteResult
from kohort.api.scheduling.admission import resolve

CTX = Context.of("1.37")


def _class(name: str, value: int, **members: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **members,
    }


def _found(answer: WriteResult) -> list[tuple[str, str]]:
    return [(cause.kind.name, cause.field) for cause in answer.causes]


def test_of_several_global_defaults_the_smallest_value_counts() -> None:
    classes = [_class("a", 9, globalDefault=True), _class("b", 3, globalDefault=True), _class("c", 1)]
    found = resolve("", classes)
    assert found is not None
    assert (found.name, found.value) == ("b", 3)


def test_policy_is_defaulted_and_false_is_not_written() -> None:
    answer = admit.create(_class("gold", 7, globalDefault=False), CTX)
    assert answer.object == _class("gold", 7, preemptionPolicy="PreemptLowerPriority")


@pytest.mark.parametrize(
    ("obj", "wanted"),
    [
        (_class("gold", 1_000_000_001), [("FORBIDDEN", "value")]),
        (_class("gold", 1_000_000_000), []),
        (_class("system-mine", 1), [("FORBIDDEN", "metadata.name")]),
        (_class("system-node-critical", 2_000_001_000), []),
        (_class("gold", 1, preemptionPolicy="Sometimes"), [("NOT_SUPPORTED", "preemptionPolicy")]),
        (_class("gold", 1, metadata={"name": "gold", "namespace": "x"}), [("FORBIDDEN", "metadata.namespace")]),
    ],
)
def test_create(obj: Object, wanted: list[tuple[str, str]]) -> None:
    assert _found(admit.create(obj, CTX)) == wanted


def test_value_and_policy_never_change() -> None:
    new = _class("gold", 8, preemptionPolicy="Never", description="better")
    answer = admit.update(new, _class("gold", 7), CTX)
    assert _found(answer) == [("FORBIDDEN", "value"), ("FORBIDDEN", "preemptionPolicy")]
    assert admit.update(_class("gold", 7, description="better"), _class("gold", 7), CTX).accepted
