"""Whatever valid JobSet is written: completing it again changes nothing, and it compiles to a plan a server takes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.jobset.api.building import CTX, completed, errors, jobset, rj
from tests.support.plancheck import check_plan

from kohort.api.kind import Object
from kohort.gang.compile import CompileContext
from kohort.gang.render import render
from kohort.gang.settings import SettingsByKind
from kohort.kinds.jobset.api import JOBSET
from kohort.kinds.jobset.compile.jobset import compile_object
from kohort.kinds.jobset.settings import GangRendering, JobSetSettings

NAMES = ["a", "b", "c-0", "d", "leader-node", "1"]
SIZES = st.one_of(st.none(), st.integers(0, 6))
MODES = st.sampled_from([None, "Off", "Gang", "ReplicatedGang"])
POLICY: st.SearchStrategy[Any] = st.sampled_from([None, {"basic": {}}, {"gang": {}}, {"gang": {"minCount": 1}}])
TOPOLOGY = st.sampled_from([None, {"topology": [{"key": "rack"}]}])
CLAIMS = st.sampled_from([None, [{"name": "c", "resourceClaimName": "shared"}]])


def members(**values: Any) -> Object:
    return {name: value for name, value in values.items() if value is not None}


@st.composite
def replicated_jobs(draw: st.DrawFn) -> list[Object]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=0, max_size=5, unique=True))
    made: list[Object] = []
    for index, name in enumerate(names):
        waits = draw(st.lists(st.sampled_from(names[:index]), max_size=1)) if index else []
        more: dict[str, Any] = {"dependsOn": [{"name": waits[0], "status": "Ready"}]} if waits else {}
        made.append(rj(name, draw(st.integers(0, 3)), draw(SIZES), draw(SIZES), **more))
    return made


@st.composite
def scheduling(draw: st.DrawFn, names: list[str]) -> Object:
    top = members(schedulingPolicy=draw(POLICY), schedulingConstraints=draw(TOPOLOGY))
    listed: list[Object] = []
    for name in names:
        block = members(
            schedulingPolicy=draw(POLICY), schedulingConstraints=draw(TOPOLOGY), resourceClaims=draw(CLAIMS)
        )
        entry: Object = {"job": block} if draw(st.booleans()) else block
        listed.append({"targetReplicatedJobs": [name], **entry})
    if not draw(st.booleans()):
        return top
    if "gang" in top.get("schedulingPolicy", {}):
        top["schedulingPolicy"] = {"gang": {}}  # of groups, which are not counted by hand
    return {**top, "replicatedJobs": listed}


@st.composite
def jobsets(draw: st.DrawFn) -> Object:
    jobs = draw(replicated_jobs())
    names = [job["name"] for job in jobs]
    spec: dict[str, Any] = {}
    form = draw(st.sampled_from(["none", "jobset", "each", "policies", "scheduling"]))
    if form == "jobset":
        spec["gang"] = "Gang"
    elif form == "each":
        for job in jobs:
            mode = draw(MODES)
            job.update({"gangConfig": {"gangMode": mode}} if mode else {})
    elif form == "policies" and names:
        cut = draw(st.integers(1, len(names)))
        modes = st.sampled_from([{}, {"mode": "ReplicatedGang"}])
        parts = [part for part in (names[:cut], names[cut:]) if part]
        spec["podGroupPolicies"] = [
            {"name": f"p{number}", "targetReplicatedJobs": part, **draw(modes)} for number, part in enumerate(parts)
        ]
    elif form == "scheduling":
        spec["scheduling"] = draw(scheduling(names))
    return jobset(*jobs, **spec)


@given(jobsets())
@settings(max_examples=50, deadline=None)
def test_completing_is_stable_and_adds_no_errors(obj: Object) -> None:
    once = completed(obj)
    assert completed(once) == once
    assert errors(once) == errors(obj)


@given(jobsets(), st.sampled_from(["Flat", "Composite"]))
@settings(max_examples=50, deadline=None)
def test_a_valid_jobset_compiles_to_a_plan_that_a_server_takes(obj: Object, rendering: GangRendering) -> None:
    if errors(obj):
        return
    whole = completed(obj)
    JOBSET.warn(whole, CTX)
    ctx = CompileContext(
        CTX.release, CTX.gates, CTX.options, settings=SettingsByKind(JobSetSettings(gang_rendering=rendering))
    )
    done = compile_object(whole, ctx)
    assert done.errors == ()
    assert bool(done.plans) != bool(done.reason)
    for plan in done.plans:
        assert check_plan(plan) == []
        assert render(plan, "1.37").errors == ()
        pods: dict[str, int] = {}
        for member in plan.members:
            if member.group:
                pods[member.group] = pods.get(member.group, 0) + member.count
        for name, count in pods.items():  # no gang asks for more pods than it has
            assert (plan.minimum(plan.group(name)) or 0) <= count
