"""`schedulingGroup` for kube-scheduler: the objects that a webhook makes say what the scheduler's own trees say."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from tests.grouping import operators
from tests.grouping.cluster import Cluster, sample

from kohort import validate
from kohort.grouping.model import Kind
from kohort.grouping.schedulinggroup import Alone, Assigned, Seen, Wanted, assign, change
from kohort.grouping.settings import Grouping

Json = dict[str, Any]


def one(name: str, **metadata: Any) -> Json:
    (body,) = (found for found in sample(name) if found["kind"] != "Pod")
    body["metadata"] |= metadata
    return body


def looked_up(pod: Json, cluster: Cluster, seen: Seen | None = None, **more: Any) -> Assigned | Alone:
    """As a webhook does it, with the cluster's objects."""
    seen = seen or Seen()
    for _ in range(9):
        answer = assign(pod, seen, Grouping(), **more)
        if not isinstance(answer, Wanted):
            return answer
        body = cluster.things.get((answer.kind.name, answer.name))
        same = body is not None and Kind(body["apiVersion"].rpartition("/")[0], body["kind"]) == answer.kind
        seen.put(answer, body if same else None)
    raise AssertionError("it asks without end")


def tree_of(objects: dict[tuple[str, str], Json]) -> dict[str, tuple[int | None, str | None]]:
    """Groups by name: their minimum, and the group above."""
    found = {}
    for (kind, name), one in objects.items():
        if kind == "Workload":
            continue
        gang = one["spec"]["schedulingPolicy"].get("gang") or {}
        found[name] = (gang.get("minCount", gang.get("minGroupCount")), one["spec"].get("parentCompositePodGroupName"))
    return found


def made_by(cluster: Cluster, **more: Any) -> tuple[dict[tuple[str, str], Json], dict[str, str]]:
    """All objects that the pods of a cluster ask for, and the group of each pod."""
    objects: dict[tuple[str, str], Json] = {}
    groups = {}
    for name, pod in cluster.objects["pod"].items():
        answer = looked_up(pod, cluster, **more)
        if isinstance(answer, Alone):
            assert not answer.problem
            continue
        groups[name] = answer.link["schedulingGroup"]["podGroupName"]
        for wanted in answer.objects:
            known = objects.setdefault((wanted["kind"], wanted["metadata"]["name"]), wanted)
            assert change(known, wanted) is None, "every pod asks for the same"
    return objects, groups


def own_keys(cluster: Cluster) -> None:
    for index in range(2):
        cluster.pod(f"p{index}", None, {"kohort.dev/pod-group": "g"}, {"kohort.dev/min-count": "2"})


OPERATORS: dict[str, Callable[[Cluster], object]] = {
    "jobset": lambda found: operators.jobset(found, one("jobset-coordinator")),
    "jobset in order": lambda found: operators.jobset(found, one("jobset-in-order")),
    "jobset exclusive": lambda found: operators.jobset(found, one("jobset-exclusive")),
    "lws": lambda found: [operators.lws(found, one("lws"), group) for group in (0, 1)],
    "pytorch": lambda found: operators.kubeflow(found, one("pytorch"), "pytorchReplicaSpecs"),
    "ray": lambda found: operators.ray(found, one("ray")),
    "spark": lambda found: operators.spark_executors(found, found.own(one("spark")), 3),
    "kohort": own_keys,
}


@pytest.mark.parametrize("what", OPERATORS)
def test_the_objects_are_valid_and_say_what_the_scheduler_would_do(what: str) -> None:
    cluster = Cluster()
    OPERATORS[what](cluster)
    objects, groups = made_by(cluster)
    assert set(groups) == set(cluster.objects["pod"])
    assert validate(list(objects.values())) == []
    ours = {name.replace("/", "-"): (least, above) for name, (least, above) in cluster.tree().items()}
    theirs = tree_of(objects)
    assert {name.rpartition("-")[0]: least for name, (least, _) in theirs.items()} == {
        name: least for name, (least, _) in ours.items()
    }
    for name, (_, above) in theirs.items():
        parent = ours[name.rpartition("-")[0]][1]
        assert (above.rpartition("-")[0] if above else None) == parent
    assert set(groups.values()) <= set(theirs)


def test_objects_go_with_their_owner_and_say_who_made_them() -> None:
    cluster = Cluster()
    operators.jobset(cluster, one("jobset-coordinator"))
    objects, _ = made_by(cluster)
    assert {kind for kind, _ in objects} == {"Workload", "CompositePodGroup", "PodGroup"}
    for (kind, _), made in objects.items():
        meta = made["metadata"]
        assert [one["kind"] for one in meta["ownerReferences"]] == ["JobSet"]
        assert meta["labels"]["app.kubernetes.io/managed-by"] == "kohort"
        if kind != "Workload":
            assert meta["annotations"]["kohort.dev/grouped-by"] == "rule jobset (JobSet default/coordinator-example)"


def test_another_owner_of_the_same_name_has_other_groups() -> None:
    names = []
    for uid in ("first", "second"):
        cluster = Cluster()
        operators.kubeflow(cluster, one("pytorch", uid=uid), "pytorchReplicaSpecs")
        names.append(set(made_by(cluster)[1].values()))
    assert names[0].isdisjoint(names[1])


def test_without_composites_a_tree_whose_parts_are_all_needed_is_one_gang() -> None:
    cluster = Cluster()
    operators.jobset(cluster, one("jobset-coordinator"))
    objects, groups = made_by(cluster, composites=False)
    assert [least for least, _ in tree_of(objects).values()] == [5]
    assert len(set(groups.values())) == 1
    answer = looked_up(next(iter(cluster.objects["pod"].values())), cluster, composites=False)
    assert isinstance(answer, Assigned)
    assert answer.warnings == (
        "coordinator-example is one gang of 5 pods, not a tree: CompositePodGroups are not served here",
    )


def test_kubernetes_1_36_gets_its_own_version_and_1_35_nothing() -> None:
    cluster = Cluster()
    operators.kubeflow(cluster, one("pytorch"), "pytorchReplicaSpecs")
    pod = next(iter(cluster.objects["pod"].values()))
    older = looked_up(pod, cluster, served="1.36")
    assert isinstance(older, Assigned)
    assert [one["apiVersion"] for one in older.objects] == ["scheduling.k8s.io/v1alpha2"]
    assert looked_up(pod, cluster, served="1.35") == Alone()


def test_more_groups_than_a_workload_has_room_for_are_one_gang() -> None:
    cluster, body = Cluster(), one("ray")
    small = body["spec"]["workerGroupSpecs"][0]
    body["spec"]["workerGroupSpecs"] = [{**small, "groupName": f"g{index}"} for index in range(8)]
    operators.ray(cluster, body)
    objects, _ = made_by(cluster)
    assert {kind for kind, _ in objects} == {"PodGroup"}
    assert validate(list(objects.values())) == []


def test_pods_that_name_a_group_or_no_rule_knows_stay_as_they_are() -> None:
    cluster = Cluster()
    cluster.pod("plain")
    operators.kubeflow(cluster, one("pytorch"), "pytorchReplicaSpecs")
    assert looked_up(cluster.objects["pod"]["plain"], cluster) == Alone()
    pod = deepcopy(cluster.objects["pod"]["pytorch-simple-master-0"])
    pod["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    assert looked_up(pod, cluster) == Alone()


def test_a_group_that_asks_for_nothing_is_not_made() -> None:
    """An MPI launcher that comes after its workers."""
    cluster, body = Cluster(), one("mpi")
    body["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    cluster.own(body)
    name = operators.mpi_launcher(cluster, body)
    assert looked_up(cluster.objects["pod"][name], cluster) == Alone()


def test_what_cannot_be_meant_is_told_and_the_pod_stays() -> None:
    cluster = Cluster()
    cluster.pod("wrong", None, {"kohort.dev/pod-group": "g"}, {"kohort.dev/min-count": "many"})
    answer = looked_up(cluster.objects["pod"]["wrong"], cluster)
    assert isinstance(answer, Alone)
    assert "kohort.dev/min-count=many" in answer.problem


def test_priority_class_and_topology_of_the_pod_are_the_groups() -> None:
    cluster = Cluster()
    notes = {"kohort.dev/min-count": "2", "kohort.dev/topology": "topology.kubernetes.io/rack=required,zone=preferred"}
    cluster.pod("p", None, {"kohort.dev/pod-group": "g"}, notes, priorityClassName="high")
    answer = looked_up(cluster.objects["pod"]["p"], cluster)
    assert isinstance(answer, Assigned)
    (made,) = answer.objects
    assert made["spec"]["priorityClassName"] == "high"
    assert made["spec"]["schedulingConstraints"] == {"topology": [{"key": "topology.kubernetes.io/rack"}]}
    assert answer.warnings == (
        "topology: zone: kube-scheduler knows one required label key of nodes, and nothing else",
    )


def test_a_minimum_follows_its_owner_and_a_second_owner_is_added() -> None:
    def group(least: int, owner: str) -> Json:
        cluster = Cluster()
        job = cluster.own({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": owner}, "spec": {}})
        cluster.pod("p", job, {"kohort.dev/pod-group": "g"}, {"kohort.dev/min-count": str(least)})
        answer = looked_up(cluster.objects["pod"]["p"], cluster)
        assert isinstance(answer, Assigned)
        return answer.objects[0]

    existing = group(2, "a")
    existing["metadata"]["resourceVersion"] = "7"
    assert change(existing, group(2, "a")) is None
    patch = change(existing, group(3, "b"))
    assert patch is not None
    assert patch["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert [one["name"] for one in patch["metadata"]["ownerReferences"]] == ["a", "b"]
    assert patch["metadata"]["resourceVersion"] == "7", "nobody else's owner is lost"
