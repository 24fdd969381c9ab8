"""Workloads whose parts are made one after the other: none starts a part without room for those that follow it, so no
two of them hold what the other needs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.grouping import operators
from tests.grouping.cluster import OURS, Cluster

Json = dict[str, Any]


def template(cpu: str = "1", **more: Any) -> Json:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return {"spec": {"schedulerName": "kohort", "containers": containers, **more}}


def lws(name: str, size: int = 3, **more: Any) -> Json:
    pods: Json = {"size": size, "workerTemplate": template(**more)}
    spec = {"replicas": 1, "startupPolicy": "LeaderReady", "leaderWorkerTemplate": pods}
    api = "leaderworkerset.x-k8s.io/v1"
    return {"apiVersion": api, "kind": "LeaderWorkerSet", "metadata": {"name": name}, "spec": spec}


def jobset(name: str, sizes: dict[str, int], depends: str = "") -> Json:
    """In order; `depends`: by dependsOn of this status instead."""
    parts: list[Json] = [
        {"name": part, "template": {"spec": {"parallelism": size, "completions": size, "template": template()}}}
        for part, size in sizes.items()
    ]
    spec: Json = {"replicatedJobs": parts}
    if depends:
        for before, part in pairwise(parts):
            part["dependsOn"] = [{"name": before["name"], "status": depends}]
    else:
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def cluster(cpu: int, **settings: Any) -> Cluster:
    found = Cluster(settings=replace(OURS, **settings))
    found.nodes(1, str(cpu))
    return found


def leader(found: Cluster, body: Json) -> list[str]:
    return operators.lws(found, body, 0, workers=False)


def workers(found: Cluster, body: Json) -> list[str]:
    return operators.lws(found, body, 0, leader=False)


def test_two_leaders_do_not_take_the_room_of_each_others_workers() -> None:
    found, one, other = cluster(4), lws("one"), lws("other")
    leader(found, one)
    leader(found, other)
    found.settle(30)
    assert set(found.bound) == {"one-0"}
    told = found.told("other-0")
    assert "grouped by rule leaderworkerset" in told
    assert "2 pods of other/0/workers" in told
    workers(found, one)
    found.settle(30)
    assert set(found.bound) == {"one-0", "one-0-1", "one-0-2"}
    for pod in list(found.bound):
        found.delete("pod", pod)
    found.settle(30)
    assert set(found.bound) == {"other-0"}
    workers(found, other)
    found.settle(30)
    assert set(found.bound) == {"other-0", "other-0-1", "other-0-2"}


def test_whoever_waits_for_held_room_is_told_whose_it_is() -> None:
    found = cluster(3)
    leader(found, lws("one"))
    found.settle(5)
    found.pod("small")
    found.settle(30)
    assert set(found.bound) == {"one-0"}
    assert "room is held for default/one/0/workers" in found.told("small")


def test_held_room_is_free_again_when_the_first_part_goes() -> None:
    found = cluster(3)
    leader(found, lws("one"))
    found.settle(5)
    found.pod("small")
    found.settle(30)
    found.delete("pod", "one-0")
    found.settle(30)
    assert set(found.bound) == {"small"}


def test_room_is_held_while_the_next_part_comes_pod_by_pod() -> None:
    found, body = cluster(3), lws("one")
    leader(found, body)
    found.settle(5)
    labels = {f"leaderworkerset.sigs.k8s.io/{key}": value for key, value in (("name", "one"), ("group-index", "0"))}
    size = {"leaderworkerset.sigs.k8s.io/size": "3"}
    found.pod("one-0-1", None, {**labels, "leaderworkerset.sigs.k8s.io/worker-index": "1"}, size)
    found.settle(30)
    found.pod("small")
    found.settle(30)
    assert set(found.bound) == {"one-0"}
    found.pod("one-0-2", None, {**labels, "leaderworkerset.sigs.k8s.io/worker-index": "2"}, size)
    found.settle(30)
    assert set(found.bound) == {"one-0", "one-0-1", "one-0-2"}


def test_room_is_held_again_by_a_scheduler_that_starts_anew() -> None:
    found, body = cluster(3), lws("one")
    leader(found, body)
    found.settle(5)
    found.restart()
    found.settle(5)
    found.pod("small")
    found.settle(30)
    assert set(found.bound) == {"one-0"}
    workers(found, body)
    found.settle(30)
    assert set(found.bound) == {"one-0", "one-0-1", "one-0-2"}


def test_parts_in_order_hold_room_for_all_that_follow() -> None:
    found, one, other = cluster(6), jobset("one", {"a": 1, "b": 2, "c": 2}), jobset("other", {"a": 1, "b": 1})
    operators.jobset(found, one, only="a")
    operators.jobset(found, other, only="a")
    found.settle(30)
    assert set(found.bound) == {"one-a-0-0"}
    operators.jobset(found, one, only="b")
    found.settle(30)
    assert len(found.bound) == 3
    operators.jobset(found, one, only="c")
    found.settle(30)
    assert len(found.bound) == 5


@pytest.mark.parametrize(("status", "held"), [("Ready", True), ("Complete", False)])
def test_what_follows_a_part_that_ends_needs_no_room_beside_it(status: str, held: bool) -> None:
    found = cluster(2)
    operators.jobset(found, jobset("one", {"a": 1, "b": 2}, depends=status), only="a")
    found.settle(30)
    assert bool(found.bound) is not held


def test_parts_that_depend_on_nothing_start_together() -> None:
    """Else two JobSets could each have one of theirs."""
    found, body = cluster(3), jobset("one", {"a": 2, "b": 2, "c": 1})
    body["spec"].pop("startupPolicy")
    body["spec"]["replicatedJobs"][2]["dependsOn"] = [{"name": "a", "status": "Complete"}]
    operators.jobset(found, body, only="a")
    operators.jobset(found, body, only="b")
    found.settle(30)
    assert not found.bound
    found.nodes(1, "1")
    found.settle(30)
    assert len(found.bound) == 4


def test_an_mpi_launcher_has_room_when_its_workers_are_ready() -> None:
    found = cluster(2)
    replicas = {"Launcher": {"template": template()}, "Worker": {"replicas": 2, "template": template()}}
    spec = {"mpiReplicaSpecs": replicas, "launcherCreationPolicy": "WaitForWorkersReady"}
    body = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "pi"}, "spec": spec}
    operators.kubeflow(found, body, "mpiReplicaSpecs", without="launcher")
    found.settle(30)
    assert not found.bound
    assert "1 pod of pi/launcher" in found.told("pi-worker-0")
    found.nodes(1, "1")
    found.settle(30)
    assert len(found.bound) == 2
    operators.mpi_launcher(found, body)
    found.settle(30)
    assert len(found.bound) == 3


def spark(name: str, **executor: Any) -> Json:
    spec = {
        "type": "Scala",
        "driver": {"cores": 1, "schedulerName": "kohort"},
        "executor": {"instances": 2, "cores": 1, "memory": "512m", "schedulerName": "kohort", **executor},
    }
    api = "sparkoperator.k8s.io/v1beta2"
    return {"apiVersion": api, "kind": "SparkApplication", "metadata": {"name": name}, "spec": spec}


def test_spark_drivers_do_not_fill_a_cluster_without_room_for_executors() -> None:
    found, one, other = cluster(4), spark("one"), spark("other")
    operators.spark_driver(found, one)
    operators.spark_driver(found, other)
    found.settle(30)
    assert set(found.bound) == {"one-driver"}
    assert "2 pods of other/executors" in found.told("other-driver")
    operators.spark_executors(found, one, 2)
    found.settle(30)
    assert len(found.bound) == 3


def test_a_driver_under_yunikorn_starts_with_room_for_its_task_groups() -> None:
    tasks = (
        '[{"name": "spark-driver", "minMember": 1, "minResource": {"cpu": "1"}},'
        ' {"name": "spark-executor", "minMember": 2, "minResource": {"cpu": "1"}}]'
    )
    found = cluster(2)
    labels = {"applicationId": "app", **operators.spark_labels("app", "driver", operator=False)}
    notes = {"yunikorn.apache.org/task-group-name": "spark-driver", "yunikorn.apache.org/task-groups": tasks}
    found.pod("driver", None, labels, notes)
    found.settle(30)
    assert not found.bound
    found.nodes(1, "1")
    found.settle(30)
    assert set(found.bound) == {"driver"}


@pytest.mark.parametrize("where", ["owner", "pod"])
def test_whoever_says_so_starts_without_room_for_what_follows(where: str) -> None:
    found, body = cluster(1), lws("one")
    if where == "owner":
        body["metadata"]["annotations"] = {"kohort.dev/reserve": "false"}
    leader(found, body)
    if where == "pod":
        found.objects["pod"]["one-0"]["metadata"]["annotations"]["kohort.dev/reserve"] = "false"
        found.tell("pod", "one-0")
    found.settle(30)
    assert set(found.bound) == {"one-0"}


def test_parts_for_another_scheduler_are_its_business() -> None:
    found = cluster(1)
    leader(found, lws("one", schedulerName="default-scheduler"))
    found.settle(30)
    assert set(found.bound) == {"one-0"}


def test_a_more_important_workload_makes_room_for_all_of_its_parts() -> None:
    found = cluster(3)
    for number in range(3):
        found.pod(f"low-{number}")
    found.settle(5)
    body = lws("high")
    leader(found, body)
    found.objects["pod"]["high-0"]["spec"]["priority"] = 10
    found.tell("pod", "high-0")
    found.settle(30)
    assert len(found.evicted) == 3
    assert set(found.bound) == {"high-0"}
    for pod in workers(found, body):
        found.objects["pod"][pod]["spec"]["priority"] = 10
        found.tell("pod", pod)
    found.settle(30)
    assert len(found.bound) == 3


def test_workers_that_must_be_where_their_leader_is_have_room_there() -> None:
    """exclusive-topology: the leader goes where all of its group can be."""
    found, body = Cluster(), lws("one")
    found.nodes(1, "1", zone="a")
    found.nodes(1, "3", zone="b")
    body["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "zone"}
    leader(found, body)
    found.settle(30)
    assert found.bound == {"one-0": "n1"}


def test_a_part_that_was_there_is_not_held_room_for_again() -> None:
    found, body = cluster(3), lws("one")
    leader(found, body)
    found.settle(5)
    gone = workers(found, body)
    found.settle(5)
    assert len(found.bound) == 3
    for pod in gone:
        found.delete("pod", pod)
    found.pod("small")
    found.settle(30)
    assert "small" in found.bound


def test_room_is_held_after_a_part_that_has_succeeded_until_its_pods_are_gone() -> None:
    """In order means ready, and a part that has ended was."""
    found, body = cluster(3), jobset("one", {"a": 1, "b": 3})
    (pod,) = operators.jobset(found, body, only="a")
    found.nodes(1, "1")
    found.settle(5)
    found.objects["pod"][pod]["status"] = {"phase": "Succeeded"}
    found.tell("pod", pod)
    found.settle(5)
    for name in ("small", "smaller"):
        found.pod(name)
    found.settle(30)
    assert set(found.bound) - {pod} == {"small"}, "the part that has ended leaves its room, the next has its own"
    found.delete("pod", pod)
    found.settle(30)
    assert {"small", "smaller"} <= set(found.bound)
    found.core.cache.later.release("nobody")
    assert not list(found.core.cache.reservations)


def test_a_part_that_fails_holds_nothing() -> None:
    found = cluster(3)
    leader(found, lws("one"))
    found.settle(5)
    found.objects["pod"]["one-0"]["status"] = {"phase": "Failed"}
    found.tell("pod", "one-0")
    found.pod("small")
    found.settle(30)
    assert "small" in found.bound


def test_numbers_that_nobody_can_mean_are_not_counted_out() -> None:
    found = cluster(3)
    (pod,) = operators.jobset(found, jobset("one", {"a": 1, "b": 2**31 - 1}), only="a")
    found.settle(30)
    assert found.bound == {}
    assert "10000 pods of one/b" in found.told(pod)
