"""Whatever a runtime and a TrainJob look like: valid ones compile, and the plan is one that a server takes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.trainer.compile.build import COMPOSITE, context, initializer, jobset, rjob, runtime, trainer, trainjob
from tests.support.plancheck import check_plan

from kohort.api import admit
from kohort.api.kind import Object
from kohort.gang import render
from kohort.kinds.trainer.compile.trainjob import compile_object

NAMES = ["launcher", "node", "helper", "fetch", "aux"]
POLICIES = [
    {},
    {"torch": {}},
    {"jax": {}},
    {"xgboost": {}},
    {"flux": {}},
    {"mpi": {}},
    {"mpi": {"runLauncherAsNode": True}},
]
BLOCKS = st.fixed_dictionaries(
    {},
    optional={
        "schedulingPolicy": st.sampled_from([{"gang": {}}, {"basic": {}}]),
        "schedulingConstraints": st.just({"topology": [{"key": "rack"}]}),
        "disruptionMode": st.sampled_from([{"all": {}}, {"single": {}}]),
    },
)


@st.composite
def _jobs(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    made: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        after = (
            draw(st.sets(st.sampled_from(names[:place]), max_size=1))
            if place and draw(st.integers(0, 2)) == 0
            else set()
        )
        status = draw(st.sampled_from(["Ready", "Complete"]))
        pod = {"priorityClassName": "high"} if draw(st.integers(0, 3)) == 0 else {}
        edges = [(other, status) for other in after]
        count, size = draw(st.integers(0, 3)), draw(st.none() | st.integers(0, 4))
        if draw(st.booleans()):
            made.append(trainer(name, parallelism=size, after=edges, **pod))
        else:
            made.append(rjob(name, replicas=count, parallelism=size, after=edges, **pod))
    if draw(st.booleans()):
        made.insert(0, initializer("dataset-initializer"))
    return made


@st.composite
def _entries(draw: st.DrawFn, names: list[str]) -> list[dict[str, Any]]:
    """Everybody once, alone or in pairs; now and then somebody is forgotten, or nobody is named."""
    left, made = names[draw(st.sampled_from([0, 0, 0, 1])) :], []
    while left:
        size = draw(st.integers(1, 2))
        entry: dict[str, Any] = {"targetReplicatedJobs": left[:size], **draw(st.one_of(st.just({}), BLOCKS))}
        left = left[size:]
        job = draw(st.one_of(st.none(), st.none(), BLOCKS))
        made.append(entry if job is None else {**entry, "job": job})
    return made if draw(st.integers(0, 5)) else []


@st.composite
def _runtimes(draw: st.DrawFn) -> Object:
    jobs = draw(_jobs())
    stages = st.fixed_dictionaries(
        {},
        optional={
            "topologyConstraint": st.just({"level": "rack"}),
            "disruptionMode": st.sampled_from([{"all": {}}, {"single": {}}]),
        },
    )
    explicit = st.builds(
        lambda block, entries: {"scheduling": {**block, "replicatedJobs": entries}},
        st.one_of(st.just({}), BLOCKS),
        _entries([job["name"] for job in jobs]),
    )
    ml = {**draw(st.sampled_from(POLICIES)), **draw(st.sampled_from([{}, {"numNodes": 3}, {"numNodes": -1}]))}
    return runtime(*jobs, ml=ml, workload=draw(st.one_of(stages, explicit)))


@settings(max_examples=50, deadline=None)
@given(_runtimes(), st.none() | st.integers(0, 12), st.sampled_from(["1.35", "1.36", "1.37"]))
def test_valid_runtimes_compile_into_valid_plans(rt: Object, nodes: int | None, minor: str) -> None:
    ctx = context(rt, to=minor, options=COMPOSITE)
    answer = admit.create(trainjob(nodes) | {"metadata": {"name": "job", "namespace": "ml"}}, ctx)
    assert answer.object is not None
    result = compile_object(answer.object, ctx)
    if admit.check(rt, ctx):
        assert result.errors
        assert (result.plans, result.objects) == ((), ())
        return
    fits = not result.errors  # numNodes may still not fit the runtime
    assert fits or all(error.field.startswith("spec.") for error in result.errors)
    for plan in result.plans:
        assert check_plan(plan) == []
        links = render.pod_links(plan, minor)
        for job in jobset(result)["spec"]["replicatedJobs"]:
            pod = job["template"]["spec"]["template"]["spec"]
            field = ctx.release.pod_field
            assert {field: pod[field]} in links.values()


@settings(max_examples=30, deadline=None)
@given(_runtimes())
def test_defaulting_twice_is_defaulting_once(rt: Object) -> None:
    from kohort.api.registry import find

    ctx = context()
    kind = find(rt["apiVersion"], rt["kind"])
    assert kind is not None
    once = admit.defaulted(rt, kind, ctx)
    assert admit.defaulted(deepcopy(once), kind, ctx) == once
    assert admit.check(once, ctx) == admit.check(rt, ctx)
