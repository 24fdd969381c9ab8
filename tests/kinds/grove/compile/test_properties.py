"""Whatever valid set there is, it compiles, and its plans are ones that an API server takes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinds.grove.api.cases import FABRIC, clique, defaulted, group, on, pcs
from tests.support.plancheck import check_plan

from kohort.api import admit
from kohort.gang.compile import CompileContext, Lookup
from kohort.gang.render import pod_link, render
from kohort.kinds.grove.compile.membership import link
from kohort.kinds.grove.compile.podcliqueset import compile_object

FLAT_GATES = frozenset({"GenericWorkload"})
CONTEXTS = (on("1.35"), on("1.36"), on("1.37"), on("1.37", gates=FLAT_GATES))


@st.composite
def sets(draw: st.DrawFn) -> dict[str, Any]:
    """Valid ones, mostly."""
    names = draw(st.lists(st.sampled_from("abcdefghijk"), min_size=1, max_size=10, unique=True))
    cliques = []
    for name in names:
        minimum = draw(st.integers(1, 3))
        cliques.append(clique(name, minimum + draw(st.integers(0, 2)), minimum))
    left = list(names)
    groups = []
    for name in draw(st.lists(st.sampled_from(["p", "q-0", "r"]), max_size=3, unique=True)):
        size = draw(st.integers(0, 3))
        members, left = left[:size], left[size:]
        minimum = draw(st.integers(1, 3))
        groups.append(group(name, members, minimum + draw(st.integers(0, 2)), minimum))
        if draw(st.booleans()):
            groups[-1]["topologyConstraint"] = {"topologyName": "fabric", "pack": {"required": "host"}}
    more = {"priorityClassName": "gold"} if draw(st.booleans()) else {}
    pack = draw(st.sampled_from([None, "zone", "rack"]))
    return pcs("a", *cliques, groups=groups, replicas=draw(st.integers(0, 2)), pack=pack, **more)


@settings(max_examples=50, deadline=None)
@given(sets(), st.sampled_from(CONTEXTS))
def test_valid_sets_compile_to_valid_plans(obj: dict[str, Any], ctx: Any) -> None:
    if admit.check(obj, ctx):
        return
    given_to = CompileContext(ctx.release, ctx.gates, ctx.options, Lookup([FABRIC]))
    done = compile_object(defaulted(obj, ctx), given_to)
    assert done.errors == ()
    assert len(done.plans) == sum(bool(podgang["spec"]["podgroups"]) for podgang in done.objects)
    for plan in done.plans:
        assert check_plan(plan) == []
        made = render(plan, ctx.release)
        assert made.errors == ()
        assert [admit.check(found, ctx) for found in made.objects] == [[]] * len(made.objects)
        for member in plan.members:
            labels = {"grove.io/podgang": plan.workload, "grove.io/podclique": member.source.split()[-1]}
            assert member.group is not None
            assert link(labels, ctx) == pod_link(plan, member.group, ctx.release)
    for podgang in done.objects:
        assert admit.check(podgang, ctx) == []
