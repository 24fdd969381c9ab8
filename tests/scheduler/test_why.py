"""Why something waits, as its pods, its group, its owner and whoever asks are told; each with a next step."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduler.short import create, pod_body
from tests.scheduler.sim import Sim

from kohort.place.demand import Reason
from kohort.scheduler.rootstatus import RootState, RootStatus, root_status

Json = dict[str, Any]
OWNER = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "j1", "controller": True}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def cluster(*, taints: list[Json] | None = None, **nodes: str) -> Sim:
    sim = Sim()
    for name, cpu in nodes.items():
        create(sim, {"node": name, "cpu": cpu, "taints": taints})
    return sim


def gang(sim: Sim, name: str, size: int, minimum: int | None = None, **more: Any) -> None:
    pod: dict[str, Any] = {key: more.pop(key) for key in ("claim", "cpu", "gates") if key in more}
    create(sim, {"group": name, "gang": minimum or size, **more})
    body = sim.objects["group"][name]
    body["metadata"]["ownerReferences"] = [OWNER]
    sim.tell("group", name)
    shared = {"priority": more["priority"]} if "priority" in more else {}
    for number in range(size):
        create(sim, {"pod": f"{name}-{number}", "in": name, "cpu": "1", **pod, **shared})


def asked(sim: Sim, group: str = "g") -> RootStatus:
    root = sim.core.cache.trees.get(f"default/{group}")
    assert root is not None
    return root_status(sim.core, root)


def notice(sim: Sim, later: float = 60.0) -> None:
    """The scheduler looks twice at what is not ready."""
    sim.write(sim.core.notices(sim.now))
    sim.write(sim.core.notices(sim.now + later))


def everywhere(sim: Sim, *, group: str = "g", pod: str = "g-0") -> dict[str, str]:
    """What the pod, the group, their events, the owner's event and `explain` say."""
    on_pod = sim.condition("pod", pod, "PodScheduled")
    on_group = sim.condition("group", group, "PodGroupInitiallyScheduled")
    found = {"pod": (on_pod or {}).get("message", ""), "group": (on_group or {}).get("message", "")}
    for name, label in ((pod, "pod event"), (group, "group event"), ("train", "owner event")):
        found[label] = next((one.text for one in reversed(sim.events) if one.regarding.name == name), "")
    explanation = asked(sim, group).explanation
    found["explain"] = str(explanation) if explanation is not None else ""
    return found


@pytest.mark.parametrize(
    ("taint", "cause", "remedy"),
    [
        (
            TAINT,
            "2 nodes have taint nvidia.com/gpu=present:NoSchedule that it does not tolerate",
            "if it tolerated taint nvidia.com/gpu=present:NoSchedule",
        ),
        (CORDON, "2 nodes are cordoned", "with 1 node uncordoned (kubectl uncordon n1)"),
    ],
)
def test_nodes_that_are_closed(taint: Json, cause: str, remedy: str) -> None:
    sim = cluster(n1="8", n2="8", taints=[taint])
    gang(sim, "g", 2)
    sim.settle()
    for where, text in everywhere(sim).items():
        assert cause in text, where
        assert remedy in text, where


def test_a_claim_that_does_not_exist() -> None:
    sim = cluster(n1="8")
    gang(sim, "g", 1, claim="data")
    sim.settle()
    for where, text in everywhere(sim).items():
        assert "claim default/data does not exist" in text, where
        assert "when claim default/data is created" in text, where


def test_a_claim_that_nobody_binds() -> None:
    sim = cluster(n1="8")
    sim.put("claim", "data", {"spec": {"accessModes": ["ReadWriteOnce"]}})
    gang(sim, "g", 1, claim="data")
    sim.settle()
    for where, text in everywhere(sim).items():
        assert "claim default/data is not bound to a volume yet" in text, where
        assert "a PersistentVolume must be made for it" in text, where


def test_a_volume_that_nobody_makes() -> None:
    sim = cluster(n1="8")
    storage_class = {"provisioner": "disks.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    sim.core.cache.storage.set_class("slow", storage_class)
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow"}
    selected = {"volume.kubernetes.io/selected-node": "n1"}
    sim.put("claim", "data", {"metadata": {"annotations": selected}, "spec": spec})
    gang(sim, "g", 1, claim="data")
    sim.core.sync(0.0)
    status = asked(sim)
    assert (status.state, status.explanation and status.explanation.reason) == (
        RootState.WAITING,
        Reason.WAITING_FOR_VOLUME,
    )
    said = "claim default/data waits for disks.example.com to make a volume for node n1"
    assert status.explanation is not None
    assert said in str(status.explanation)
    step = sim.core.step(0.0)
    assert step is not None
    assert step.decision is not None
    assert sim.core.volumes(sim.core.confirm(step.decision), 0.0)
    sim.write(sim.core.notices(1.0))
    assert sim.condition("pod", "g-0", "PodScheduled") is None  # a provisioner may take some seconds
    sim.write(sim.core.notices(10.0))
    for where, text in everywhere(sim).items():
        assert said in text or where == "explain", where  # asked above: for this scheduler it is bound
        assert "next step: look whether the provisioner disks.example.com runs" in text or where == "explain", where


def test_pods_of_an_incomplete_group() -> None:
    sim = cluster(n1="8")
    gang(sim, "g", 2, minimum=3)
    sim.settle()
    assert sim.condition("pod", "g-0", "PodScheduled") is None
    notice(sim)
    for where, text in everywhere(sim).items():
        assert "WaitingForMembers: 2 of 3 members exist" in text, where
        assert "1 more member has to exist" in text, where
    count = len(sim.events)
    notice(sim)
    assert len(sim.events) == count
    create(sim, {"pod": "g-2", "in": "g", "cpu": "1"})
    sim.settle()
    assert len(sim.bound) == 3
    said = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert (said or {}).get("status") == "True"


def test_a_typo_in_the_name_of_the_group() -> None:
    sim = cluster(n1="8")
    create(sim, {"pod": "p", "in": "trian", "cpu": "1"})
    sim.settle()
    notice(sim)
    said = sim.condition("pod", "p", "PodScheduled")
    assert said is not None
    text = (
        "WaitingForPodGroup: default/trian does not exist; "
        "next step: create PodGroup default/trian, or correct spec.schedulingGroup.podGroupName"
    )
    assert (said["status"], said["reason"], said["message"]) == ("False", "Unschedulable", text)
    assert [(one.reason, one.text) for one in sim.events] == [("FailedScheduling", text)]


def test_pods_with_scheduling_gates_keep_the_condition_of_the_api_server() -> None:
    sim = cluster(n1="8")
    create(sim, {"group": "g", "gang": 1})
    create(sim, {"pod": "g-0", "in": "g", "cpu": "1", "gates": True})
    sim.settle()
    notice(sim)
    assert sim.pending == {"g-0": "SchedulingGated"}


def test_the_owner_is_told_that_its_gang_waits_and_that_it_starts() -> None:
    sim = cluster(n1="1")
    gang(sim, "g", 2)
    sim.settle()
    told = [one for one in sim.events if one.regarding.kind == "JobSet"]
    assert [(one.type, one.reason, one.regarding.uid) for one in told] == [("Warning", "FailedScheduling", "j1")]
    assert told[0].text.startswith("PodGroup g: minCount (2) cannot be satisfied: InsufficientResource")
    create(sim, {"node": "n2", "cpu": "4"})
    sim.settle(400.0)
    assert len(sim.bound) == 2
    told = [one for one in sim.events if one.regarding.kind == "JobSet"]
    assert [one.reason for one in told] == ["FailedScheduling", "Scheduled"]
    assert told[-1].text == "PodGroup g: it has the nodes that it needs to start"


def test_the_owner_of_a_gang_that_starts_at_once_hears_nothing() -> None:
    sim = cluster(n1="4")
    gang(sim, "g", 2)
    sim.settle()
    assert [one for one in sim.events if one.regarding.kind == "JobSet"] == []


def test_a_gang_that_lost_members_to_preemption() -> None:
    sim = cluster(n1="4")
    gang(sim, "g", 4, priority="p10")
    sim.settle()
    assert len(sim.bound) == 4
    create(sim, {"group": "high", "gang": 2, "priority": "p100"})
    for number in range(2):
        create(sim, {"pod": f"high-{number}", "in": "high", "cpu": "1", "priority": "p100"})
    sim.settle(3.0)
    lost = [one for one in sim.events if one.reason == "Preempted" and one.regarding.kind in {"PodGroup", "JobSet"}]
    assert {one.regarding.name for one in lost} == {"g", "train"}
    uid = sim.objects["group"]["high"]["metadata"]["uid"]
    assert lost[0].text == f"2 of its pods were preempted by podgroup default/high (priority 100, uid {uid})"
    victim = next(one for one in sim.events if one.reason == "Preempted" and one.regarding.kind == "Pod")
    assert victim.text == f"Preempted by podgroup default/high (priority 100, uid {uid}) on node cluster"
    status = asked(sim)
    assert (status.state, status.placed, status.missing) == (RootState.PARTLY, 2, 2)
    assert status.explanation is not None
    assert "WaitingForMembers: 2 of 4 members exist" in str(status.explanation)


def test_the_preemptor_names_who_goes() -> None:
    sim = cluster(n1="2")
    sim.slow = True
    create(sim, {"pod": "low", "cpu": "2", "node": "n1"})
    gang(sim, "g", 1, priority="p10")
    sim.settle()
    said = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert said is not None
    assert "preempting 1 victims: default/low" in said["message"]


def quota(sim: Sim, hard: str, used: str) -> None:
    body = {"spec": {"hard": {"requests.cpu": hard}}, "status": {"hard": {"requests.cpu": hard}}}
    body["status"]["used"] = {"requests.cpu": used}
    sim.core.cache.quotas.set("default/team", body)


def test_a_quota_keeps_members_from_being_created() -> None:
    sim = cluster(n1="16")
    quota(sim, "2", "2")
    gang(sim, "g", 2, minimum=3)
    sim.settle()
    notice(sim)
    for where, text in everywhere(sim).items():
        assert "ResourceQuota team leaves 0 of 2 cpu, the missing pods ask 1" in text, where
        assert "raise cpu of ResourceQuota team to 3" in text, where


def test_a_quota_keeps_members_from_being_created_beside_those_that_are_gated() -> None:
    """As Grove does it: pods are held by a gate until all of them are there."""
    sim = cluster(n1="16")
    quota(sim, "2", "2")
    gang(sim, "g", 2, minimum=3, gates=True)
    sim.settle()
    notice(sim)
    found = everywhere(sim)
    assert sim.pending == {"g-0": "SchedulingGated", "g-1": "SchedulingGated"}
    for where in ("group", "group event", "owner event", "explain"):
        assert "2 of 3 members exist; ResourceQuota team leaves 0 of 2 cpu, the missing pods ask 1" in found[where]
        assert "raise cpu of ResourceQuota team to 3" in found[where]
        assert "whoever set the scheduling gates" not in found[where]


def test_two_gangs_hold_each_other_up_by_a_quota() -> None:
    sim = cluster(n1="16")
    quota(sim, "4", "4")
    gang(sim, "g", 2, minimum=3)
    gang(sim, "h", 2, minimum=3)
    sim.settle()
    notice(sim)
    for group, other in (("g", "h"), ("h", "g")):
        found = everywhere(sim, group=group, pod=f"{group}-0")
        for where in ("pod", "group", "pod event", "group event", "explain"):
            assert f"default/{other} waits for members as well" in found[where], where
            assert "delete or suspend one of them" in found[where], where


def test_a_quota_that_leaves_enough_is_not_named() -> None:
    sim = cluster(n1="16")
    quota(sim, "4", "2")
    gang(sim, "g", 2, minimum=3)
    sim.settle()
    assert "Quota" not in str(asked(sim).explanation)


def test_a_pod_alone_on_tainted_nodes() -> None:
    sim = cluster(n1="8", taints=[TAINT])
    sim.put("pod", "p", pod_body({"pod": "p", "cpu": "1"}))
    sim.settle()
    said = sim.condition("pod", "p", "PodScheduled")
    assert said is not None
    assert "1 node has taint nvidia.com/gpu=present:NoSchedule" in said["message"]
    assert "if it tolerated taint" in said["message"]
