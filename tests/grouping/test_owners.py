"""Rules for owners: each plays a published sample with pods as its operator makes them, all or none of them placed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.grouping import operators
from tests.grouping.cluster import Cluster, sample, settings

Json = dict[str, Any]


def one(name: str, **metadata: Any) -> Json:
    (body,) = sample(name)
    body["metadata"] |= metadata
    return body


def cluster(nodes: int = 1, cpu: str = "4", **more: Any) -> Cluster:
    made = Cluster(**more)
    made.nodes(nodes, cpu)
    return made


# ---- Job


JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "sums"},
    "spec": {"parallelism": 5, "completions": 8},
}


def test_a_job_that_does_not_ask_is_no_gang() -> None:
    found = cluster()
    operators.job(found, deepcopy(JOB))
    found.settle()
    assert len(found.bound) == 4
    assert found.tree() == {}


@pytest.mark.parametrize("where", ["job", "pod"])
def test_a_job_that_asks_starts_together_or_not_at_all(where: str) -> None:
    found, body = cluster(), deepcopy(JOB)
    asks = {"kohort.dev/gang": "true"}
    if where == "job":
        body["metadata"]["annotations"] = asks
    else:
        body["spec"]["template"] = {"metadata": {"annotations": asks}}
    operators.job(found, body)
    found.settle()
    assert found.tree() == {"sums": (5, None)}
    assert found.bound == {}
    assert "grouped by rule job (Job default/sums, annotation kohort.dev/gang=true)" in found.told("sums-0")
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 5


def test_the_minimum_of_a_job_follows_its_parallelism() -> None:
    found, body = cluster(cpu="2"), deepcopy(JOB)
    body["metadata"]["annotations"] = {"kohort.dev/gang": "true"}
    body["spec"]["parallelism"] = 3
    operators.job(found, body)
    found.settle()
    assert found.bound == {}
    found.own({**body, "spec": {**body["spec"], "parallelism": 2}})
    found.settle(30)
    assert found.tree() == {"sums": (2, None)}
    assert len(found.bound) == 2


@pytest.mark.parametrize("key", ["scheduling.volcano.sh/group-min-member", "kai.scheduler/batch-min-member"])
def test_annotations_of_other_schedulers_on_a_job_ask_as_well(key: str) -> None:
    found, body = cluster(cpu="2"), deepcopy(JOB)
    body["metadata"]["annotations"] = {key: "3"}
    operators.job(found, body)
    found.settle()
    assert found.tree() == {"sums": (3, None)}
    assert found.bound == {}


def test_ranks_that_are_near_sit_near() -> None:
    found, body = cluster(2, "2"), deepcopy(JOB)
    body["metadata"]["annotations"] = {"kohort.dev/gang": "true"}
    body["spec"] |= {"parallelism": 4, "completions": 4}
    found.own(body)
    for index in (3, 1, 2, 0):
        found.pod(f"sums-{index}", body, {"batch.kubernetes.io/job-completion-index": str(index)})
    found.settle()
    assert found.bound["sums-0"] == found.bound["sums-1"] != found.bound["sums-2"] == found.bound["sums-3"]


def test_a_pod_that_comes_before_its_job_waits_for_it_and_then_joins() -> None:
    found, body = cluster(), deepcopy(JOB)
    body["metadata"] |= {"annotations": {"kohort.dev/gang": "true"}, "uid": "j"}
    found.pod("sums-0", body)
    found.settle()
    assert found.bound == {}, "it may be a gang"
    found.own(body)
    found.settle()
    assert found.tree() == {"sums": (5, None)}
    assert found.bound == {}


def test_a_job_that_never_comes_is_taken_for_gone() -> None:
    found = cluster()
    found.pod("left-0", {**JOB, "metadata": {"name": "left", "uid": "x"}})
    found.later(8)
    assert found.bound == {"left-0": "n0"}


# ---- JobSet


def test_a_jobset_is_a_tree_of_its_replicated_jobs() -> None:
    found = cluster()
    operators.jobset(found, one("jobset-coordinator"))
    found.settle()
    assert found.tree() == {
        "coordinator-example": (2, None),
        "coordinator-example/driver": (1, "coordinator-example"),
        "coordinator-example/workers": (4, "coordinator-example"),
    }
    assert found.bound == {}
    assert "rule jobset (JobSet default/coordinator-example)" in found.told("coordinator-example-driver-0-0")
    event = next(one for one in found.events if one.regarding.kind == "JobSet")
    assert event.regarding.api_version == "jobset.x-k8s.io/v1alpha2"
    assert "cannot be satisfied" in event.text
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 5


def test_a_part_of_a_jobset_waits_for_the_rest() -> None:
    found = cluster(2)
    operators.jobset(found, one("jobset-coordinator"), only="workers")
    found.later()
    assert found.bound == {}
    assert "WaitingForMembers: 1 of 2 groups" in found.told("coordinator-example-workers-0-0")
    operators.jobset(found, one("jobset-coordinator"), only="driver")
    found.settle(30)
    assert len(found.bound) == 5


def test_a_jobset_that_says_no_is_no_gang() -> None:
    found = cluster()
    operators.jobset(found, one("jobset-coordinator", annotations={"kohort.dev/gang": "false"}))
    found.settle()
    assert len(found.bound) == 4


def test_the_tree_of_a_jobset_follows_its_replicas() -> None:
    found, body = cluster(), one("jobset-coordinator")
    operators.jobset(found, body)
    found.settle()
    smaller = deepcopy(body)
    smaller["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 3, "completions": 3}
    found.own(smaller)
    found.settle(30)
    assert found.tree()["coordinator-example/workers"] == (3, "coordinator-example")
    assert len(found.bound) == 4, "the minimum of both, and no more room"


def test_order_in_order_starts_each_replicated_job_by_itself() -> None:
    found, body = cluster(), one("jobset-in-order")
    operators.jobset(found, body, only="driver")
    found.settle()
    assert found.bound == {"startup-policy-driver-0-0": "n0"}, "nothing else exists before it is ready"
    operators.jobset(found, body, only="workers")
    found.settle()
    assert len(found.bound) == 1, "4 workers together, room for 3"
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 5


def test_order_depends_on_starts_each_replicated_job_by_itself() -> None:
    found, body = cluster(), one("jobset-depends-on")
    operators.jobset(found, body, only="leader")
    found.settle()
    assert len(found.bound) == 1
    operators.jobset(found, body, only="worker")
    found.settle()
    assert len(found.bound) == 4


def test_order_exclusive_placement_starts_the_first_pods_first() -> None:
    """JobSet's webhook admits the others once the first of their Job has a node."""
    found, body = cluster(cpu="6"), one("jobset-exclusive")
    operators.jobset(found, body, leaders=True)
    found.settle()
    assert len(found.bound) == 2
    operators.jobset(found, body, followers=True)
    found.settle()
    assert len(found.bound) == 6
    assert found.tree()["exclusive-placement/workers/0"] == (2, None)


def test_node_selectors_of_exclusive_placement_need_no_order() -> None:
    found, body = cluster(cpu="5"), one("jobset-exclusive")
    body["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/node-selector"] = "true"
    operators.jobset(found, body)
    found.settle()
    assert found.tree() == {"exclusive-placement/workers": (6, None)}
    assert found.bound == {}


def test_a_trainjob_is_grouped_by_its_jobset() -> None:
    found, body = cluster(), one("jobset-coordinator")
    train = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "mnist", "uid": "t"}
    body["metadata"]["ownerReferences"] = [{**train, "controller": True}]
    operators.jobset(found, body)
    found.settle()
    assert found.bound == {}
    assert "rule trainjob (TrainJob default/mnist, its JobSet coordinator-example)" in found.told(
        "coordinator-example-workers-0-0"
    )
    assert {one.regarding.name for one in found.events if one.regarding.kind == "TrainJob"} == {"mnist"}


def test_pods_of_an_older_jobset_of_the_same_name_do_not_count() -> None:
    found, body = cluster(2), one("jobset-coordinator", uid="new")
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "coordinator-example",
        "jobset.sigs.k8s.io/jobset-uid": "old",
        "jobset.sigs.k8s.io/replicatedjob-name": "driver",
    }
    found.own(body)
    found.pod("leftover", None, labels)
    operators.jobset(found, body, only="workers")
    found.settle()
    assert set(found.bound) == {"leftover"}


# ---- LeaderWorkerSet


def test_each_replica_of_a_leaderworkerset_is_a_gang() -> None:
    found = cluster(cpu="5")
    for group in (0, 1):
        operators.lws(found, one("lws"), group)
    found.settle()
    assert found.tree() == {f"leaderworkerset-sample/{group}": (4, None) for group in (0, 1)}
    assert len(found.bound) == 4


@pytest.mark.parametrize("why", ["LeaderReady", "exclusive-topology", "not readable"])
def test_order_leader_first(why: str) -> None:
    found, body = cluster(unread=("LeaderWorkerSet",) if why == "not readable" else ()), one("lws")
    if why == "LeaderReady":
        body["spec"]["startupPolicy"] = why
    elif why == "exclusive-topology":
        body["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
    operators.lws(found, body, 0, workers=False)
    found.settle()
    assert found.bound == {"leaderworkerset-sample-0": "n0"}
    operators.lws(found, body, 0, leader=False)
    found.settle()
    assert len(found.bound) == 4


# ---- training operators


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs"),
        ("TFJob", "tfReplicaSpecs"),
        ("JAXJob", "jaxReplicaSpecs"),
        ("XGBoostJob", "xgbReplicaSpecs"),
        ("PaddleJob", "paddleReplicaSpecs"),
    ],
)
def test_replicas_of_a_training_job_start_together(kind: str, field: str) -> None:
    found, body = cluster(cpu="3"), one("pytorch")
    body |= {"kind": kind, "spec": {field: body["spec"]["pytorchReplicaSpecs"]}}
    operators.kubeflow(found, body, field)
    found.settle()
    assert found.tree() == {"pytorch-simple": (4, None)}
    assert found.bound == {}
    assert f"rule kubeflow ({kind} default/pytorch-simple)" in found.told("pytorch-simple-master-0")


def test_min_available_counts() -> None:
    found, body = cluster(cpu="3"), one("pytorch")
    body["spec"]["runPolicy"] = {"schedulingPolicy": {"minAvailable": 3, "queue": "team-a"}}
    operators.kubeflow(found, body, "pytorchReplicaSpecs")
    found.settle()
    assert len(found.bound) == 3
    assert found.status("pytorch-simple-master-0").queue == "team-a"


def test_elastic_training_starts_with_as_few_workers_as_it_says() -> None:
    found, body = cluster(cpu="2"), one("pytorch")
    body["spec"]["elasticPolicy"] = {"minReplicas": 1, "maxReplicas": 3}
    operators.kubeflow(found, body, "pytorchReplicaSpecs")
    found.settle()
    assert len(found.bound) == 2


def test_an_mpi_launcher_that_is_made_at_once_belongs_to_the_gang() -> None:
    found, body = cluster(cpu="2"), one("mpi")
    operators.kubeflow(found, body, "mpiReplicaSpecs", without="launcher")
    operators.mpi_launcher(found, body)
    found.settle()
    assert found.tree() == {"pi": (3, None)}
    assert found.bound == {}


def test_order_an_mpi_launcher_after_its_workers() -> None:
    found, body = cluster(), one("mpi")
    body["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    operators.kubeflow(found, body, "mpiReplicaSpecs", without="launcher")
    found.settle()
    assert len(found.bound) == 2, "the launcher is not waited for"
    launcher = operators.mpi_launcher(found, body)
    found.settle()
    assert launcher in found.bound


def test_order_an_mpi_launcher_of_the_training_operator() -> None:
    """v1.9 makes it right after the workers, and it waits for them inside: it must not take room before they do."""
    found, body = cluster(cpu="2"), one("mpi")
    body["apiVersion"] = "kubeflow.org/v1"
    operators.kubeflow(found, body, "mpiReplicaSpecs")
    found.settle()
    assert found.bound == {}
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 3


# ---- Ray


def test_a_raycluster_is_a_tree_of_head_and_worker_groups() -> None:
    found = cluster(cpu="5")
    operators.ray(found, one("ray"))
    found.settle()
    assert found.tree() == {
        "raycluster-complete": (3, None),
        "raycluster-complete/gpu-group": (4, "raycluster-complete"),
        "raycluster-complete/head": (1, "raycluster-complete"),
        "raycluster-complete/small-group": (1, "raycluster-complete"),
    }
    assert found.bound == {}
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 6


def test_a_raycluster_that_grows_waits_for_what_it_lacks_and_not_for_its_head() -> None:
    found, body = cluster(2, "2"), one("ray")
    body["spec"] = {"workerGroupSpecs": [{"groupName": "w", "replicas": 1, "minReplicas": 1}]}
    operators.ray(found, body)
    found.pod("other")
    found.settle()
    assert len(found.bound) == 3
    body = deepcopy(body)
    body["spec"]["workerGroupSpecs"][0]["replicas"] = 3
    found.own(body)
    name = body["metadata"]["name"]
    for number in (1, 2):
        labels = {"ray.io/cluster": name, "ray.io/node-type": "worker", "ray.io/group": "w"}
        found.pod(f"{name}-w-{number}", body, labels)
    found.settle(30)
    waits = found.status(f"{name}-w-1").explanation
    assert waits is not None
    assert waits.detail.startswith("2 of its 2 groups must fit, 1 can; first cause: 2 pods need 2 cpu, 2 nodes have 1")
    assert [one.ok for one in waits.children] == [True, False]
    told = found.told(f"{name}-w-1")
    assert "with a minimum of 2, now" in told  # its own words for that are the operator's
    assert "minCount" not in told
    events = [one.text for one in found.events if one.regarding.kind == "RayCluster"]
    assert any(f"in default/{name}/w (level 1)" in one for one in events)
    assert not any("minGroupCount 1, now" in one for one in events)


def test_an_autoscaling_raycluster_needs_its_least_workers() -> None:
    found, body = cluster(cpu="2"), one("ray")
    body["spec"]["enableInTreeAutoscaling"] = True
    operators.ray(found, body)
    found.settle()
    assert found.tree()["raycluster-complete"] == (2, None), "the gpu group may shrink to nothing"
    assert set(found.bound) == {"raycluster-complete-head", "raycluster-complete-small-group-0"}


def test_the_submitter_of_a_rayjob_stays_outside() -> None:
    found = cluster(cpu="1")
    operators.ray(found, one("ray"))
    submitter = {**JOB, "metadata": {"name": "rayjob-submit"}, "spec": {"parallelism": 1, "completions": 1}}
    operators.job(found, submitter, {"ray.io/cluster": "raycluster-complete"})
    found.settle()
    assert set(found.bound) == {"rayjob-submit-0"}


def test_a_raycluster_may_refuse_to_be_a_gang() -> None:
    found = cluster(cpu="2")
    operators.ray(found, one("ray", labels={"ray.io/gang-scheduling-enabled": "false"}))
    found.settle()
    assert len(found.bound) == 2


# ---- Spark


def test_order_a_spark_driver_starts_before_its_executors() -> None:
    found, body = cluster(cpu="3"), one("spark")
    operators.spark_driver(found, body)
    found.settle()
    assert set(found.bound) == {"spark-pi-driver"}
    operators.spark_executors(found, body, 3)
    found.settle()
    assert len(found.bound) == 1, "3 executors together, room for 2"
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 4


def test_order_executors_are_waited_for_a_batch_at_a_time() -> None:
    found, body = cluster(4, cpu="10"), one("spark")
    body["spec"]["executor"]["instances"] = 30
    operators.spark_driver(found, body)
    operators.spark_executors(found, body, 10)
    found.settle()
    assert len(found.bound) == 11


def test_executors_without_an_operator_say_it_themselves() -> None:
    found = cluster(cpu="1")
    labels = operators.spark_labels("pi", "executor", operator=False)
    for index in range(2):
        found.pod(f"pi-{index}", None, labels, {"kohort.dev/min-count": "2"})
    found.settle()
    assert found.tree() == {"spark-pi/executors": (2, None)}
    assert found.bound == {}


# ---- StatefulSet, Deployment


def replicas(kind: str, **spec: Any) -> Json:
    meta = {"name": "db", "uid": "r", "annotations": {"kohort.dev/gang": "true"}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"replicas": 3, **spec}}


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet"])
def test_replicas_that_ask_are_a_gang(kind: str) -> None:
    found, body = cluster(cpu="2"), replicas(kind, podManagementPolicy="Parallel")
    found.own(body)
    for index in range(3):
        found.pod(f"db-{index}", body, {"apps.kubernetes.io/pod-index": str(index)})
    found.settle()
    assert found.tree() == {"db": (3, None)}
    assert found.bound == {}


def test_replicas_that_do_not_ask_are_no_gang() -> None:
    found, body = cluster(cpu="2"), replicas("StatefulSet")
    del body["metadata"]["annotations"]
    found.own(body)
    for index in range(3):
        found.pod(f"db-{index}", body)
    found.settle()
    assert len(found.bound) == 2


def test_order_a_statefulset_that_makes_pods_one_by_one_cannot_be_a_gang() -> None:
    found, body = cluster(), replicas("StatefulSet")
    found.own(body)
    found.pod("db-0", body)
    found.settle()
    said = found.told("db-0")
    assert "Misconfigured" in said
    assert "kohort.dev/gang=true" in said
    assert "podManagementPolicy" in said
    found.own({**body, "metadata": {**body["metadata"], "annotations": {}}})
    found.settle(30)
    assert "db-0" in found.bound


# ---- Argo, Tekton


@pytest.mark.parametrize(("api", "kind"), [("argoproj.io/v1alpha1", "Workflow"), ("tekton.dev/v1", "TaskRun")])
def test_steps_of_a_workflow_start_one_by_one_and_what_it_makes_by_its_own_rule(api: str, kind: str) -> None:
    found = cluster()
    workflow = {"apiVersion": api, "kind": kind, "name": "w", "uid": "w", "controller": True}
    found.pod("step", {"apiVersion": api, "kind": kind, "metadata": {"name": "w", "uid": "w"}})
    operators.jobset(found, one("jobset-coordinator", ownerReferences=[workflow]))
    found.settle()
    assert set(found.bound) == {"step"}
    assert found.tree()["coordinator-example"] == (2, None)


# ---- beside others


def test_a_pod_of_another_scheduler_is_left_alone() -> None:
    found, body = cluster(), one("jobset-coordinator")
    found.own(body)
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "coordinator-example",
        "jobset.sigs.k8s.io/replicatedjob-name": "driver",
    }
    found.pod("theirs", None, labels, schedulerName="volcano")
    found.settle()
    assert found.bound == {}
    assert found.tree() == {}


def test_a_source_that_is_off_groups_nothing() -> None:
    found = cluster(settings=settings(sources=frozenset({"ray"})))
    operators.jobset(found, one("jobset-coordinator"))
    found.settle()
    assert len(found.bound) == 4


def test_namespaces_that_are_not_chosen_are_left_alone() -> None:
    found = cluster(settings=settings(namespaces=frozenset({"elsewhere"})))
    operators.jobset(found, one("jobset-coordinator"))
    found.settle()
    assert len(found.bound) == 4


def test_groups_are_there_again_after_a_restart_and_gone_with_their_pods() -> None:
    found = cluster()
    pods = operators.jobset(found, one("jobset-coordinator"))
    found.settle()
    tree = found.tree()
    found.restart()
    assert found.tree() == tree
    for pod in pods:
        found.delete("pod", pod)
    assert found.tree() == {}
    assert not list(found.core.cache.trees)


def test_an_object_of_a_strange_shape_stops_nobody_else() -> None:
    found, body = cluster(), one("jobset-coordinator")
    body["spec"]["replicatedJobs"] = ["what"]
    found.own(body)
    labels = {"jobset.sigs.k8s.io/jobset-name": "coordinator-example", "jobset.sigs.k8s.io/replicatedjob-name": "x"}
    found.pod("strange", None, labels)
    found.pod("other")
    found.settle()
    assert set(found.bound) == {"other"}
    assert "Misconfigured: rule jobset cannot read" in found.told("strange")
