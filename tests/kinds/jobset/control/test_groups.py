"""Gangs of JobSets (spec jobset 4.4 to 4.9): who makes, keeps and removes groups, and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers import kubelet
from tests.kinds.jobset.control.world import GROUPS, NS, World, replicated

from kohort.api.kind import Object


def gang_spec() -> Object:
    return {"scheduling": {"schedulingPolicy": {"gang": {}}}}


def test_groups_come_before_jobs_and_pods_are_in_them() -> None:
    world = World()
    world.jobset("fleet", **gang_spec())
    world.run()
    made = [kind for verb, kind, code in world.api.calls if verb == "create" and code == 201]
    assert made.index("Workload") < made.index("PodGroup") < made.index("Job") < made.index("Pod")
    assert world.names("PodGroup") == ["pg-fleet"]
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in world.pods()} == {"pg-fleet"}
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert len(world.pods()) == 4
    assert world.reasons() == ["WorkloadCreated", "PodGroupCreated"]


def test_without_a_gang_nothing_is_made() -> None:
    world = World()
    world.jobset("plain")
    world.run()
    assert not any(world.names(kind) for kind in GROUPS)
    assert len(world.pods()) == 4


def test_suspended_jobs_name_groups_that_come_with_the_resume() -> None:
    world = World()
    world.jobset("nap", suspend=True, **gang_spec())
    world.run()
    assert not any(world.names(kind) for kind in GROUPS)
    links = [job["spec"]["template"]["spec"]["schedulingGroup"] for job in world.api.every("Job")]
    assert links == [{"podGroupName": "pg-nap"}] * 2
    world.patch("nap", {"spec": {"suspend": False}})
    world.run()
    assert world.names("PodGroup") == ["pg-nap"]
    assert len(world.pods()) == 4
    world.patch("nap", {"spec": {"suspend": True}})
    world.run()
    assert not any(world.names(kind) for kind in GROUPS)
    assert not world.pods()


def test_a_restart_keeps_the_groups_and_the_end_takes_them() -> None:
    world = World()
    world.jobset("retry", failurePolicy={"maxRestarts": 1}, **gang_spec())
    world.run()
    before = [obj["metadata"]["uid"] for kind in GROUPS for obj in world.api.every(kind)]
    kubelet.step(world.api, ("Pod", NS, world.pods()[0]["metadata"]["name"]), {"kubelet": "fail", "exit": 1})
    world.run(8)
    assert before == [obj["metadata"]["uid"] for kind in GROUPS for obj in world.api.every(kind)]
    assert len(world.pods()) == 4
    world.pods_do("succeed")
    world.run(8)
    assert world.conditions("retry")[-1] == "Completed=True"
    assert not any(world.names(kind) for kind in GROUPS)
    assert "PodGroupDeleted" in world.reasons()


def test_a_name_that_is_taken_is_told_and_nothing_starts() -> None:
    world = World()
    policy: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
    stranger = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "pg-late"},
        "spec": policy,
    }
    assert world.api.create(stranger, NS).code == 201
    world.jobset("late", **gang_spec())
    world.run(10)
    assert "GangNameConflict" in world.reasons()
    assert not world.names("Job")


def test_a_group_that_is_going_is_waited_for() -> None:
    world = World()
    world.jobset("again", **gang_spec())
    world.run()
    world.pods_do("bind", "run")
    world.api.delete(("PodGroup", NS, "pg-again"))
    world.run(6)
    assert len(world.pods()) == 4  # they go on
    assert world.api.every("PodGroup")[0]["metadata"]["deletionTimestamp"]


GANG: Object = {"gangConfig": {"gangMode": "Gang"}}


def test_jobset_39_a_group_is_refused_twice() -> None:
    world = World()
    world.api.refusals.append(("create", "PodGroup", 2))
    world.jobset("t", **GANG)
    world.run(0.5)
    assert world.names("Workload") == ["w-t"]
    assert not world.names("Job")
    world.run(8)
    assert world.reasons().count("PodGroupCreationFailed") == 2
    assert world.names("PodGroup") == ["pg-t"]
    assert world.reasons().count("WorkloadCreated") == 1
    assert len(world.pods()) == 4


def test_a_group_that_somebody_edited_is_put_right_or_told() -> None:
    world = World()
    world.jobset("t", **GANG)
    world.run()
    world.patch("pg-t", {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}, "PodGroup")
    world.run()
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert world.events("PodGroupUpdated") == ["minCount of PodGroup pg-t: 2 → 4"]


def edit(world: World, kind: str, name: str, member: str, value: Object) -> None:
    """As somebody with more rights than the API gives."""
    world.api.set_status((kind, NS, name), lambda obj: obj["spec"].update({member: value}))


def test_another_workload_is_left_alone_while_there_are_jobs() -> None:
    world = World()
    world.jobset("t", **GANG)
    world.run()
    edit(world, "PodGroup", "pg-t", "schedulingPolicy", {"basic": {}})
    world.run(30)
    (note,) = world.events("GangDrift")  # once, although it was looked at many times
    assert "PodGroup pg-t" in note
    assert "schedulingPolicy" in note
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"basic": {}}


def test_without_jobs_it_is_made_again() -> None:
    world = World()
    first = {"name": "q", "replicas": 1, "template": replicated("q", 1, 1)["template"]}
    world.api.refusals.append(("create", "Job", 100))
    world.jobset("t", first, **GANG)
    world.run(0.2)
    assert not world.names("Job")
    edit(world, "PodGroup", "pg-t", "schedulingPolicy", {"basic": {}})
    world.run(0.2)
    world.api.refusals.clear()
    world.run(70)
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}
    assert "GangDrift" in world.reasons()
    assert len(world.pods()) == 1


def late_gang(world: World) -> None:
    """Two of four pods succeed, a third is evicted; whoever schedules leaves its replacement."""
    world.jobset("hal", replicated("h", 1, 4, job={"backoffLimit": 5}), **GANG)
    world.run()
    world.pods_do("bind", "run")
    key = ("PodGroup", NS, "pg-hal")
    scheduled = {"type": "PodGroupInitiallyScheduled", "status": "True"}
    world.api.set_status(key, lambda group: group.setdefault("status", {}).update(conditions=[scheduled]))
    for pod in world.pods()[:2]:
        world.pod_does(pod, "succeed")
    world.run()
    world.pod_does(world.pods()[0], "fail", exit=1)
    world.run(30)


def test_jobset_60_a_quorum_that_cannot_be_reached_is_told() -> None:
    world = World()
    late_gang(world)
    (note,) = world.events("GangQuorumUnreachable")
    assert "needs 4 pods" in note
    assert "no more than 2" in note
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}


def test_jobset_60_with_the_option_the_gang_shrinks() -> None:
    world = World(options={"GangQuorumShrink"})
    late_gang(world)
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert world.events("PodGroupUpdated") == ["minCount of PodGroup pg-hal: 4 → 2"]
    templates = world.api.every("Workload")[0]["spec"]["podGroupTemplates"]
    assert templates[0]["schedulingPolicy"] == {"gang": {"minCount": 4}}


def test_a_restart_makes_a_shrunk_gang_whole_again() -> None:
    world = World(options={"GangQuorumShrink"})
    world.jobset("hal", replicated("h", 2, 1), failurePolicy={"maxRestarts": 1}, **GANG)
    world.run()
    scheduled = {"type": "PodGroupInitiallyScheduled", "status": "True"}
    key = ("PodGroup", NS, "pg-hal")
    world.api.set_status(key, lambda group: group.setdefault("status", {}).update(conditions=[scheduled]))
    world.pod_does(world.pods()[0], "bind", "run", "succeed")
    world.run()
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}
    world.pod_does(world.pods()[0], "bind", "run", "fail", exit=1)
    world.run(8)
    assert world.api.every("PodGroup")[0]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}


def test_a_server_without_groups() -> None:
    """Gangs do not start there; JobSets without one do."""
    world = World(grouping=False)
    world.jobset("t", **GANG)
    world.jobset("plain", replicated("x", 1, 1))
    world.run(70)
    assert world.names("Job") == ["plain-x-0"]
    assert len(world.events("WorkloadAPIUnavailable")) == 1


def test_a_tree_that_an_old_minor_cannot_have() -> None:
    world = World("1.36")
    tree = {"schedulingPolicy": {"gang": {}}, "replicatedJobs": [{"targetReplicatedJobs": ["w"], "job": {}}]}
    world.jobset("t", scheduling=tree)
    world.run(20)
    assert "WorkloadCreationFailed" in world.reasons()
    assert not world.names("Job")


@pytest.mark.parametrize("keeps", [True, False])
def test_groups_of_a_suspended_jobset(keeps: bool) -> None:
    world = World(on_suspend="Preserve" if keeps else "Delete")
    world.jobset("t", **GANG)
    world.run()
    before = [one["metadata"]["uid"] for kind in GROUPS for one in world.api.every(kind)]
    world.suspend("t", True)
    world.run(8)
    assert bool(world.groups()) == keeps
    world.suspend("t", False)
    world.run(8)
    assert len(world.pods()) == 4
    after = [one["metadata"]["uid"] for kind in GROUPS for one in world.api.every(kind)]
    assert (before == after) == keeps


def test_groups_of_a_predecessor_are_waited_for() -> None:
    world = World()
    world.jobset("t", **GANG)
    world.run()
    world.pods_do("bind", "run")
    world.api.delete(("JobSet", NS, "t"), propagation="Background")
    world.run(0.5)
    assert world.api.every("PodGroup")[0]["metadata"]["deletionTimestamp"]  # its pods still run
    world.jobset("t", **GANG)
    world.run(2)
    assert not world.names("Job") or len(world.names("Job")) == 2
    for pod in world.pods():
        if pod["metadata"].get("deletionTimestamp"):
            world.pod_does(pod, "stop and remove", exit=143)
    world.run(12)
    (group,) = world.api.every("PodGroup")
    assert not group["metadata"].get("deletionTimestamp")
    assert "GangNameConflict" not in world.reasons()
    assert len(world.pods()) == 4


EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def test_where_no_server_keeps_jobs_apart_their_templates_do() -> None:
    world = World()
    first = replicated("a", 2, 2)
    first["template"]["metadata"] = {"annotations": {EXCLUSIVE: "rack"}}
    first["template"]["spec"]["template"]["spec"]["priorityClassName"] = "batch-high"
    for named in world.api.priority_classes:
        world.api.objects["PriorityClass", "", named["metadata"]["name"]] = named
    world.jobset("hawk", first)
    world.run()
    keys = set()
    for pod in world.pods():
        labels = pod["metadata"]["labels"]
        assert labels["jobset.sigs.k8s.io/priority"] == "7000"
        (near,) = pod["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (far,) = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert near["topologyKey"] == far["topologyKey"] == "rack"
        keys.add(near["labelSelector"]["matchExpressions"][0]["values"][0])
    assert len(keys) == 2
    assert len(world.pods()) == 4  # nobody waits for a leader to be let in


def test_a_server_that_judges_no_jobsets() -> None:
    """Mistakes are told, and nothing is made of them."""
    world = World()
    world.api.groups.discard("jobset.x-k8s.io")
    later = replicated("q", 1, 1, dependsOn=[{"name": "p", "status": "Ready"}])
    world.jobset("t", replicated("p", 1, 1), later, **GANG)
    world.run(20)
    (note,) = world.events("InvalidJobSet")
    assert "spec.gangConfig" in note
    assert not world.names("Job")
    assert not world.groups()
