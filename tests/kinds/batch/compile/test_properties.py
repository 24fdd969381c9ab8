"""What holds for every valid Job, whatever its shape."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.batch.compile.build import DELEGATED, UID, job, owner, template, workload
from tests.support.plancheck import check_plan

from kohort.api import admit
from kohort.api.errors import ErrorKind
from kohort.api.kind import Context
from kohort.gang.compile import CompileContext, Lookup
from kohort.gang.compile.builder import Builder, Config, Item
from kohort.gang.render import render
from kohort.gang.settings import SettingsByKind
from kohort.kinds.batch.api.cronjob import CRONJOB
from kohort.kinds.batch.api.job import JOB
from kohort.kinds.batch.api.scheduling import check_scheduling
from kohort.kinds.batch.api.validation import check_job_spec
from kohort.kinds.batch.compile.cronjob import compile_object as compile_cronjob
from kohort.kinds.batch.compile.job import compile_object
from kohort.kinds.batch.settings import JobSettings

Object = dict[str, Any]
SHORT = settings(max_examples=50, deadline=None)
MINORS = st.sampled_from(["1.35", "1.36", "1.37"])
NAMES = st.sampled_from(["a", "trainer", "nightly.report", "x" * 57, "y" * 63])
POLICIES: st.SearchStrategy[Any] = st.sampled_from(
    [None, {"basic": {}}, {"gang": {}}, {"gang": {"minCount": 1}}, {"gang": {"minCount": 3}}, {"gang": {}, "basic": {}}]
)
MODES: st.SearchStrategy[Any] = st.sampled_from([None, {"single": {}}, {"all": {}}])
CONSTRAINTS = st.sampled_from([None, {}, {"topology": [{"key": "example.com/rack"}]}])
CLAIMS = st.sampled_from([None, [], [{"name": "nic", "resourceClaimTemplateName": "t"}]])
OWNERS = st.sampled_from(
    [(), (owner("CronJob", "c", "batch/v1"),), (owner("FleetJob", "f1"),), (owner("X", "x", controller=False),)]
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "parity": st.booleans(),
        "policy_source": st.sampled_from(["Declared", "Inferred"]),
        "byo_workload": st.sampled_from(["Use", "Skip", "Ignore"]),
        "cronjob_transparent": st.booleans(),
        "shrink_min_count": st.booleans(),
    },
)
AROUND = st.lists(
    st.sampled_from(
        [
            workload("byo", "Job", "trainer", template("grp", 2), group="batch"),
            workload("fleet-wl", "FleetJob", "f1", template("lead"), template("workers", 3)),
            workload("two", "Job", "a", template("x"), template("y", 1), group="batch"),
        ]
    ),
    max_size=2,
    unique_by=lambda one: str(one["metadata"]["name"]),
)


@st.composite
def jobs(draw: st.DrawFn) -> Object:
    members = {"schedulingPolicy": POLICIES, "disruptionMode": MODES, "schedulingConstraints": CONSTRAINTS}
    block: dict[str, Any] = {name: value for name, values in members.items() if (value := draw(values)) is not None}
    claims = draw(CLAIMS)
    if claims is not None:
        block["resourceClaims"] = claims
    annotations = draw(st.sampled_from([None, {DELEGATED: "workers"}, {DELEGATED: ""}]))
    status: dict[str, Any] = draw(st.sampled_from([{}, {"succeeded": 1}, {"startTime": "2026-11-15T00:00:00Z"}]))
    return job(
        draw(NAMES),
        draw(st.none() | st.integers(0, 6)),
        draw(st.none() | st.integers(0, 6)),
        draw(st.sampled_from([None, "Indexed", "NonIndexed"])),
        scheduling=draw(st.sampled_from([None, block])),
        group=draw(st.sampled_from([None, None, None, "ext"])),
        owners=draw(OWNERS),
        annotations=annotations,
        uid=draw(st.sampled_from([UID, ""])),
        status=status,
        pod=draw(st.sampled_from([{}, {"priorityClassName": "batch-high"}])),
    )


@SHORT
@given(jobs(), MINORS)
def test_defaults_are_stable(obj: Object, minor: str) -> None:
    """Defaulting twice is defaulting once, and it makes nothing wrong that was right."""
    ctx = Context.of(minor)
    once = admit.defaulted(obj, JOB, ctx)
    assert admit.defaulted(once, JOB, ctx) == once
    before = {error.field for error in check_job_spec(obj["spec"], "spec", ctx)}
    after = {error.field for error in check_job_spec(once["spec"], "spec", ctx)}
    # completionMode is only known to be missing its completions once it is known itself
    assert after <= before | {"spec.completions"}


@SHORT
@given(jobs(), MINORS, SETTINGS, AROUND)
def test_every_valid_job_compiles(obj: Object, minor: str, chosen: dict[str, Any], around: list[Object]) -> None:
    ctx = Context.of(minor)
    if any(error.kind is not ErrorKind.UNKNOWN for error in admit.check(obj, ctx)):
        return
    context = CompileContext(ctx.release, ctx.gates, ctx.options, Lookup(around), SettingsByKind(JobSettings(**chosen)))
    done = compile_object(admit.defaulted(obj, JOB, ctx), context)
    assert done.plans or done.reason or done.errors
    for plan in done.plans:
        assert check_plan(plan) == []
        rendered = render(plan, minor)
        assert not rendered.errors
        for made in rendered.objects:
            assert [str(error) for error in admit.check(made, ctx)] == []


@SHORT
@given(jobs(), SETTINGS)
def test_compiling_changes_nothing(obj: Object, chosen: dict[str, Any]) -> None:
    ctx = Context.of("1.37")
    given_job = admit.defaulted(obj, JOB, ctx)
    before = deepcopy(given_job)
    compile_object(given_job, CompileContext(ctx.release, ctx.gates, settings=SettingsByKind(JobSettings(**chosen))))
    assert given_job == before


@SHORT
@given(jobs(), MINORS)
def test_every_valid_cronjob_compiles(obj: Object, minor: str) -> None:
    ctx = Context.of(minor)
    nightly = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": obj["metadata"]["name"][:52].rstrip("."), "namespace": "lab"},
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": obj["spec"]}},
    }
    if any(error.kind is not ErrorKind.UNKNOWN for error in admit.check(nightly, ctx)):
        return
    done = compile_cronjob(admit.defaulted(nightly, CRONJOB, ctx), CompileContext(ctx.release, ctx.gates))
    assert done.plans or done.reason or done.errors
    assert all(check_plan(plan) == [] for plan in done.plans)


@SHORT
@given(jobs())
def test_the_rules_of_the_api_and_of_the_builder_agree(obj: Object) -> None:
    """Both look at the same block; neither may drift away from the other."""
    block: dict[str, Any] = obj["spec"].get("scheduling") or {}
    spec = {**obj["spec"], "parallelism": 99}
    root = Item(name="job", path="spec.scheduling", default=Config(), leaf=block)
    builder = Builder(root, "w", "lab", None, ("basic", "gang"), ("single", "all"), run_block_rules=False)
    if len(block.get("schedulingPolicy") or {}) > 1:
        return  # the union's error: what else is said about such a block does not matter
    ours = {(error.field, error.message) for error in builder.validate()}
    assert ours == {(error.field, error.message) for error in check_scheduling(spec, "spec")}
