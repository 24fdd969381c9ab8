"""The three patches: examples of their standards, and the strategies of Kubernetes' own types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.steps import counted

from kohort.api.patch import PatchError, json_patch, merge, strategic

POD = "io.k8s.api.core.v1.Pod"


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 7396, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge(target: Any, patch: Any, result: Any) -> None:
    assert merge(target, patch) == result


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [  # RFC 6902, appendix A
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["a", "c"]}, [{"op": "add", "path": "/foo/1", "value": "b"}], {"foo": ["a", "b", "c"]}),
        ({"foo": ["a"]}, [{"op": "add", "path": "/foo/-", "value": "b"}], {"foo": ["a", "b"]}),
        ({"foo": 1, "bar": 2}, [{"op": "remove", "path": "/bar"}], {"foo": 1}),
        ({"foo": [1, 2, 3]}, [{"op": "remove", "path": "/foo/1"}], {"foo": [1, 3]}),
        ({"foo": 1}, [{"op": "replace", "path": "/foo", "value": None}], {"foo": None}),
        ({"a": {"b": 1}, "c": {}}, [{"op": "move", "from": "/a/b", "path": "/c/d"}], {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2]}, [{"op": "move", "from": "/a/0", "path": "/a/1"}], {"a": [2, 1]}),
        ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
        ({"a/b": 1, "m~n": 2}, [{"op": "test", "path": "/a~1b", "value": 1}], {"a/b": 1, "m~n": 2}),
        ({"m~n": 2}, [{"op": "replace", "path": "/m~0n", "value": 3}], {"m~n": 3}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
        ({"a": 1}, [{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}),  # as real servers do
    ],
)
def test_json_patch(target: Any, patch: Any, result: Any) -> None:
    assert json_patch(target, patch) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "replace", "path": "/b/c", "value": 2},
        {"op": "replace", "path": "/list/5", "value": 2},
        {"op": "remove", "path": "/list/5"},
        {"op": "add", "path": "/list/3", "value": 2},
        {"op": "add", "path": "/b/c", "value": 2},
        {"op": "remove", "path": ""},
        {"op": "paint", "path": "/a"},
        {"op": "add", "path": "a", "value": 2},
        {"op": "move", "path": "/a"},
    ],
)
def test_json_patch_that_does_not_apply(operation: dict[str, Any]) -> None:
    target = {"a": 1, "list": [1, 2]}
    with pytest.raises(PatchError) as caught:
        json_patch(target, [operation])
    assert not caught.value.malformed
    assert target == {"a": 1, "list": [1, 2]}


@pytest.mark.parametrize("body", [{}, "x", ["x"]])
def test_json_patch_that_is_none(body: Any) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch({}, body)
    assert caught.value.malformed


def _pod(target: Any, patch: Any) -> Any:
    return strategic({"spec": target}, {"spec": patch}, POD, "1.37")["spec"]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        (
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
            {"containers": [{"name": "b", "image": "2"}]},
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]},
        ),
        (  # a new item comes before stored ones
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "z"}]},
            {"containers": [{"name": "z"}, {"name": "a"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"$patch": "replace"}, {"name": "c"}]},
            {"containers": [{"name": "c"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b", "tty": True}]},
            {"containers": [{"name": "b", "tty": True}, {"name": "a"}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),  # atomic
        ({"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"a": None}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"$patch": "replace", "c": "3"}}, {"nodeSelector": {"c": "3"}}),
        ({"securityContext": {"runAsUser": 1}}, {"securityContext": {"$patch": "delete"}}, {"securityContext": {}}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]},
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
        ),
        ({"priority": 1}, {"priority": 4.0}, {"priority": 4}),
    ],
)
def test_strategic(target: Any, patch: Any, result: Any) -> None:
    assert _pod(target, patch) == result


def test_strategic_finalizers_are_a_set() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic(target, {"metadata": {"finalizers": ["c"]}}, POD, "1.37")
    assert sorted(added["metadata"]["finalizers"]) == ["a", "b", "c"]
    less = strategic(target, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, POD, "1.37")
    assert less == {"metadata": {"finalizers": ["b"]}}


def test_strategic_needs_the_key() -> None:
    with pytest.raises(PatchError, match="name"):
        _pod({"containers": []}, {"containers": [{"image": "x"}]})
    with pytest.raises(PatchError) as caught:
        strategic({}, [], POD, "1.37")
    assert caught.value.malformed


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_merging_twice_is_merging_once(target: Any, patch: Any) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once


@given(_JSON, _JSON)
def test_replacing_the_whole_document_always_works(target: Any, value: Any) -> None:
    assert json_patch(target, [{"op": "replace", "path": "", "value": value}]) == value


def test_long_lists_are_merged_in_linear_time() -> None:
    """20,000 of each: minutes, if each item were looked for in a list."""
    many = 20_000
    refs = [{"uid": str(index), "name": "a"} for index in range(many)]
    later = [{"uid": str(index), "name": "b"} for index in range(many // 2, many * 3 // 2)]
    marks = [f"f/{index}" for index in range(many)]
    new = [f"f/{index}" for index in range(many // 2, many * 3 // 2)]
    meta = {"ownerReferences": refs, "finalizers": marks}
    change = {
        "ownerReferences": later,
        "finalizers": new,
        "$setElementOrder/finalizers": new,
        "$deleteFromPrimitiveList/finalizers": marks[: many // 4],
    }
    with counted() as steps:
        merged = strategic({"metadata": meta}, {"metadata": change}, POD, "1.37")["metadata"]
    assert steps.count < 400 * many
    assert len(merged["ownerReferences"]) == many * 3 // 2
    assert {item["name"] for item in merged["ownerReferences"][many // 2 :]} == {"b"}
    assert merged["finalizers"] == [f"f/{index}" for index in range(many // 4, many * 3 // 2)]


@pytest.mark.parametrize(
    "patch",
    [
        {"$setElementOrder/containers": 5, "containers": [{"name": "a"}]},
        {"$deleteFromPrimitiveList/x": 5},
        {"$retainKeys": 5},
        {"$setElementOrder/containers": {"a": 1}, "containers": [{"name": "a"}]},
    ],
)
def test_a_directive_of_another_type_does_not_apply(patch: Any) -> None:
    with pytest.raises(PatchError, match="expected a list"):
        _pod({"containers": [{"name": "a"}]}, patch)
