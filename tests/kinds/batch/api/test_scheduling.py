"""Rules of a Job's scheduling block (spec job 4.1 to 4.3, 8.6)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.kinds.batch.api.build import BASIC, created, cronjob, fields, gang, indexed, job, updated

from kohort.api.errors import ErrorKind
from kohort.api.kind import Context
from kohort.api.releases import Gate, default_gates

Object = dict[str, Any]
LEAST = "spec.scheduling.schedulingPolicy.gang.minCount"
POLICY = "spec.scheduling.schedulingPolicy"
GATE_OFF = Context.of("1.37", default_gates("1.37") - {Gate.JOB})


def with_block(obj: Object, block: Object | None) -> Object:
    new = deepcopy(obj)
    spec = new["spec"].get("jobTemplate", new)["spec"]
    if block is None:
        spec.pop("scheduling", None)
    else:
        spec["scheduling"] = block
    return new


@pytest.mark.parametrize(
    ("parallelism", "least", "expected"),
    [(4, 5, [LEAST]), (None, 2, [LEAST]), (4, 0, [LEAST]), (4, 4, []), (4, None, []), (0, 1, [LEAST]), (0, None, [])],
)
def test_t_70_t_71_minimum_within_parallelism(parallelism: int | None, least: int | None, expected: list[str]) -> None:
    spec: Object = {"scheduling": gang(least)}
    if parallelism is not None:
        spec["parallelism"] = parallelism
    assert fields(created(job(**spec))) == expected


@pytest.mark.parametrize(
    ("parallelism", "least", "expected"), [(3, 4, [LEAST]), (3, 3, []), (0, 2, [LEAST]), (6, None, []), (0, None, [])]
)
def test_t_72_updates_of_both(parallelism: int, least: int | None, expected: list[str]) -> None:
    old = job(parallelism=6, scheduling=gang(4))
    assert fields(updated(job(parallelism=parallelism, scheduling=gang(least)), old)) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"schedulingPolicy": {}}, [POLICY]),
        ({"schedulingPolicy": {"basic": {}, "gang": {}}}, [POLICY]),
        ({"disruptionMode": {}}, ["spec.scheduling.disruptionMode"]),
        (gang(disruptionMode={"single": {}, "all": {}}), ["spec.scheduling.disruptionMode"]),
        ({"schedulingPolicy": None}, []),
        ({}, []),
    ],
)
def test_t_73_unions(block: Object, expected: list[str]) -> None:
    assert fields(created(indexed(scheduling=block))) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"disruptionMode": {"all": {}}}, ["spec.scheduling.disruptionMode"]),
        ({**BASIC, "disruptionMode": {"all": {}}}, ["spec.scheduling.disruptionMode"]),
        (gang(disruptionMode={"all": {}}), []),
        ({**BASIC, "disruptionMode": {"single": {}}}, []),
    ],
)
def test_t_74_mode_all_needs_a_gang(block: Object, expected: list[str]) -> None:
    assert fields(created(indexed(scheduling=block))) == expected


@pytest.mark.parametrize(("before", "after"), [(BASIC, gang(2)), (gang(2), BASIC)])
def test_t_75_the_sort_of_policy(before: Object, after: Object) -> None:
    """A Job keeps it; a CronJob's next run may have another."""
    obj = job(parallelism=3)
    assert fields(updated(with_block(obj, after), with_block(obj, before))) == [POLICY]
    nightly = cronjob()
    assert fields(updated(with_block(nightly, after), with_block(nightly, before))) == []


def test_t_75_a_cronjobs_minimum_is_bounded_too() -> None:
    old = with_block(cronjob(), gang(2))
    place = "spec.jobTemplate.spec.scheduling.schedulingPolicy.gang.minCount"
    assert fields(updated(with_block(cronjob(), gang(4)), old)) == [place]
    assert fields(updated(with_block(cronjob(), gang(3)), old)) == []


@pytest.mark.parametrize("obj", [job(parallelism=3), cronjob()], ids=["Job", "CronJob"])
@pytest.mark.parametrize(("before", "after"), [(None, gang()), (gang(), None), (None, {})])
def test_t_76_the_block_neither_comes_nor_goes(obj: Object, before: Object | None, after: Object | None) -> None:
    root = "spec.jobTemplate.spec" if obj["kind"] == "CronJob" else "spec"
    assert fields(updated(with_block(obj, after), with_block(obj, before))) == [f"{root}.scheduling"]


WHOLE = gang(
    disruptionMode={"all": {}},
    schedulingConstraints={"topology": [{"key": "example.com/rack"}]},
    resourceClaims=[{"name": "nic", "resourceClaimName": "n1"}],
)


@pytest.mark.parametrize("obj", [job(parallelism=3), cronjob()], ids=["Job", "CronJob"])
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("disruptionMode", {"single": {}}),
        ("disruptionMode", None),
        ("schedulingConstraints", {"topology": [{"key": "example.com/row"}]}),
        ("schedulingConstraints", None),
        ("resourceClaims", []),
        ("resourceClaims", [{"name": "nic", "resourceClaimName": "n2"}]),
    ],
)
def test_t_76_the_rest_never_changes(obj: Object, member: str, value: Any) -> None:
    changed = {**WHOLE, member: value}
    found = fields(updated(with_block(obj, changed), with_block(obj, WHOLE)))
    assert [field.rpartition(".")[2] for field in found] == [member]


@pytest.mark.parametrize(
    ("block", "place", "kind"),
    [
        (
            {"schedulingConstraints": {"topology": [{"key": "a.b/c"}, {"key": "a.b/d"}]}},
            "schedulingConstraints.topology",
            ErrorKind.TOO_MANY,
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": ""}]}},
            "schedulingConstraints.topology[0].key",
            ErrorKind.REQUIRED,
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "not a key"}]}},
            "schedulingConstraints.topology[0].key",
            ErrorKind.INVALID,
        ),
        (
            {"resourceClaims": [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(5)]},
            "resourceClaims",
            ErrorKind.TOO_MANY,
        ),
        ({"resourceClaims": [{"name": "n", "resourceClaimName": "x"}] * 2}, "resourceClaims[1]", ErrorKind.DUPLICATE),
        ({"resourceClaims": [{"name": "n"}]}, "resourceClaims[0]", ErrorKind.INVALID),
    ],
)
def test_t_77_topology_and_claims(block: Object, place: str, kind: ErrorKind) -> None:
    answer = created(indexed(scheduling={**gang(), **block}))
    assert [(cause.field, cause.kind) for cause in answer.causes] == [(f"spec.scheduling.{place}", kind)]


def test_t_78_completions_of_an_elastic_job() -> None:
    assert fields(updated(indexed(4, completions=6), indexed(4))) == ["spec.completions"]
    assert fields(updated(indexed(6), indexed(4))) == []
    assert fields(updated(job(parallelism=2, completions=2), job(parallelism=2, completions=4))) == ["spec.completions"]


def test_t_14_gate_off_drops_the_block() -> None:
    answer = created(job(parallelism=3, scheduling=gang(9)), ctx=GATE_OFF)
    assert answer.object is not None
    assert "scheduling" not in answer.object["spec"]


def test_t_79_gate_off_keeps_a_stored_block() -> None:
    old = job(parallelism=3, scheduling=gang())
    kept = updated(job(parallelism=5, scheduling=gang()), old, ctx=GATE_OFF)
    assert kept.object is not None
    assert kept.object["spec"]["scheduling"] == gang()
    assert fields(updated(job(parallelism=3, scheduling=gang(2)), old, ctx=GATE_OFF)) == ["spec.scheduling"]
    assert fields(updated(job(parallelism=3), old, ctx=GATE_OFF)) == ["spec.scheduling"]


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
def test_older_servers_do_not_know_the_block(minor: str) -> None:
    answer = created(job(scheduling=gang()), minor)
    assert answer.object is not None
    assert "scheduling" not in answer.object["spec"]
    assert answer.warnings == ('unknown field "spec.scheduling"',)


def test_t_15_group_and_block_together_are_accepted() -> None:
    answer = created(job(parallelism=2, scheduling=gang(2), pod={"schedulingGroup": {"podGroupName": "ext"}}))
    assert answer.code == 201
    assert any("ignored" in text for text in answer.warnings)
