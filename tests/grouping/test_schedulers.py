"""What pods say to other schedulers: published samples, all or none of their pods placed; and what comes first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.grouping import operators
from tests.grouping.cluster import Cluster, sample
from tests.grouping.test_owners import cluster, one
from tests.scheduler.short import create

Json = dict[str, Any]
KOORDINATOR = {
    "gang.scheduling.koordinator.sh/name": "gang-example",
    "gang.scheduling.koordinator.sh/min-available": "2",
}


def pods(
    found: Cluster, number: int, name: str = "p", labels: Json | None = None, annotations: Json | None = None
) -> None:
    for index in range(number):
        found.pod(f"{name}-{index}", None, labels, annotations)


# ---- Kohort's own, for clusters without the Workload API


def test_a_gang_by_kohorts_own_keys() -> None:
    found = cluster(cpu="3")
    notes = {"kohort.dev/min-count": "4", "kohort.dev/disruption-mode": "all"}
    pods(found, 4, labels={"kohort.dev/pod-group": "trainers"}, annotations=notes)
    found.settle()
    assert found.tree() == {"trainers": (4, None)}
    assert found.bound == {}
    assert found.core.cache.trees.group_infos["kohort:default/trainers"].disrupt_all
    status = found.status("p-0")
    assert (status.kind, status.name) == ("Gang", "trainers")
    assert status.grouped == "grouped by rule kohort (label kohort.dev/pod-group=trainers)"


def test_topology_by_kohorts_own_keys() -> None:
    found = Cluster()
    for rack in ("a", "b"):
        found.nodes(1, "2", rack=rack)
    notes = {"kohort.dev/min-count": "3", "kohort.dev/topology": "rack"}
    pods(found, 3, labels={"kohort.dev/pod-group": "trainers"}, annotations=notes)
    found.settle()
    assert found.bound == {}, "4 cpu are free, but in no rack are 3"
    found.nodes(1, "1", rack="b")
    found.settle(30)
    assert set(found.bound.values()) == {"n1", "n2"}


def test_a_tree_by_kohorts_own_keys() -> None:
    found = cluster(cpu="3")
    above = {"kohort.dev/parent-pod-group": "all", "kohort.dev/parent-min-group-count": "2"}
    for name in ("a", "b"):
        labels = {"kohort.dev/pod-group": name}
        pods(found, 2, name, labels=labels, annotations={"kohort.dev/min-count": "2", **above})
    found.settle()
    assert found.tree() == {"all": (2, None), "all/a": (2, "all"), "all/b": (2, "all")}
    assert found.bound == {}


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({"kohort.dev/min-count": "many"}, "annotation kohort.dev/min-count=many: accepted is a whole number"),
        ({"kohort.dev/disruption-mode": "some"}, "kohort.dev/disruption-mode=some: accepted are single and all"),
        ({"kohort.dev/parent-min-group-count": "2"}, "only together with kohort.dev/parent-pod-group"),
    ],
)
def test_what_cannot_be_meant_is_said(notes: Json, said: str) -> None:
    found = cluster()
    pods(found, 1, labels={"kohort.dev/pod-group": "x"}, annotations=notes)
    found.settle()
    assert found.bound == {}
    assert said in found.told("p-0")
    assert found.told("p-0").startswith("Misconfigured: ")


# ---- scheduler-plugins


@pytest.mark.parametrize("kind", ["scheduling.x-k8s.io", "scheduling.sigs.k8s.io"])
def test_a_podgroup_of_scheduler_plugins(kind: str) -> None:
    found, (body,) = cluster(cpu="2"), sample("scheduler-plugins")
    body["apiVersion"] = f"{kind}/v1alpha1"
    label = "scheduling.x-k8s.io/pod-group" if kind == "scheduling.x-k8s.io" else "pod-group.scheduling.sigs.k8s.io"
    pods(found, 3, labels={label: "nginx"})
    found.later()
    assert found.bound == {}
    assert "WaitingForPodGroup: rule scheduler-plugins: PodGroup default/nginx does not exist" in found.told("p-0")
    assert f"create it, or take label {label}=nginx from the pods" in found.told("p-0")
    found.own(body)
    found.settle()
    assert found.tree() == {"nginx": (3, None)}
    assert found.bound == {}
    found.nodes(1)
    found.settle(30)
    assert len(found.bound) == 3


def test_lightweight_coscheduling() -> None:
    found = cluster(cpu="2")
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "light", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}
    pods(found, 3, labels=labels)
    found.settle()
    assert found.tree() == {"light": (3, None)}
    assert found.bound == {}


# ---- Koordinator


def test_a_gang_of_koordinator() -> None:
    found = cluster(cpu="1")
    pods(found, 2, annotations=KOORDINATOR)
    found.settle()
    assert found.tree() == {"gang-example": (2, None)}
    assert found.bound == {}


def test_gang_groups_of_koordinator_are_one_tree() -> None:
    found = cluster(cpu="3")
    groups = json.dumps(["default/gang-a", "default/gang-b"])
    for name in ("gang-a", "gang-b"):
        notes = {**KOORDINATOR, "gang.scheduling.koordinator.sh/name": name}
        pods(found, 2, name, annotations={**notes, "gang.scheduling.koordinator.sh/groups": groups})
    found.settle()
    tree = found.tree()
    assert tree["default/gang-a + default/gang-b"] == (2, None)
    assert tree["default/gang-a"] == (2, "default/gang-a + default/gang-b")
    assert found.bound == {}


def test_members_that_do_not_agree_are_misconfigured() -> None:
    found = cluster()
    pods(found, 2, annotations=KOORDINATOR)
    other = {**KOORDINATOR, "gang.scheduling.koordinator.sh/min-available": "3"}
    pods(found, 1, "q", annotations=other)
    found.settle()
    assert "pods of gang-example do not agree: a minimum of 2" in found.told("q-0")
    found.delete("pod", "q-0")
    found.settle(30)
    assert len(found.bound) == 2


# ---- Volcano


def test_a_podgroup_of_volcano_with_tasks() -> None:
    found, (body,) = cluster(cpu="2"), sample("volcano")
    found.own(body)
    note = {"scheduling.k8s.io/group-name": body["metadata"]["name"]}
    pods(found, 1, "ps", annotations={**note, "volcano.sh/task-spec": "ps"})
    pods(found, 2, "worker", annotations={**note, "volcano.sh/task-spec": "worker"})
    found.settle()
    name = body["metadata"]["name"]
    assert found.tree() == {name: (2, None), f"{name}/ps": (1, name), f"{name}/worker": (2, name)}
    assert found.bound == {}
    assert found.status("ps-0").queue == "default"


def test_volcanos_annotation_without_its_podgroup_means_nothing() -> None:
    found = cluster()
    pods(found, 1, annotations={"scheduling.k8s.io/group-name": "nobody"})
    found.settle()
    assert found.bound == {}, "the PodGroup may be on its way"
    found.later(8)
    assert len(found.bound) == 1


def test_leaderworkerset_with_volcano_is_grouped_by_the_podgroup() -> None:
    found, body = cluster(), one("lws")
    found.own(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "lws-0"},
            "spec": {"minMember": 1},
        }
    )
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "leaderworkerset-sample",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
    }
    found.own(body)
    found.pod("leader", None, labels, {"scheduling.k8s.io/group-name": "lws-0"})
    found.settle()
    assert set(found.bound) == {"leader"}


# ---- Kueue


KUEUE = {"kueue.x-k8s.io/pod-group-name": "sample-group", "kueue.x-k8s.io/queue-name": "user-queue"}


@pytest.mark.parametrize("key", ["labels", "annotations"])
def test_a_plain_pod_group_of_kueue(key: str) -> None:
    found = cluster(cpu="1")
    said: dict[str, Json] = {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}, "labels": {}}
    said[key] |= KUEUE
    pods(found, 2, labels=said["labels"], annotations=said["annotations"])
    found.settle()
    assert found.tree() == {"sample-group": (2, None)}
    assert found.bound == {}


@pytest.mark.parametrize("gate", ["admission", "topology", "elastic-job"])
def test_gates_of_kueue_are_respected(gate: str) -> None:
    found = cluster()
    notes = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    for index in range(2):
        found.pod(f"p-{index}", None, KUEUE, notes, schedulingGates=[{"name": f"kueue.x-k8s.io/{gate}"}])
    found.later()
    assert found.bound == {}
    for index in range(2):
        del found.objects["pod"][f"p-{index}"]["spec"]["schedulingGates"]
        found.tell("pod", f"p-{index}")
    found.settle(30)
    assert len(found.bound) == 2


def test_order_pods_of_statefulsets_that_kueue_marks_are_not_waited_for() -> None:
    found = cluster()
    notes = {"kueue.x-k8s.io/pod-group-total-count": "3", "kueue.x-k8s.io/pod-group-fast-admission": "true"}
    pods(found, 1, labels=KUEUE, annotations=notes)
    found.settle()
    assert len(found.bound) == 1


def test_order_leaderworkerset_under_kueue_keeps_its_own_order() -> None:
    found, body = cluster(), one("lws")
    body["spec"]["startupPolicy"] = "LeaderReady"
    found.own(body)
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "leaderworkerset-sample",
        "leaderworkerset.sigs.k8s.io/group-index": "0",
        "leaderworkerset.sigs.k8s.io/worker-index": "0",
    }
    found.pod("leader", None, {**labels, **KUEUE}, {"kueue.x-k8s.io/pod-group-total-count": "4"})
    found.settle()
    assert set(found.bound) == {"leader"}


def test_required_topology_of_kueue() -> None:
    found = Cluster()
    for rack in ("a", "b"):
        found.nodes(1, "1", rack=rack)
    notes = {"kueue.x-k8s.io/pod-group-total-count": "2", "kueue.x-k8s.io/podset-required-topology": "rack"}
    pods(found, 2, labels=KUEUE, annotations=notes)
    found.settle()
    assert found.bound == {}


def blocks(found: Cluster, *racks: int) -> None:
    """Racks of so many nodes for one pod each, two racks in a block."""
    for rack, nodes in enumerate(racks):
        labels = {
            f"topology.kubernetes.io/{level}": f"{level}{at}" for level, at in (("rack", rack), ("block", rack // 2))
        }
        for number in range(nodes):
            create(found, {"node": f"b{rack // 2}-r{rack}-{number}", "cpu": "1", "labels": labels})


def racks(found: Cluster, name: str) -> list[str]:
    """Where the pods of a name are: block and rack."""
    return [node.rpartition("-")[0] for pod, node in sorted(found.bound.items()) if pod.startswith(name)]


def parted(minimum: int, **more: Any) -> Json:
    """As Volcano's Job controller writes it for a task in partitions of three, each in one rack, all in one block."""
    policy = {
        "name": "worker",
        "subGroupSize": 3,
        "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "worker"}},
        "matchLabelKeys": ["volcano.sh/partition-id"],
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    spec = {"minMember": minimum, "networkTopology": {"mode": "hard", "highestTierAllowed": 2}}
    meta = {"name": "job-1"}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    return {**kind, "metadata": meta, "spec": {**spec, "subGroupPolicy": [{**policy, **more}]}}


def partitions(found: Cluster, number: int) -> None:
    note = {"scheduling.k8s.io/group-name": "job-1"}
    for part in range(number):
        labels = {"volcano.sh/task-spec": "worker", "volcano.sh/partition-id": str(part)}
        pods(found, 3, f"w{part}", labels, note)


def test_partitions_of_volcano_have_a_rack_each_in_one_block() -> None:
    """Block 0 has six nodes, but only one rack with three of them."""
    found = Cluster()
    blocks(found, 4, 2, 3, 3)
    found.own(parted(6))
    partitions(found, 2)
    found.settle()
    assert found.tree() == {
        "job-1": (1, None),
        "job-1/worker": (2, "job-1"),
        "job-1/worker/0": (3, "job-1/worker"),
        "job-1/worker/1": (3, "job-1/worker"),
    }
    assert sorted({*racks(found, "w0"), *racks(found, "w1")}) == ["b1-r2", "b1-r3"]
    assert [len(set(racks(found, name))) for name in ("w0", "w1")] == [1, 1]


def test_fewer_partitions_of_volcano_may_start() -> None:
    found = Cluster()
    blocks(found, 3, 2)
    found.own(parted(3, minSubGroups=1))
    partitions(found, 2)
    found.settle()
    assert len(found.bound) == 3
    found = Cluster()
    blocks(found, 3, 2)
    found.own(parted(6))
    partitions(found, 2)
    found.settle()
    assert found.bound == {}


def test_a_soft_topology_of_volcano_is_a_preferred_one() -> None:
    found = Cluster()
    blocks(found, 2, 3, 2, 2)
    body = parted(4)
    body["spec"] = {"minMember": 4, "networkTopology": {"mode": "soft"}}
    found.own(body)
    pods(found, 4, "w", None, {"scheduling.k8s.io/group-name": "job-1"})
    found.settle()
    assert len(found.bound) == 4
    assert len(set(racks(found, "w"))) == 2


def test_labels_that_volcanos_parts_cannot_be_told_by() -> None:
    found = Cluster()
    blocks(found, 3)
    found.own(parted(3, matchLabelKeys=["example.com/ring"]))
    partitions(found, 1)
    found.settle()
    assert found.bound == {}
    assert (
        "selects by example.com/ring, volcano.sh/task-spec; accepted are the labels volcano.sh/task-spec"
        in found.told("w0-0")
    )


# ---- KAI


def test_a_podgroup_of_kai_with_subgroups() -> None:
    found, (body,) = cluster(cpu="2"), sample("kai")
    found.own(body)
    name = body["metadata"]["name"]
    note = {"pod-group-name": name}
    pods(found, 1, "l", labels={"kai.scheduler/subgroup-name": "leader"}, annotations=note)
    pods(found, 2, "w", labels={"kai.scheduler/subgroup-name": "workers"}, annotations=note)
    found.settle()
    assert found.tree() == {name: (2, None), f"{name}/leader": (1, name), f"{name}/workers": (2, name)}
    assert found.core.cache.trees.get(f"kai:default/{name}:workers").spec.topology == "rack"  # type: ignore[union-attr]
    assert found.bound == {}


def test_levels_of_kais_subgroups() -> None:
    """The whole in one block, the workers in one rack, the others near each other if that can be."""
    found = Cluster()
    blocks(found, 2, 3, 4, 2)
    spec = {
        "minMember": 6,
        "topologyConstraint": {"topology": "net", "requiredTopologyLevel": "topology.kubernetes.io/block"},
        "subGroups": [
            {"name": "workers", "minMember": 3, "topologyConstraint": {"requiredTopologyLevel": "rack"}},
            {"name": "others", "minMember": 3, "topologyConstraint": {"preferredTopologyLevel": "rack"}},
        ],
    }
    kind = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
    found.own({**kind, "metadata": {"name": "pg-1"}, "spec": spec})
    note = {"pod-group-name": "pg-1"}
    pods(found, 3, "w", {"kai.scheduler/subgroup-name": "workers"}, note)
    pods(found, 3, "o", {"kai.scheduler/subgroup-name": "others"}, note)
    found.settle()
    assert racks(found, "w") == ["b1-r2"] * 3
    assert sorted(racks(found, "o")) == ["b1-r2", "b1-r3", "b1-r3"]


def test_segments_of_kai() -> None:
    """Every two of six workers in one rack, the whole in one block."""
    found = Cluster()
    blocks(found, 3, 3, 2, 4)
    found.own({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ring"}, "spec": {"parallelism": 6}})
    notes = {
        "kai.scheduler/topology": "net",
        "kai.scheduler/topology-required-placement": "topology.kubernetes.io/block",
        "kai.scheduler/segment-size": "2",
        "kai.scheduler/segment-topology-required-placement": "topology.kubernetes.io/rack",
        "kohort.dev/min-count": "6",
    }
    for index in range(6):
        labels = {"kohort.dev/pod-group": "ring", "batch.kubernetes.io/job-completion-index": str(index)}
        found.pod(f"p-{index}", None, labels, notes)
    found.settle()
    where = racks(found, "p")
    assert {one[:2] for one in where} == {"b1"}
    assert all(where[index] == where[index + 1] for index in range(0, 6, 2))


# ---- YuniKorn


GROUPS = json.dumps(
    [{"name": "task-group-example", "minMember": 2, "minResource": {"cpu": "100m"}, "nodeSelector": {}}]
)


def yunikorn(task: str, groups: str = "") -> dict[str, Json]:
    notes = {"yunikorn.apache.org/task-group-name": task}
    if groups:
        notes["yunikorn.apache.org/task-groups"] = groups
    return {"labels": {"applicationId": "gang-job-1", "queue": "root.sandbox"}, "annotations": notes}


def test_task_groups_of_yunikorn() -> None:
    found = cluster(cpu="1")
    pods(found, 2, "p", *yunikorn("task-group-example", GROUPS).values())
    found.settle()
    assert found.tree() == {"gang-job-1/task-group-example": (2, None)}
    assert found.bound == {}
    assert found.status("p-0").queue == "root.sandbox"


def test_task_groups_that_only_the_first_pod_carries() -> None:
    found = cluster()
    two = json.dumps([{"name": "a", "minMember": 1}, {"name": "b", "minMember": 2}])
    pods(found, 2, "b", *yunikorn("b").values())
    found.later()
    assert found.bound == {}
    assert "annotation yunikorn.apache.org/task-groups of application default/gang-job-1" in found.told("b-0")
    pods(found, 1, "a", *yunikorn("a", two).values())
    found.settle()
    assert found.tree() == {
        "gang-job-1": (2, None),
        "gang-job-1/a": (1, "gang-job-1"),
        "gang-job-1/b": (2, "gang-job-1"),
    }
    assert len(found.bound) == 3


def test_order_no_more_pods_are_waited_for_than_a_job_makes() -> None:
    """Placeholders would make up for the rest there; here there are none."""
    found = cluster()
    many = json.dumps([{"name": "workers", "minMember": 8}])
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 2}}
    said = yunikorn("workers", many)
    operators.job(found, body, said["labels"], said["annotations"])
    found.settle()
    assert len(found.bound) == 2


def test_order_a_spark_driver_under_yunikorn_starts_first() -> None:
    found = cluster()
    groups = json.dumps([{"name": "spark-driver", "minMember": 1}, {"name": "spark-executor", "minMember": 2}])
    said = yunikorn("spark-driver", groups)
    pods(found, 1, "driver", labels={**said["labels"], "spark-role": "driver"}, annotations=said["annotations"])
    found.settle()
    assert set(found.bound) == {"driver-0"}
    said = yunikorn("spark-executor")
    pods(found, 2, "e", labels={**said["labels"], "spark-role": "executor"}, annotations=said["annotations"])
    found.settle()
    assert len(found.bound) == 3


# ---- precedence


def test_scheduling_group_comes_before_everything() -> None:
    found = cluster()
    found.put("group", "g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}, "status": {}})
    found.pod("p", None, KUEUE, KOORDINATOR, schedulingGroup={"podGroupName": "g"})
    found.settle()
    assert set(found.bound) == {"p"}
    assert found.tree() == {}


def test_keys_come_before_the_owner() -> None:
    found, body = cluster(), one("jobset-coordinator")
    found.own(body)
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "coordinator-example",
        "jobset.sigs.k8s.io/replicatedjob-name": "driver",
    }
    found.pod("p", None, labels, KOORDINATOR)
    found.settle()
    assert list(found.tree()) == ["gang-example"]


def test_a_group_object_comes_before_keys() -> None:
    found, (body,) = cluster(), sample("scheduler-plugins")
    found.own(body)
    found.pod("p", None, {"scheduling.x-k8s.io/pod-group": "nginx"}, KOORDINATOR)
    found.settle()
    assert list(found.tree()) == ["nginx"]


def test_two_sources_that_contradict_each_other_are_misconfigured() -> None:
    found = cluster()
    found.pod("p", None, KUEUE, {**KOORDINATOR, "kueue.x-k8s.io/pod-group-total-count": "4"})
    found.settle()
    said = found.told("p")
    assert said.startswith("Misconfigured: annotation gang.scheduling.koordinator.sh/name=gang-example")
    assert "label kueue.x-k8s.io/pod-group-name=sample-group" in said
    assert "contradict each other" in said
    del found.objects["pod"]["p"]["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"]
    found.tell("pod", "p")
    found.pod("q", None, {}, KOORDINATOR)
    found.settle(30)
    assert set(found.bound) == {"p", "q"}


def test_two_sources_that_say_the_same_do_not() -> None:
    found = cluster()
    both = {**KOORDINATOR, "kueue.x-k8s.io/pod-group-total-count": "2"}
    labels = {"kueue.x-k8s.io/pod-group-name": "gang-example"}
    pods(found, 2, labels=labels, annotations=both)
    found.settle()
    assert len(found.bound) == 2
