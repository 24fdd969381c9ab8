"""Revisions of StatefulSets and DaemonSets, as clients compare them."""

from __future__ import annotations

import json

from tests.controllermanager.build import owner

from kohort.controllermanager import history


def test_the_data_of_a_revision_is_written_as_go_writes_a_map() -> None:
    """`kubectl rollout history` and operators compare its bytes with their own encoding of the template."""
    one = owner("DaemonSet")
    one["spec"]["template"]["spec"]["containers"][0] = {"name": "c", "image": "i", "args": ["b", "a"]}
    data = history.data_of(one)
    assert json.dumps(data) == json.dumps(data, sort_keys=True)
    assert next(iter(data["spec"]["template"])) == "$patch"
    assert data["spec"]["template"]["spec"]["containers"][0]["args"] == ["b", "a"]
