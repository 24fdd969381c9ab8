"""Whatever valid `spec.scheduling` people write: it compiles, and to a plan that an API server would take."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.kinds.leaderworkerset.api.sample import context, defaulted, errors, lws, pod_template
from tests.support.plancheck import check_plan

from kohort.gang import render
from kohort.gang.compile import CompileContext
from kohort.gang.tree import MAX_DEPTH, MAX_WIDTH
from kohort.kinds.leaderworkerset.compile.leaderworkerset import compile_object

CLAIM = {"name": "nic", "resourceClaimTemplateName": "nic-tpl"}
POLICIES: st.SearchStrategy[Any] = st.sampled_from([{"basic": {}}, {"gang": {}}])
TOPOLOGY = st.sampled_from([{}, {"topology": [{"key": "rack"}]}])
MODES: st.SearchStrategy[Any] = st.sampled_from([{"all": {}}, {"single": {}}])
BLOCKS = {"schedulingPolicy": POLICIES, "schedulingConstraints": TOPOLOGY, "disruptionMode": MODES}
LEAF = st.fixed_dictionaries({}, optional={**BLOCKS, "resourceClaims": st.sampled_from([[], [CLAIM]])})
REPLICA = st.fixed_dictionaries({}, optional={**BLOCKS, "leader": LEAF, "worker": LEAF})
TREES = st.fixed_dictionaries({}, optional={**BLOCKS, "replica": REPLICA})


@settings(max_examples=50, deadline=None)
@given(TREES, st.integers(0, 3), st.integers(1, 4), st.booleans(), st.sampled_from(["1.35", "1.36", "1.37"]))
def test_every_valid_tree_compiles(tree: Any, replicas: int, size: int, own_leader: bool, minor: str) -> None:
    template = {"workerTemplate": pod_template(resourceClaims=[CLAIM], priorityClassName="high")}
    if own_leader:
        template["leaderTemplate"] = template["workerTemplate"]
    obj, ctx = lws(scheduling=tree, replicas=replicas, size=size, template=template), context(minor)
    assume(not errors(obj, ctx))
    done = compile_object(defaulted(obj, ctx), CompileContext(ctx.release, ctx.gates, ctx.options))
    assert not done.errors
    (plan,) = done.plans
    assert check_plan(plan) == []
    assert all(root.depth <= MAX_DEPTH for root in plan.templates)
    assert all(len(found.children) <= MAX_WIDTH for found in plan.walk())
    assert all(found.minimum is None or found.minimum >= 1 for found in plan.walk())
    assert len({group.name for group in plan.groups}) == len(plan.groups)
    assert sum(member.count for member in plan.members) == replicas * size
    rendered = render.render(plan, minor)
    assert not rendered.errors
    assert rendered.objects[0]["kind"] == "Workload"
