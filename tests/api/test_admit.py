"""Admission as a whole, where no recorded case looks: documents for `check`, CRDs, and bodies nobody would write."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.api import admit, storage_form
from kohort.api.kind import Context, Kind, Object
from kohort.api.registry import every_kind, find
from kohort.api.schema import Arr, Int, Map, Obj, Str

CTX = Context.of("1.37")
GANG: Object = {"gang": {"minCount": 2}}


def _workload(*templates: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "nightly"},
        "spec": {"podGroupTemplates": list(templates), **spec},
    }


def _fields(found: list[Any]) -> list[tuple[str, str]]:
    return [(error.kind.name, error.field) for error in found]


def test_check_reports_everything_at_once() -> None:
    wrong = _workload({"name": "A_", "schedulingPolicy": {}, "colour": "red"}, mood="good")
    wrong["metadata"] = {"name": "Nightly", "labels": {"-": "x"}}
    assert _fields(admit.check(wrong, CTX)) == [
        ("UNKNOWN", "spec.podGroupTemplates[0].colour"),
        ("UNKNOWN", "spec.mood"),
        ("INVALID", "metadata.name"),
        ("INVALID", "metadata.labels"),
        ("INVALID", "spec.podGroupTemplates[0].name"),
        ("INVALID", "spec.podGroupTemplates[0].schedulingPolicy"),
    ]


def test_check_stops_at_a_shape_that_cannot_be_judged() -> None:
    wrong = _workload({"name": 7, "schedulingPolicy": {"gang": {"minCount": "2"}}}, mood="good")
    assert _fields(admit.check(wrong, CTX)) == [
        ("DECODE", "spec.podGroupTemplates[0].name"),
        ("DECODE", "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount"),
        ("UNKNOWN", "spec.mood"),
    ]


def test_check_takes_a_generated_name_and_leaves_the_document_alone() -> None:
    document = _workload({"name": "a", "schedulingPolicy": GANG})
    document["metadata"] = {"generateName": "nightly-"}
    before = deepcopy(document)
    assert admit.check(document, CTX) == []
    assert document == before


def test_check_of_an_unknown_kind_says_so() -> None:
    assert _fields(admit.check({"apiVersion": "v9", "kind": "Thing"}, CTX)) == [("INVALID", "kind")]


def test_a_kind_of_another_minor_is_not_served() -> None:
    old = {**_workload(), "apiVersion": "scheduling.k8s.io/v1alpha1"}
    assert admit.create(old, CTX).code == 404


def test_without_a_name_ending_the_object_has_none() -> None:
    document = _workload({"name": "a", "schedulingPolicy": GANG})
    document["metadata"] = {"generateName": "nightly-"}
    answer = admit.create(document, CTX)
    assert answer.object is not None
    assert "name" not in answer.object["metadata"]


def test_a_refusal_as_a_status() -> None:
    answer = admit.create(_workload({"name": "a", "schedulingPolicy": {"gang": {}}}), CTX)
    assert answer.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Workload.scheduling.k8s.io "nightly" is invalid: '
        "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount: Required value",
        "reason": "Invalid",
        "details": {
            "name": "nightly",
            "group": "scheduling.k8s.io",
            "kind": "Workload",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": "Required value",
                    "field": "spec.podGroupTemplates[0].schedulingPolicy.gang.minCount",
                }
            ],
        },
        "code": 422,
    }


# ---- a kind that comes as a CRD

CRD = Kind(
    group="example.org",
    version="v1",
    kind="Widget",
    plural="widgets",
    schema=Obj(
        fields={
            "spec": Obj(
                fields={"size": Int(default=1), "tags": Arr(item=Str()), "note": Str(), "by": Map(value=Str())}
            ),
            "status": Obj(fields={"ready": Int()}),
        }
    ),
)


def _widget(**spec: Any) -> Object:
    return {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def test_a_crd_keeps_empty_values_and_loses_unknown_fields_and_status() -> None:
    body = _widget(tags=[], note="", by={}, colour="red") | {"status": {"ready": 3}}
    answer = admit.create(body, CTX, kind=CRD)
    assert answer.object is not None
    assert answer.object["spec"] == {"size": 1, "tags": [], "note": "", "by": {}}
    assert "status" not in answer.object
    assert answer.object["metadata"]["generation"] == 1
    assert answer.warnings == ('unknown field "spec.colour"',)


def test_a_crd_counts_changes_and_needs_the_version() -> None:
    old = admit.create(_widget(size=1), CTX, kind=CRD).object
    assert old is not None
    old["metadata"]["resourceVersion"] = "5"
    assert admit.update(_widget(size=2), old, CTX, kind=CRD).code == 422
    new = _widget(size=2)
    new["metadata"]["resourceVersion"] = "5"
    answer = admit.update(new, old, CTX, kind=CRD)
    assert answer.object is not None
    assert answer.object["metadata"]["generation"] == 2


def test_strategic_merge_patch_is_not_for_crds() -> None:
    answer = admit.patch({}, _widget(), CTX, kind=CRD, content_type="application/strategic-merge-patch+json")
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")


# ---- whatever is sent, there is an answer

_VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 3, 2**40, 1.5, True, "", "a", "A_", [], [None], {}, {"a": 1}, [{}], ["a"]]
)
_FULL: Object = {
    "1.35": {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "w", "labels": {"a": "b"}, "finalizers": ["x.org/y"]},
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
            "podGroups": [{"name": "a", "policy": {"gang": {"minCount": 2}}}],
        },
    },
    "1.36": {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]},
        "spec": {
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "a"}},
            "schedulingPolicy": GANG,
            "disruptionMode": "Pod",
            "priorityClassName": "",
        },
        "status": {"conditions": [{"type": "A", "status": "True", "reason": "B", "message": ""}]},
    },
    "1.37": _workload(
        compositePodGroupTemplates=[
            {
                "name": "r",
                "schedulingPolicy": {"gang": {"minGroupCount": 1}},
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
                "disruptionMode": {"all": {}},
                "podGroupTemplates": [
                    {
                        "name": "a",
                        "schedulingPolicy": GANG,
                        "resourceClaims": [{"name": "c", "resourceClaimName": "x"}],
                        "priority": 3,
                    }
                ],
                "compositePodGroupTemplates": [
                    {"name": "s", "schedulingPolicy": {"basic": {}}, "podGroupTemplates": []}
                ],
            }
        ]
    ),
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for step, inner in steps for place in [(*path, step), *_places(inner, (*path, step))]]


def _replaced(document: Object, place: tuple[Any, ...], value: Any) -> Object:
    changed = deepcopy(document)
    inner: Any = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = deepcopy(value)
    return changed


@st.composite
def _bodies(draw: st.DrawFn) -> tuple[str, Object]:
    minor = draw(st.sampled_from(list(_FULL)))
    body = _FULL[minor]
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _places(body) if place[0] not in ("apiVersion", "kind")]
        body = _replaced(body, draw(st.sampled_from(places)), draw(_VALUES))
    return minor, body


@settings(max_examples=300, deadline=None)
@given(_bodies())
def test_no_body_breaks_admission(given_body: tuple[str, Object]) -> None:
    minor, body = given_body
    ctx = Context.of(minor)
    before = deepcopy(body)
    answer = admit.create(body, ctx)
    assert body == before
    assert answer.accepted == (answer.code == 201)
    assert answer.accepted or answer.message
    complaints = [error for error in admit.check(body, ctx) if error.kind.name != "UNKNOWN"]
    if answer.code in (400, 422):
        assert complaints
    if answer.object is not None:
        kind = find(body["apiVersion"], body["kind"])
        assert kind is not None
        assert complaints == []
        # What is kept is a fixed point: keeping, defaulting and updating it again changes nothing.
        assert storage_form.to_storage(kind, answer.object, minor) == answer.object
        assert admit.defaulted(answer.object, kind, ctx) == answer.object
        again = deepcopy(answer.object)
        answer.object["metadata"]["resourceVersion"] = again["metadata"]["resourceVersion"] = "1"
        repeated = admit.update(again, answer.object, ctx)
        assert repeated.object == answer.object, repeated.message


def test_every_kind_has_its_names() -> None:
    seen = set()
    for kind in every_kind():
        key = (kind.group, kind.version, kind.plural)
        assert key not in seen
        seen.add(key)
        assert kind.kind
        assert kind.plural == kind.plural.lower()


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
def test_composites_are_only_in_v1alpha3(version: str) -> None:
    found = find(f"scheduling.k8s.io/{version}", "CompositePodGroup")
    assert (found is not None) == (version == "v1alpha3")


def test_an_update_shares_only_members_that_are_the_same_to_the_letter() -> None:
    stored: Object = {"metadata": {"name": "a"}, "spec": {"suspend": True, "parallelism": 1}}
    sent = deepcopy(stored)
    assert all(admit.sharing(sent, stored)[name] is stored[name] for name in stored)
    sent["spec"]["suspend"] = 1  # Python takes it for true, and a decoder does not
    shared = admit.sharing(sent, stored)
    assert shared["metadata"] is stored["metadata"]
    assert shared["spec"] is sent["spec"]
