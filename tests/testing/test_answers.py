"""What is kept of an answer, and what is not because it differs from run to run."""

import json
from typing import Any

from tests.support.answers import expand, normalise

from kohort.testing.client import Response

UID = "0f8b4c1e-1111-2222-3333-444455556666"


def answered(
    body: Any, code: int = 200, headers: list[tuple[str, str]] | None = None, **options: Any
) -> dict[str, Any]:
    return normalise(Response(code, json.dumps(body).encode(), headers or []), **options)


def test_an_object_loses_what_only_this_run_had() -> None:
    metadata = {"name": "a", "uid": UID, "resourceVersion": "7", "creationTimestamp": "t", "deletionTimestamp": "t2"}
    fields = {"managedFields": [{"manager": "m", "time": "t"}]}
    body = {"kind": "Workload", "metadata": {**metadata, **fields}, "spec": {}}
    assert answered(body)["object"]["metadata"] == {"name": "a", "deletionTimestamp": "<time>"}
    assert answered(body, managed_fields=True)["object"]["metadata"]["managedFields"] == [{"manager": "m"}]


def test_a_status_keeps_its_causes_apart() -> None:
    cause = {"reason": "FieldValueInvalid", "message": f'Invalid value: "{UID}"', "field": "metadata.uid"}
    details = {"name": "a", "kind": "Workload", "uid": UID, "causes": [cause]}
    body = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Invalid",
        "message": "at 2026-11-01T08:00:00Z",
        "code": 422,
    }
    assert answered({**body, "details": details}, 422) == {
        "code": 422,
        "status": "Failure",
        "reason": "Invalid",
        "message": "at <time>",
        "details": {"name": "a", "kind": "Workload", "uid": "<uid>"},
        "causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": 'Invalid value: "<uid>"'}],
    }


def test_versions_in_texts() -> None:
    text = 'the ResourceVersion in record (41) of {"resourceVersion":"42"}'
    message = answered({"kind": "Status", "message": text})["message"]
    assert message == 'the ResourceVersion in record (<version>) of {"resourceVersion":"<version>"}'


def test_generated_names_end_in_question_marks_wherever_they_stand() -> None:
    body = {"kind": "Status", "message": 'Workload "n-x2x4z" is invalid: "n-"', "details": {"name": "n-x2x4z"}}
    kept = answered(body, 422, generate_name="n-")
    assert kept["message"] == 'Workload "n-?????" is invalid: "n-"'
    assert kept["details"]["name"] == "n-?????"


def test_a_pod_shows_only_our_subject() -> None:
    spec = {"containers": [], "priority": 0, "schedulingGroup": {"podGroupName": "g"}}
    body = {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": {"phase": "Pending", "qosClass": "x"}}
    kept = answered(body)["object"]
    assert kept["spec"] == {"priority": 0, "schedulingGroup": {"podGroupName": "g"}}
    assert kept["status"] == {"phase": "Pending"}


def test_a_table_has_no_ages_and_no_descriptions() -> None:
    columns = [{"name": "Name", "description": "long"}, {"name": "Age", "description": "long"}]
    rows = [{"cells": ["a", "5s"], "object": None}]
    table = answered({"kind": "Table", "columnDefinitions": columns, "rows": rows})["table"]
    assert table == {"columns": [{"name": "Name"}, {"name": "Age"}], "rows": [{"cells": ["a", "<age>"]}]}


def test_lists_texts_and_warnings() -> None:
    items = {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}
    assert answered(items)["object"] == {"kind": "PodList", "items": []}
    warning = [("Warning", '299 - "unknown field \\"spec.colour\\""')]
    assert answered({}, headers=warning)["warnings"] == ['unknown field "spec.colour"']
    assert normalise(Response(404, b"404 page not found")) == {"code": 404, "text": "404 page not found"}


def test_long_repetitions_are_written_short_both_ways() -> None:
    assert expand({"a": ["<repeat:x:3>!"]}) == {"a": ["xxx!"]}
    assert answered({"kind": "X", "text": "y" * 1500})["object"]["text"] == "<repeat:y:1500>"
