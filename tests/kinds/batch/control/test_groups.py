"""Scenarios of spec job 8.1 to 8.5 and 8.7 as this project decides them; upstream's own way is in test_recorded."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.cluster import job_of
from tests.controllers.world import GANG, NS, World

from kohort.api.kind import Object
from kohort.api.releases import Gate

BATCH_OWNER = {"controller": True, "blockOwnerDeletion": True}


def owned(world: World, kind: str, name: str, api_version: str = "lab.example/v1") -> dict[str, Any]:
    above = world.make({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {}})
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": above["metadata"]["uid"], **BATCH_OWNER}


def workload(name: str, of: tuple[str, str, str], *templates: Object, owners: list[Object] | None = None) -> Object:
    group, kind, named = of
    meta = {"name": name, "namespace": NS, **({"ownerReferences": owners} if owners else {})}
    spec = {"controllerRef": {"apiGroup": group, "kind": kind, "name": named}, "podGroupTemplates": list(templates)}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": meta, "spec": spec}


def template(name: str, least: int | None = None) -> Object:
    return {"name": name, "schedulingPolicy": {"basic": {}} if least is None else {"gang": {"minCount": least}}}


def delegated(world: World, name: str, owner: Object, group: str, **spec: Any) -> Object:
    body = job_of(name, parallelism=2, completions=2, completionMode="Indexed", **spec)
    body["metadata"] |= {
        "ownerReferences": [owner],
        "annotations": {"scheduling.k8s.io/group-template-name": group},
    }
    return world.make(body)


# ---- 8.1, 8.2


def test_t_28_a_refused_group_is_told() -> None:
    world = World()
    world.gang("vip", 2, template=_template(priorityClassName="no-such-class"))
    world.run(8)
    assert not world.every("Pod")
    assert "FailedPodGroupCreate" in world.reasons("Warning")


def _template(**spec: Any) -> Object:
    return {"spec": {**job_of("x")["spec"]["template"]["spec"], **spec}}


@pytest.mark.parametrize("name", ["nightly.report", "b" * 60])
def test_t_29_names_that_upstream_cannot_handle_work(name: str) -> None:
    world = World()
    world.job(name, parallelism=2, completions=2, scheduling=GANG)
    world.run()
    assert len(world.active()) == 2
    assert all(world.group_of(pod) for pod in world.active())


def test_t_30_workload_then_group_then_pods() -> None:
    world = World()
    world.gang("ordered", 3)
    world.run()
    made = [kind for verb, kind, code in world.api.calls if verb == "create" and code == 201]
    assert made == ["Workload", "PodGroup", "Pod", "Pod", "Pod"]


# ---- 8.3


def test_t_32_a_workload_that_somebody_brought_is_used() -> None:
    world = World()
    brought = world.make(workload("byo", ("batch", "Job", "trainer"), template("mine", 2)))
    world.gang("trainer", 3)
    world.run()
    assert [one["metadata"]["name"] for one in world.every("Workload")] == ["byo"]
    (group,) = world.every("PodGroup")
    assert [owner["kind"] for owner in group["metadata"]["ownerReferences"]] == ["Job"]
    assert world.minimum() == 2
    assert world.find("Workload", "byo") == brought
    assert {world.group_of(pod) for pod in world.active()} == {group["metadata"]["name"]}


def test_t_33_ambiguity_is_told_and_pods_run() -> None:
    world = World(start=False)
    job = world.gang("two", 2)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "two", "uid": job["metadata"]["uid"], **BATCH_OWNER}
    for name in ("wl-a", "wl-b"):
        world.make(workload(name, ("batch", "Job", "two"), template("grp", 2), owners=[owner]))
    world.start()
    world.run()
    assert len(world.active()) == 2
    assert {world.group_of(pod) for pod in world.active()} == {None}
    assert len(world.every("Workload")) == 2
    assert "AmbiguousWorkload" in world.reasons("Warning")


def test_t_34_a_structure_we_cannot_use_is_told() -> None:
    world = World(start=False)
    job = world.gang("double", 2)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "double", "uid": job["metadata"]["uid"], **BATCH_OWNER}
    world.make(workload("wl", ("batch", "Job", "double"), template("a", 1), template("b", 1), owners=[owner]))
    world.start()
    world.run(5)
    assert not world.every("Pod")
    assert "UnsupportedWorkloadStructure" in world.reasons("Warning")


def test_t_38_what_was_brought_outlives_the_job() -> None:
    world = World()
    world.make(workload("byo", ("batch", "Job", "trainer"), template("mine", 2)))
    world.gang("trainer", 2)
    world.run()
    world.delete("Job", "trainer")
    world.run()
    assert [one["metadata"]["name"] for one in world.every("Workload")] == ["byo"]
    assert not world.every("PodGroup")
    assert not world.every("Pod")


# ---- 8.4


def test_t_40_refusals_are_waited_out() -> None:
    world = World()
    world.api.refusals.append(("create", "Workload", 3))
    world.gang("stubborn", 2)
    world.run(6.9)  # tried after 0, 1, 3 seconds
    assert not world.every("Pod")
    world.run(0.2)  # and after 7
    assert len(world.active()) == 2
    assert world.reasons("Warning") == ["FailedWorkloadCreate"] * 3


def test_t_41_the_workload_is_kept() -> None:
    world = World()
    world.api.refusals.append(("create", "PodGroup", 1))
    world.gang("halfway", 2)
    world.run(0.5)
    before = world.every("Workload")
    world.run(2)
    assert world.every("Workload") == before
    assert len(world.every("PodGroup")) == 1
    assert len(world.active()) == 2


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_t_43_a_job_from_before_the_gate_stays_ungrouped(minor: str) -> None:
    world = World(minor, start=False)
    world.start(off=(Gate.JOB,))
    world.job("elder", parallelism=2, completions=2, completionMode="Indexed")
    world.run()
    world.start()
    world.run()
    world.pod_does(world.active()[0], "fail", exit=1)
    world.run(15)
    assert len(world.active()) == 2
    assert not world.every("Workload")
    assert {world.group_of(pod) for pod in world.every("Pod")} == {None}


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_t_44_also_one_that_was_suspended_then(minor: str) -> None:
    world = World(minor, start=False)
    world.start(off=(Gate.JOB,))
    world.job("sleeper", parallelism=2, completions=2, completionMode="Indexed", suspend=True)
    world.run()
    world.start()
    world.patch("Job", "sleeper", {"spec": {"suspend": False}})
    world.run()
    assert len(world.active()) == 2
    assert not world.every("Workload")


def test_t_45_gate_off_leaves_objects_and_groups_nobody() -> None:
    world = World()
    world.gang("flicker", 2)
    world.run()
    world.start(off=(Gate.JOB,))
    world.pod_does(world.active()[0], "fail", exit=1)
    world.run(15)
    assert sorted(map(bool, map(world.group_of, world.active()))) == [False, True]
    assert len(world.every("PodGroup")) == 1


def test_t_46_gate_on_again_and_a_new_job_is_managed() -> None:
    world = World(start=False)
    world.start(off=(Gate.JOB,))
    world.run()
    world.start()
    world.gang("fresh", 2)
    world.run()
    assert world.minimum() == 2


def test_t_47_a_group_that_is_gone_is_not_made_again() -> None:
    world = World()
    world.gang("lost", 2, backoffLimit=9)
    world.run()
    world.pods_do("fail", exit=1)
    world.run()
    world.delete("PodGroup", world.every("PodGroup")[0]["metadata"]["name"])
    world.run(25)
    assert not world.every("PodGroup")
    assert {world.group_of(pod) for pod in world.active()} == {None}
    assert len(world.active()) == 2


def test_t_48_without_the_workload_api_jobs_run() -> None:
    world = World(start=False)
    world.api.unserved = {"Workload", "PodGroup"}
    world.start(grouping=False)
    world.gang("stuck", 2)
    world.run()
    assert len(world.active()) == 2
    assert {world.group_of(pod) for pod in world.active()} == {None}


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_t_49_seven_hundred_pods_are_all_in_the_group(minor: str) -> None:
    world = World(minor)
    world.gang("crowd", 700)
    world.run(3)
    assert len(world.every("Pod")) == 700
    assert None not in {world.group_of(pod) for pod in world.every("Pod")}


# ---- 8.5


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_t_50_created_suspended(minor: str) -> None:
    world = World(minor)
    world.gang("asleep", 3, suspend=True)
    world.run()
    before = [one["metadata"]["uid"] for kind in ("Workload", "PodGroup") for one in world.every(kind)]
    assert len(before) == 2
    assert not world.every("Pod")
    assert world.conditions("asleep") == ["Suspended=True JobSuspended"]
    world.patch("Job", "asleep", {"spec": {"suspend": False}})
    world.run()
    assert all(world.group_of(pod) for pod in world.active())
    assert len(world.active()) == 3
    assert before == [one["metadata"]["uid"] for kind in ("Workload", "PodGroup") for one in world.every(kind)]


def test_t_51_suspend_and_resume() -> None:
    world = World()
    world.gang("nap", 3)
    world.run()
    world.patch("Job", "nap", {"spec": {"suspend": True}})
    world.run()
    assert not world.every("Pod")
    world.patch("Job", "nap", {"spec": {"suspend": False}})
    world.run()
    assert len(world.active()) == 3
    assert "failed" not in world.status("nap")
    assert len(world.every("PodGroup")) == 1


def test_t_54_and_t_55_the_minimum_follows() -> None:
    world = World()
    world.gang("grow", 4)
    world.run()
    world.patch("Job", "grow", {"spec": {"parallelism": 7, "completions": 7}})
    world.run()
    assert (world.minimum("Workload"), world.minimum()) == (7, 7)
    assert world.find("Job", "grow")["spec"]["scheduling"] == GANG
    world.patch("Job", "grow", {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}}})
    world.run()
    assert (world.minimum("Workload"), world.minimum()) == (2, 2)


def test_t_56_an_explicit_minimum_stays() -> None:
    world = World()
    world.gang("shrink", 8, scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}}, completions=8)
    world.run()
    world.patch("Job", "shrink", {"spec": {"parallelism": 5}})
    world.run()
    assert world.minimum() == 3
    assert len(world.active()) == 5


def test_t_57_basic_is_left_alone() -> None:
    world = World()
    world.job("wide", parallelism=3, completions=9)
    world.run()
    world.patch("Job", "wide", {"spec": {"parallelism": 9}})
    world.run()
    assert ("patch", "PodGroup", 200) not in world.api.calls
    assert len(world.active()) == 9


@pytest.mark.parametrize("kind", ["Workload", "PodGroup"])
def test_t_58_an_edit_by_hand_is_taken_back_at_once(kind: str) -> None:
    world = World()
    world.gang("tamper", 3)
    world.run(5)
    (found,) = world.every(kind)
    policy = {"gang": {"minCount": 1}}
    block = {"schedulingPolicy": policy}
    spec = block if kind == "PodGroup" else {"podGroupTemplates": [{**found["spec"]["podGroupTemplates"][0], **block}]}
    world.patch(kind, found["metadata"]["name"], {"spec": spec})
    world.run(1.5)
    assert world.minimum(kind) == 3


def test_t_59_the_last_retry_is_not_alone() -> None:
    world = World()
    world.gang("last", 4)
    world.run()
    *three, fourth = world.active()
    for pod in three:
        world.pod_does(pod, "succeed")
    world.pod_does(fourth, "fail", exit=1)
    world.run(13)
    assert (world.minimum("Workload"), world.minimum()) == (1, 1)
    assert len(world.active()) == 1
    world.pods_do("succeed")
    world.run()
    assert world.conditions("last")[-1] == "Complete=True CompletionsReached"


def test_t_60_fewer_completions_than_parallelism_start() -> None:
    world = World()
    world.job("short", parallelism=8, completions=3, scheduling=GANG)
    world.run()
    assert world.minimum() == 3
    assert len(world.active()) == 3


def test_an_explicit_minimum_out_of_reach_is_told() -> None:
    world = World()
    world.gang("far", 3, scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}})
    world.run()
    world.pod_does(world.active()[0], "succeed")
    world.run()
    assert "MinCountUnreachable" in world.reasons("Warning")


def test_t_61_and_t_64_deletion_collects_all() -> None:
    world = World()
    world.gang("done", 2)
    world.run()
    world.pods_do("bind", "run")
    world.run()
    world.delete("Job", "done")
    world.run()
    assert not world.every("Workload")
    assert world.every("PodGroup")[0]["metadata"]["deletionTimestamp"]
    for pod in world.every("Pod"):
        world.pod_does(pod, "stop and remove", exit=143)
    world.run()
    assert not world.every("PodGroup")
    assert not world.every("Pod")


def test_t_62_orphans() -> None:
    world = World()
    world.gang("orphan", 2)
    world.run()
    world.delete("Job", "orphan", None)
    world.run()
    assert not world.every("Job")
    assert [len(world.every(kind)) for kind in ("Workload", "PodGroup", "Pod")] == [1, 1, 2]
    assert all(not pod["metadata"].get("finalizers") for pod in world.every("Pod"))


def test_t_63_time_to_live() -> None:
    world = World()
    world.gang("brief", 2, ttlSecondsAfterFinished=30)
    world.run()
    world.pods_do("succeed")
    world.run(25)
    assert world.conditions("brief")[-1] == "Complete=True CompletionsReached"
    world.run(10)
    assert not any(world.every(kind) for kind in ("Job", "Workload", "PodGroup", "Pod"))


def test_t_65_each_run_of_a_cronjob_is_a_gang() -> None:
    world = World()
    body = job_of("x", parallelism=2, completions=2, completionMode="Indexed", scheduling=GANG)
    cron = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": body["spec"]}, "successfulJobsHistoryLimit": 1}
    world.make({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": cron})
    for _ in range(3):
        world.run(601)
        assert {world.minimum_of(group) for group in world.every("PodGroup")} == {2}
        world.pods_do("succeed")
        world.run(5)
    assert len(world.every("Job")) == 1
    assert len(world.every("PodGroup")) == 1


# ---- 8.7


def test_t_82_and_t_83_what_the_parent_owes_is_waited_for() -> None:
    world = World()
    owner = owned(world, "FleetJob", "f1")
    delegated(world, "w", owner, "workers")
    world.run(8)
    assert not world.every("Pod")
    assert "ParentWorkloadNotFound" in world.reasons("Warning")
    world.make(workload("fleet-wl", ("lab.example", "FleetJob", "f1"), template("workers", 2)))
    world.run(8)
    assert len(world.active()) == 2
    assert all(world.group_of(pod) for pod in world.active())
    delegated(world, "v", owner, "absent")
    world.run(8)
    assert "GroupTemplateNotFound" in world.reasons("Warning")
    assert len(world.active()) == 2


def test_t_81_the_template_is_mirrored() -> None:
    world = World()
    owner = owned(world, "FleetJob", "f1")
    made = world.make(workload("fleet-wl", ("lab.example", "FleetJob", "f1"), template("workers", 2)))
    delegated(world, "w", owner, "workers")
    world.run()
    spec = {"podGroupTemplates": [{**made["spec"]["podGroupTemplates"][0], **template("workers", 5)}]}
    world.patch("Workload", "fleet-wl", {"spec": spec})
    world.pod_does(world.active()[0], "bind", "run")
    world.run()
    assert world.minimum() == 5


def test_t_84_siblings_share_a_template() -> None:
    world = World()
    owner = owned(world, "FleetJob", "f1")
    world.make(workload("fleet-wl", ("lab.example", "FleetJob", "f1"), template("workers", 2)))
    for name in ("w1", "w2"):
        delegated(world, name, owner, "workers")
    world.run()
    assert len(world.every("PodGroup")) == 2
    assert len({world.group_of(pod) for pod in world.active()}) == 2
    assert len(world.active()) == 4


def test_t_85_the_workload_of_a_grandparent_is_found() -> None:
    world = World()
    top = owned(world, "TrainJob", "tune", "trainer.kubeflow.org/v1alpha1")
    meta = {"name": "tune", "ownerReferences": [top]}
    middle = world.make({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": {}})
    uid = middle["metadata"]["uid"]
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "tune", "uid": uid, **BATCH_OWNER}
    world.make(workload("tune-wl", ("trainer.kubeflow.org", "TrainJob", "tune"), template("node", 2)))
    delegated(world, "tune-node-0", owner, "node")
    world.run()
    assert len(world.active()) == 2
    assert all(world.group_of(pod) for pod in world.active())


def test_t_20_another_manager_is_left_alone() -> None:
    world = World()
    world.gang("foreign", 2, managedBy="corp.example/runner")
    world.run()
    assert not world.every("Pod")
    assert world.status("foreign") == {}
