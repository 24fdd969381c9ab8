"""A small JSON patch may not make a large object, nor keep a server busy."""

from typing import Any

import pytest
from tests.server.talk import Talk

from kohort.api.json_patch import MAX_COPIED, MAX_OPERATIONS, PatchError, json_patch


def test_copies_are_limited_in_bytes_of_json() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/x{number}"} for number in range(26)]
    with pytest.raises(PatchError, match=f"exceeding the limit {MAX_COPIED}") as caught:
        json_patch({"a": {"b": "c" * 100}}, doubling)
    assert not caught.value.too_large
    assert not caught.value.malformed


def test_copies_up_to_the_limit_are_made() -> None:
    item = "c" * (1 << 20)
    copies = [{"op": "copy", "from": "/a", "path": f"/b{number}"} for number in range(2)]
    assert len(json_patch({"a": item}, copies)) == 3
    third = {"op": "copy", "from": "/a", "path": "/b2"}
    with pytest.raises(PatchError, match="accumulated size increase of copy is 3145734"):
        json_patch({"a": item}, [*copies, third])


def test_operations_are_limited() -> None:
    same = {"op": "test", "path": "/a", "value": 1}
    assert json_patch({"a": 1}, [same] * MAX_OPERATIONS) == {"a": 1}
    with pytest.raises(PatchError, match="maximum operations in a JSON patch is 10000, got 10001") as caught:
        json_patch({"a": 1}, [same] * (MAX_OPERATIONS + 1))
    assert caught.value.too_large


@pytest.mark.parametrize("then", [[], [{"op": "copy", "from": "/n", "path": "/c"}]])
def test_moves_that_nest_without_end_are_refused(then: list[Any]) -> None:
    turns = [{"op": "add", "path": "/n", "value": {}}]
    for _ in range(3_000):
        turns += [
            {"op": "add", "path": "/m", "value": {}},
            {"op": "move", "from": "/n", "path": "/m/n"},
            {"op": "move", "from": "/m", "path": "/n"},
        ]
    with pytest.raises(PatchError, match="nested deeper than 200 levels"):
        json_patch({}, [*turns, *then])


def test_insertions_at_the_front_of_a_long_list_are_limited() -> None:
    insert = [{"op": "add", "path": "/a/0", "value": 1}] * MAX_OPERATIONS
    with pytest.raises(PatchError, match="move more than"):
        json_patch({"a": [1] * 500_000}, insert)


@pytest.mark.parametrize("index", ["9" * 5_000, "\u0663" * 5_000, "-1", "1e1"])
def test_an_index_that_is_none_does_not_apply(index: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch({"a": [1]}, [{"op": "replace", "path": f"/a/{index}", "value": 2}])
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("verb", [[], {}, None, 1])
def test_an_operation_that_is_no_word_does_not_apply(verb: Any) -> None:
    with pytest.raises(PatchError, match="accepted are add"):
        json_patch({"a": 1}, [{"op": verb, "path": "/a"}])


def test_the_answers_of_a_server() -> None:
    talk = Talk()
    try:
        talk.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
        path = "/api/v1/namespaces/default/configmaps"
        talk.create(path, {"metadata": {"name": "a"}, "data": {"k": "v" * 100}})
        media = "application/json-patch+json"
        doubling = [{"op": "copy", "from": "/data", "path": f"/data/x{number}"} for number in range(26)]
        found = talk.request("PATCH", f"{path}/a", doubling, content_type=media)
        assert found.code == 422
        assert found.json()["message"] == "the server rejected our request due to an error in our request"
        many = [{"op": "test", "path": "/data/k", "value": "v"}] * 10_001
        found = talk.request("PATCH", f"{path}/a", many, content_type=media)
        assert (found.code, found.json()["reason"]) == (413, "RequestEntityTooLarge")
        text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
        assert found.json()["message"] == text
    finally:
        talk.close()
