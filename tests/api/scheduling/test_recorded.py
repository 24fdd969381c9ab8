"""What real API servers 1.35, 1.36 and 1.37 answered to writes of the scheduling kinds and of a pod's membership.

Same code, reason, details, causes (kind and field, in order), warnings; and the same stored object. Texts are ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.api.scheduling.player import SUFFIX, kind_at, rehearse, seen

from kohort.api.result import WriteResult

RECORDED = Path(__file__).parents[2] / "recorded"
MINORS = ("1.35", "1.36", "1.37")

# The cases that need more than admission, and why. Everything else is played below.
NOT_PLAYED: dict[str, dict[str, str]] = {
    "server-side apply, managedFields": {
        "1.35": "w-45 w-46",
        "1.36": "w-41 w-42",
        "1.37": "field-15 field-16 ssa-01 ssa-02 ssa-03 ssa-04 ssa-05 ssa-06 ssa-07 ssa-08 ssa-09 ssa-10 ssa-11 ssa-12 "
        "ssa-13 ssa-14 ssa-15 ssa-16 ssa-17 ssa-18 ssa-19 ssa-20 ssa-21 ssa-22 ssa-23 ssa-24 ssa-25 ssa-26 status-28",
    },
    "deleting: options, preconditions, finalizers, collections": {
        "1.35": "w-47",
        "1.36": "g-49",
        "1.37": "dry-06 dry-08 final-01 final-02 final-03 final-08 final-09 final-10 final-11 final-12 final-13 "
        "final-14 final-15 final-16 final-17 final-18 final-19 final-20",
    },
    "the controller manager runs": {
        "1.36": "final-01 final-02 final-03",
        "1.37": "final-31 final-32 final-33 final-34 final-35 final-36 final-37",
    },
    "lists, selectors, other representations of an object": {
        "1.37": "decode-38 list-01 list-02 list-03 list-04 list-06"
    },
    "discovery": {
        "1.35": "discover-1 discover-2",
        "1.36": "discover-1 discover-2",
        "1.37": "discover-1-v1beta1 discover-1-v1alpha3 discover-2-v1beta1 discover-2-v1alpha3 discover-3-v1beta1 "
        "discover-3-v1alpha3",
    },
    "tables: the cells are compared in test_columns": {
        "1.35": "table-01",
        "1.36": "table-01 table-02",
        "1.37": "table-01 table-02 table-03 table-04 table-05 table-06 table-07 table-08 table-09",
    },
    "reading the body: content types, cut off texts, keys given twice": {
        "1.37": "decode-23 decode-24 decode-25 decode-33 decode-34 field-06 patch-15"
    },
    "options of the request": {"1.37": "dry-04 field-04"},
    "routing: methods, addresses, namespaces, status of kinds without one": {
        "1.35": "w-48",
        "1.37": "meta-02 meta-03 meta-16 meta-17 status-20 status-21 status-22",
    },
    "a Deployment (its pod template's rule is in test_membership)": {"1.37": "pod-12"},
}


def _cases(minor: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((RECORDED / f"validation-{minor}.json").read_text())["cases"]
    return cases


def _listed(minor: str) -> list[str]:
    return [name for group in NOT_PLAYED.values() for name in group.get(minor, "").split()]


def _played(minor: str) -> list[dict[str, Any]]:
    left_out = set(_listed(minor))
    return [case for case in _cases(minor) if case["id"] not in left_out]


PLAYED = [pytest.param(case, id=f"{minor}-{case['id']}") for minor in MINORS for case in _played(minor)]
_POD = ("priority", "preemptionPolicy", "priorityClassName", "schedulingGroup", "workloadRef", "evictionResponders")


@pytest.mark.parametrize("minor", MINORS)
def test_every_case_is_played_or_listed_with_a_reason(minor: str) -> None:
    listed = _listed(minor)
    assert len(listed) == len(set(listed))
    every = [case["id"] for case in _cases(minor)]
    assert len(every) == len(set(every))
    assert set(listed) | {case["id"] for case in _played(minor)} == set(every)


def test_all_98_rows_of_section_7_are_among_the_played() -> None:
    rows = {str(case.id).partition("-s7-")[2][:3] for case in PLAYED if "-s7-" in str(case.id)}
    assert rows == {f"{row:03}" for row in range(1, 99)}


@pytest.mark.parametrize("case", PLAYED)
def test_recorded(case: dict[str, Any]) -> None:
    _compare(case, rehearse(case).play(case["request"]))


def _sibling(case: dict[str, Any]) -> dict[str, Any]:
    """The same case, sent as the other version of 1.37."""
    text = json.dumps(case)
    other: dict[str, Any] = json.loads(text.replace("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"))
    return other


SIBLINGS = [
    pytest.param(_sibling(case), id=case["id"])
    for case in _played("1.37")
    if "v1alpha3" not in json.dumps(case)
    and "/v1beta1" in case["request"]["path"]
    and case["id"] != "s7-080"  # it says that v1beta1 has no CompositePodGroup; v1alpha3 has
]


@pytest.mark.parametrize("case", SIBLINGS)
def test_v1alpha3_answers_as_v1beta1(case: dict[str, Any]) -> None:
    _compare(case, rehearse(case).play(case["request"]))


def _compare(case: dict[str, Any], answer: WriteResult) -> None:
    wanted = case["answer"]
    assert (answer.code, answer.reason) == (wanted["code"], wanted.get("reason", "")), answer.message
    causes = [(str(cause.kind), cause.field) for cause in answer.causes]
    assert causes == [(cause["reason"], cause["field"]) for cause in wanted.get("causes", [])]
    assert list(answer.warnings) == wanted.get("warnings", [])
    if answer.code != 400:
        about = {name: text.replace(SUFFIX, "?????") for name, text in answer.about}
        assert about == (wanted.get("details") or {})
    if "object" in wanted:
        assert answer.object is not None
        kind = kind_at(case["request"]["path"])
        assert kind is not None
        shown = seen(kind, answer.object)
        if kind.kind == "Pod":  # the recordings show this much of a pod
            shown["spec"] = {name: value for name, value in shown["spec"].items() if name in _POD}
            shown["status"] = {"phase": shown["status"]["phase"]}
        assert shown == wanted["object"]
