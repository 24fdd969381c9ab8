"""A scheduler whom nobody listens to decides what one decides that tells everything."""

from __future__ import annotations

import msgspec

from kohort.scheduler.core import SchedulerCore
from kohort.scheduler.model import (
    Container,
    Gang,
    GroupObject,
    GroupObjectSpec,
    Node,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodSpec,
    Policy,
    SchedulingGroup,
)
from kohort.scheduler.schedulingcycle import Step
from kohort.scheduler.settings import KOHORT, SchedulerSettings


def _played(*, explains: bool) -> tuple[SchedulerCore, list[Step]]:
    """A gang of two on one node, decided and bound."""
    core = SchedulerCore(SchedulerSettings(explains=explains), lambda: "2026-01-01T00:00:00Z")
    core.cache.set_node(Node(ObjectMeta(name="n", uid="n"), status=NodeStatus({"cpu": "4", "pods": "9"})))
    meta = ObjectMeta(name="g", namespace="default", uid="g")
    core.cache.set_group(GroupObject(meta, GroupObjectSpec(Policy(Gang(min_count=2)))))
    spec = PodSpec(
        scheduler_name=KOHORT,
        scheduling_group=SchedulingGroup("g"),
        containers=[Container({"requests": {"cpu": "1"}})],
    )
    pods = {name: Pod(ObjectMeta(name=name, namespace="default", uid=name), spec) for name in ("a", "b")}
    for pod in pods.values():
        core.cache.set_pod(pod)
    steps: list[Step] = []
    while (step := core.step(0.0)) is not None:
        steps.append(step)
        for uid, node in core.confirm(step.decision).items() if step.decision is not None else ():
            core.bound(uid, node)
            core.cache.set_pod(Pod(pods[uid].metadata, msgspec.structs.replace(spec, node_name=node)))
    return core, steps


def test_it_remembers_and_says_nothing() -> None:
    heard, silent = _played(explains=True), _played(explains=False)
    made = [[step.decision.assignments for step in steps if step.decision is not None] for _, steps in (heard, silent)]
    assert made[0] == made[1] == [{"a": "n", "b": "n"}]
    assert any(step.writes for step in heard[1])
    assert not any(step.writes for step in silent[1])
    for core, _ in (heard, silent):
        group = core.cache.trees.get("default/g")
        assert group is not None
        assert (group.settled, group.assumed) == (True, 0)
        assert core.status.is_scheduled(group)
