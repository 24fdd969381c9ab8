"""Spare pods: where they are put, who takes their place, and how they look."""

from __future__ import annotations

from typing import Any

from tests.scheduler.short import create, pod_body
from tests.scheduler.sim import Sim
from tests.scheduler.test_healing import REQUIRED, events
from tests.scheduler.test_topology import RACK, ZONE, add, cluster, gang, racks, root, satisfied

from kohort.scheduler.rootstatus import root_status
from kohort.scheduler.sparekeeper import missing, surplus
from kohort.scheduler.spares import spare_body

LOST = [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]
ASKS = {**REQUIRED, "kohort.dev/spares": "1"}


def make_spares(sim: Sim) -> list[str]:
    """As the keeper does it."""
    made = []
    for one in missing(sim.core.cache):
        body = pod_body({"cpu": "1"})
        body["metadata"]["annotations"] = {"kohort.dev/spare-of": one.group}
        sim.put("pod", one.name, body)
        made.append(one.name)
    return made


def lost(sim: Sim, node: str) -> None:
    """It is not heard of; its pods stay where they are."""
    sim.objects["node"][node]["spec"]["taints"] = [*LOST, {**LOST[0], "effect": "NoSchedule"}]
    sim.tell("node", node)


def test_a_spare_is_made_when_the_gang_runs_and_goes_to_another_node_of_its_rack() -> None:
    sim = cluster(a=2, b=4, c=2)
    gang(sim, "g", range(3), 3, ASKS)
    assert make_spares(sim) == []
    sim.settle()
    assert racks(sim, "g") == "bbb"
    assert make_spares(sim) == ["g-spare-0"]
    sim.settle()
    assert sim.bound["g-spare-0"][0] == "b"
    assert make_spares(sim) == []
    assert root_status(sim.core, root(sim, "g")).spares == [f"g-spare-0 on {sim.bound['g-spare-0']}"]
    assert satisfied(sim, "g") == ("True", "3 of at least 3 pods have nodes or have succeeded")


def test_a_spare_is_not_a_member_and_preempts_nobody() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(2), 2, ASKS)
    sim.settle()
    create(sim, {"pod": "low", "cpu": "1", "priority": "p0"})
    sim.settle()
    for one in missing(sim.core.cache):
        body = pod_body({"cpu": "1", "priority": "p5"})
        body["metadata"]["annotations"] = {"kohort.dev/spare-of": one.group}
        sim.put("pod", one.name, body)
    sim.settle(10.0)
    assert "low" in sim.bound
    assert "g-spare-0" not in sim.bound


def test_a_spare_prefers_nodes_without_members() -> None:
    sim = Sim()
    for name, cpu in (("a-0", "4"), ("a-1", "2")):
        create(sim, {"node": name, "cpu": cpu, "labels": {RACK: "a", ZONE: "z"}})
    gang(sim, "g", range(2), 2, {**ASKS, "kohort.dev/topology": "rack=required,node=preferred"})
    sim.settle()
    assert len({sim.bound["g-0"], sim.bound["g-1"]}) == 1
    make_spares(sim)
    sim.settle()
    assert sim.bound["g-spare-0"] not in {sim.bound["g-0"], sim.bound["g-1"]}


def test_a_member_takes_the_place_of_a_spare_and_keeps_its_rank() -> None:
    sim = cluster(a=2, b=4, c=2)
    gang(sim, "g", range(3), 3, ASKS)
    sim.settle()
    make_spares(sim)
    sim.settle()
    before = sim.bound
    lost(sim, before["g-1"])
    sim.settle()
    assert sorted(sim.evicted) == ["g-1"]  # nobody waits for the node
    assert "is not heard of, and 1 spare of its gang stands by" in sim.evicted["g-1"]
    add(sim, "g", 1, suffix="-again")
    sim.settle()
    assert sorted(sim.evicted) == ["g-1", "g-spare-0"]
    assert sim.evicted["g-spare-0"].endswith("a member of podgroup g takes its place")
    assert sim.bound["g-1-again"] == before["g-spare-0"]
    assert sim.now == 0.0
    assert {name: sim.bound[name] for name in ("g-0", "g-2")} == {name: before[name] for name in ("g-0", "g-2")}
    assert "a member takes the place of g-spare-0" in events(sim, "Swapped")
    assert make_spares(sim) == ["g-spare-0"]  # for the next time
    sim.settle(5.0)
    assert "g-spare-0" not in sim.bound  # the rack is full until the node is back
    sim.objects["node"][before["g-1"]]["spec"]["taints"] = []
    sim.tell("node", before["g-1"])
    sim.settle(15.0)
    assert sim.bound["g-spare-0"] == before["g-1"]


def test_free_room_is_taken_before_a_spare_is() -> None:
    sim = cluster(b=5)
    gang(sim, "g", range(3), 3, ASKS)
    sim.settle()
    make_spares(sim)
    sim.settle()
    sim.delete("pod", "g-1")
    add(sim, "g", 1, suffix="-again")
    sim.settle()
    assert sim.evicted == {}
    assert len(sim.bound) == 4


def test_without_a_spare_lost_nodes_are_waited_for() -> None:
    """As long as pods tolerate them, as everywhere."""
    sim = cluster(b=3)
    gang(sim, "g", range(3), 3, ASKS)
    sim.settle()
    lost(sim, sim.bound["g-1"])
    sim.settle(30.0)
    assert sim.evicted == {}


def test_more_losses_than_spares() -> None:
    sim = cluster(b=4)
    gang(sim, "g", range(3), 3, ASKS)
    sim.settle()
    make_spares(sim)
    sim.settle()
    for name in ("g-1", "g-2"):
        lost(sim, sim.bound[name])
    sim.settle()
    assert list(sim.evicted) == ["g-1"]


def test_a_spare_on_a_lost_node_is_let_go() -> None:
    sim = cluster(b=5)
    gang(sim, "g", range(3), 3, ASKS)
    sim.settle()
    make_spares(sim)
    sim.settle()
    lost(sim, sim.bound["g-spare-0"])
    sim.settle()
    assert list(sim.evicted) == ["g-spare-0"]


def test_spares_of_a_gang_that_has_ended_go() -> None:
    sim = cluster(b=4)
    gang(sim, "g", range(3), 3, ASKS)
    sim.settle()
    make_spares(sim)
    sim.settle()
    assert list(surplus(sim.core.cache)) == []
    for rank in range(3):
        sim.objects["pod"][f"g-{rank}"]["status"]["phase"] = "Succeeded"
        sim.tell("pod", f"g-{rank}")
    assert [one.pod.metadata.name for one in surplus(sim.core.cache)] == ["g-spare-0"]


def test_how_a_spare_looks() -> None:
    """As much room as a member, its images, its tolerations; nothing that names the member or its owner."""
    resources = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "8"}}
    member: dict[str, Any] = {
        "metadata": {
            "name": "ring-0-x",
            "namespace": "train",
            "labels": {"batch.kubernetes.io/job-name": "ring"},
            "annotations": {"kohort.dev/spares": "1"},
        },
        "spec": {
            "nodeName": "a-0",
            "hostname": "ring-0",
            "schedulingGroup": {"podGroupName": "ring"},
            "schedulerName": "kohort",
            "priorityClassName": "high",
            "priority": 100,
            "serviceAccountName": "trainer",
            "nodeSelector": {"gpu": "h100"},
            "tolerations": [
                {"key": "gpu", "operator": "Exists"},
                {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "volumes": [{"name": "data"}],
            "initContainers": [
                {"name": "fetch", "image": "fetcher"},
                {"name": "proxy", "image": "proxy", "restartPolicy": "Always"},
            ],
            "containers": [
                {
                    "name": "train",
                    "image": "trainer:1",
                    "command": ["torchrun"],
                    "env": [{"name": "RANK"}],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "ports": [{"containerPort": 1, "hostPort": 1}],
                    "resources": resources,
                }
            ],
        },
    }
    owner = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "ring", "uid": "u"}
    made = spare_body(member, "ring-spare-0", "train/ring", owner)
    assert made["metadata"] == {
        "name": "ring-spare-0",
        "namespace": "train",
        "annotations": {"kohort.dev/spare-of": "train/ring"},
        "labels": {"app.kubernetes.io/managed-by": "kohort"},
        "ownerReferences": [owner],
    }
    assert made["spec"] == {
        "schedulerName": "kohort",
        "priorityClassName": "high",
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [
            {"name": "train", "image": "trainer:1", "resources": resources, "command": ["sleep", "infinity"]},
            {"name": "proxy", "image": "proxy", "command": ["sleep", "infinity"]},
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    member["metadata"]["annotations"]["kohort.dev/spare-command"] = "/pause --quiet"
    assert spare_body(member, "s", "g", owner)["spec"]["containers"][0]["command"] == ["/pause", "--quiet"]
