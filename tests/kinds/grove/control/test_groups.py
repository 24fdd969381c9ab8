"""Groups of PodGangs on a server that does not always do what it is asked: scenarios of spec grove 6 by number."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.grove_short import GATE, binding, clique, group, rack
from tests.kinds.grove.control.world import GroveWorld

from kohort.api.kind import Object
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.compile.membership import MissingLabelError
from kohort.kinds.grove.control.backend import WorkloadBackend
from kohort.kinds.grove.control.sets import CliqueSet

KINDS = ("Workload", "CompositePodGroup", "PodGroup")
FLAT = ("1.35", "1.36", "1.37")


def two(world: GroveWorld, **more: Any) -> None:
    world.set("a", clique("x", 2), clique("y"), **more)


def test_g15_option_off_no_groups_no_membership() -> None:
    world = GroveWorld(without=("GroveGangScheduling",))
    two(world)
    world.run()
    assert [world.names(kind) for kind in KINDS] == [[], [], []]
    assert {pod["spec"]["schedulerName"] for pod in world.every("Pod")} == {"default-scheduler"}
    assert not [pod for pod in world.every("Pod") if "schedulingGroup" in pod["spec"]]
    assert world.gated() == []
    assert world.condition("PodGang", "a-0", constants.BACKEND_READY) == ("", "")


@pytest.mark.parametrize("minor", FLAT)
def test_g22_a_second_look_writes_nothing(minor: str) -> None:
    world = GroveWorld(minor)
    world.set("a", clique("x", 2, 1), clique("w"), groups=[group("g", ["w"], 2)])
    world.run(20)
    before = len(world.api.calls)
    world.start()  # everything is looked at once more
    world.run(20)
    assert world.api.calls[before:] == []
    world.scale("PodClique", "a-0-x", 4)  # only podReferences change
    world.run(20)
    assert [call for call in world.api.calls[before:] if call[1] in KINDS] == []
    assert world.gated() == []


def test_g23_what_the_server_fills_in_is_no_drift() -> None:
    world = GroveWorld("1.36")
    two(world)
    world.run()
    assert all(one["spec"].get("disruptionMode") for one in world.every("PodGroup"))
    before = len(world.calls(*KINDS))
    world.start()
    world.run(20)
    assert len(world.calls(*KINDS)) == before
    assert world.condition("PodGang", "a-0", constants.BACKEND_READY) == ("True", "GroupsCreated")


def test_g24_only_what_is_missing_is_made() -> None:
    world = GroveWorld()
    two(world)
    world.run()
    had = world.find("Workload", "a-0")["metadata"]["uid"]
    key = ("PodGroup", "lab", "a-0-a-0-y")
    world.api.objects.pop(key)  # as if it had never been made
    before = len(world.calls(*KINDS))
    world.start()
    world.run()
    assert world.calls(*KINDS)[before:] == [("create", "PodGroup", 201)]
    assert world.find("Workload", "a-0")["metadata"]["uid"] == had


def test_g25_a_workload_that_cannot_be_made() -> None:
    world = GroveWorld()
    world.api.refusals.append(("create", "Workload", 9999))
    two(world)
    world.run(2.5)
    assert world.names("PodGroup") == world.names("CompositePodGroup") == []
    assert world.gated() == ["a-0-x", "a-0-x", "a-0-y"]
    assert {"WorkloadSyncFailed"} <= set(world.reasons("PodGang")) & set(world.reasons("PodCliqueSet"))
    assert world.find("PodCliqueSet", "a")["status"]["lastErrors"][0]["code"] == "WorkloadSyncFailed"
    world.api.refusals.clear()
    world.run(80)
    assert world.gated() == []
    assert "lastErrors" not in world.find("PodCliqueSet", "a")["status"]


def test_g26_a_podgroup_refused_because_its_workload_is_going() -> None:
    """1.36 only: waited for, without deleting anything."""
    world = GroveWorld("1.36")
    two(world)
    world.run()
    workload = world.api.objects["Workload", "lab", "a-0"]
    workload["metadata"]["finalizers"] = ["example.net/hold"]
    world.delete("Workload", "a-0")
    world.api.objects.pop(("PodGroup", "lab", "a-0-a-0-y"))
    world.start()
    world.run(20)
    assert not [call for call in world.calls(*KINDS) if call[0] == "delete"]
    assert world.condition("PodGang", "a-0", constants.BACKEND_READY) == ("False", "PodGroupTerminating")


@pytest.mark.parametrize("minor", FLAT)
def test_g27_a_workload_of_somebody_else_is_not_adopted(minor: str) -> None:
    world = GroveWorld(minor)
    version = world.ctx.release.api_version
    member = (
        {"name": "z", "policy": {"basic": {}}} if minor == "1.35" else {"name": "z", "schedulingPolicy": {"basic": {}}}
    )
    spec = {"podGroups" if minor == "1.35" else "podGroupTemplates": [member]}
    world.make({"apiVersion": version, "kind": "Workload", "metadata": {"name": "a-0"}, "spec": spec})
    world.set("a", clique("x", 2))
    world.run(20)
    assert world.gated() == ["a-0-x", "a-0-x"]
    assert "ownerReferences" not in world.find("Workload", "a-0")["metadata"]
    assert "WorkloadSyncFailed" in world.reasons("PodGang")


def test_g40_the_order_of_creation_and_what_a_failure_stops() -> None:
    world = GroveWorld()
    world.api.refusals.append(("create", "CompositePodGroup", 9999))
    world.set("a", clique("r"), clique("w"), groups=[group("g", ["w"], 1)])
    world.run(0.9)
    assert {call[1] for call in world.calls(*KINDS)} == {"Workload", "CompositePodGroup"}
    world.api.refusals.clear()
    world.run(80)
    made = [call[1] for call in world.calls(*KINDS) if call[2] == 201]
    assert made == ["Workload", *["CompositePodGroup"] * 3, *["PodGroup"] * 2]


def test_g37_a_preference_that_got_through() -> None:
    world = GroveWorld()
    world.make(binding())
    wish = {"topologyConstraint": {"topologyName": "fabric", "pack": {"preferred": "rack"}}}
    _store(world, clique("x", 2), template=wish)
    world.run()
    assert [world.names(kind) for kind in KINDS] == [[], [], []]
    assert world.condition("PodGang", "a-0", constants.BACKEND_READY) == ("False", "WorkloadMappingFailed")
    assert world.gated() == ["a-0-x", "a-0-x"]


def test_g41_a_minimum_of_nothing() -> None:
    world = GroveWorld()
    _store(world, clique("x", 2, 0))
    world.run()
    assert world.names("Workload") == []
    assert world.condition("PodGang", "a-0", constants.BACKEND_READY) == ("False", "WorkloadMappingFailed")
    later = GroveWorld()
    two(later)
    later.run()
    before = len(later.calls(*KINDS))
    cliques = later.find("PodCliqueSet", "a")["spec"]["template"]["cliques"]
    cliques[0]["spec"]["minAvailable"] = 0
    stored = later.api.objects["PodCliqueSet", "lab", "a"]
    stored["spec"]["template"]["cliques"] = cliques
    later.start()
    later.run()
    assert len(later.calls(*KINDS)) == before
    (found,) = [one for one in later.every("PodGroup") if one["metadata"]["name"] == "a-0-a-0-x"]
    assert found["spec"]["schedulingPolicy"]["gang"]["minCount"] == 2
    assert later.condition("PodGang", "a-0", constants.BACKEND_READY) == ("True", "GroupsCreated")


def _store(world: GroveWorld, *cliques: Object, **more: Any) -> None:
    """Past the rules, as an object of another time may have come."""
    world.api.groups -= {constants.GROUP}
    made = world.set("a", *cliques, **more)
    stored = world.api.objects["PodCliqueSet", "lab", made["metadata"]["name"]]
    stored["spec"]["template"].setdefault("terminationDelay", "4h0m0s")
    for entry in stored["spec"]["template"]["cliques"]:
        entry["spec"].setdefault("minAvailable", entry["spec"]["replicas"])
    world.start()


def test_g42_a_level_that_vanishes() -> None:
    world = GroveWorld()
    world.make(binding())
    world.set("a", clique("x", 2), clique("y"), template=rack())
    world.run()
    before = len(world.calls(*KINDS))
    levels = [one for one in binding()["spec"]["levels"] if one["domain"] != "rack"]
    world.patch("ClusterTopologyBinding", "fabric", {"spec": {"levels": levels}}, space="")
    world.run()
    assert "topologyConstraint" not in world.find("PodGang", "a-0")["spec"]
    assert len(world.calls(*KINDS)) == before
    assert "WorkloadDrift" in world.reasons("PodGang")
    status, reason = world.condition("PodCliqueSet", "a", constants.LEVELS_UNAVAILABLE)
    assert (status, reason) == ("True", "ClusterTopologyLevelsUnavailable")
    assert len([pod for pod in world.every("Pod") if pod["spec"].get("nodeName")]) == 3
    world.scale("PodClique", "a-0-x", 3)
    world.run(20)
    assert world.gated() == ["a-0-x"]  # new pods wait
    world.patch("ClusterTopologyBinding", "fabric", {"spec": binding()["spec"]}, space="")
    world.run(20)
    assert world.gated() == []


def test_g43_no_pod_goes_before_all_are_there() -> None:
    world = GroveWorld()
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}}
    world.make(quota)
    world.set("a", clique("x", 4, 2))
    world.run(20)
    assert world.condition("PodGang", "a-0", constants.INITIALIZED)[0] == "False"
    assert world.gated() == ["a-0-x"] * 3
    world.patch("ResourceQuota", "q", {"spec": {"hard": {"pods": "9"}}})
    world.run(80)
    assert world.gated() == []


def test_g44_no_pod_goes_before_its_group_is_there() -> None:
    world = GroveWorld()
    world.api.refusals.append(("create", "PodGroup", 9999))
    two(world)
    world.run(2)
    assert world.condition("PodGang", "a-0", constants.INITIALIZED)[0] == "True"
    assert len(world.gated()) == 3
    world.api.refusals.clear()
    world.run(80)
    assert world.gated() == []


def test_g46_gates_of_others_stay() -> None:
    world = GroveWorld()
    create = world.api.create

    def gated(body: Object, namespace: str = "lab", *, strict: bool = False) -> Any:
        if body["kind"] == "Pod":
            body["spec"]["schedulingGates"].append({"name": "example.net/wait"})
        return create(body, namespace, strict=strict)

    world.api.create = gated  # type: ignore[method-assign]
    two(world)
    world.run()
    gates = {tuple(gate["name"] for gate in pod["spec"]["schedulingGates"]) for pod in world.every("Pod")}
    assert gates == {("example.net/wait",)}


def test_g47_a_server_that_drops_the_membership() -> None:
    world = GroveWorld()
    create = world.api.create

    def forgetful(body: Object, namespace: str = "lab", *, strict: bool = False) -> Any:
        if body["kind"] == "Pod":
            body["spec"].pop("schedulingGroup", None)
        return create(body, namespace, strict=strict)

    world.api.create = forgetful  # type: ignore[method-assign]
    two(world)
    world.run(20)
    assert "MembershipDropped" in world.reasons("PodClique")
    assert {gate["name"] for pod in world.every("Pod") for gate in pod["spec"]["schedulingGates"]} == {GATE}


def test_g49_pods_of_a_new_gang_wait_for_the_old_group_to_go() -> None:
    world = GroveWorld()
    world.set("a", clique("r"), clique("w"), groups=[group("g", ["w"], 2)])
    world.run()
    world.held.add("a-0-g-1-w")
    world.scale("PodCliqueScalingGroup", "a-0-g", 1)
    world.run()
    world.scale("PodCliqueScalingGroup", "a-0-g", 2)
    world.run(30)
    (old,) = [pod for pod in world.every("Pod") if pod["metadata"]["labels"][constants.PODCLIQUE] == "a-0-g-1-w"]
    assert old["metadata"]["deletionTimestamp"]
    assert world.reasons("PodClique").count("PodGroupTerminating") == 1
    stale = world.find("PodGroup", "a-0-g-0-a-0-g-1-w")["metadata"]["uid"]
    world.held.clear()
    world.drive()
    world.run(20)
    new = world.find("PodGroup", "a-0-g-0-a-0-g-1-w")
    assert new["metadata"]["uid"] != stale
    assert new["metadata"]["ownerReferences"][0]["uid"] == world.find("PodGang", "a-0-g-0")["metadata"]["uid"]
    (pod,) = [pod for pod in world.every("Pod") if pod["metadata"]["labels"][constants.PODCLIQUE] == "a-0-g-1-w"]
    assert pod["spec"]["nodeName"]
    assert "lastErrors" not in world.find("PodClique", "a-0-g-1-w")["status"]


def test_g62_kinds_that_are_not_served_fail_closed() -> None:
    world = GroveWorld(served=False)
    world.api.unserved |= {"Workload", "PodGroup", "CompositePodGroup"}
    two(world)
    world.run(20)
    assert world.condition("PodGang", "a-0", constants.BACKEND_READY) == ("False", "WorkloadAPIUnavailable")
    assert len(world.gated()) == 3
    world.api.unserved.clear()  # installed later: no restart is needed
    world.run(80)
    assert world.gated() == []
    assert world.names("Workload") == ["a-0"]


def test_g63_a_pod_without_its_labels_is_not_made() -> None:
    world = GroveWorld()
    pcs = CliqueSet(world.set("a", clique("x")))
    side = WorkloadBackend(CompileContext(world.ctx.release, world.ctx.gates, world.ctx.options))
    with pytest.raises(MissingLabelError, match=r"grove\.io/podgang"):
        side.prepare({"metadata": {"labels": {constants.PODCLIQUE: "a-0-x"}}, "spec": {}}, pcs)


def test_g65_an_init_container_waits_and_may_look_at_pods() -> None:
    world = GroveWorld()
    world.set("a", clique("r", 2, 1), clique("w"), template={"cliqueStartupType": "CliqueStartupTypeInOrder"})
    world.run()
    (pod,) = [pod for pod in world.every("Pod") if pod["metadata"]["labels"][constants.PODCLIQUE] == "a-0-w"]
    (waiter,) = pod["spec"]["initContainers"]
    assert waiter["args"] == ["--podcliques=a-0-r:1"]
    assert {one["name"] for one in pod["spec"]["volumes"]} == {one["name"] for one in waiter["volumeMounts"]}
    (role,) = world.every("Role")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}
    ]
    (bound,) = world.every("RoleBinding")
    assert bound["subjects"][0]["name"] == world.names("ServiceAccount")[0] == "a"


def test_an_edit_of_a_gang_is_put_right_at_once() -> None:
    world = GroveWorld()
    two(world)
    world.run()
    spec = world.find("PodGang", "a-0")["spec"]
    world.patch("PodGang", "a-0", {"spec": {"podgroups": spec["podgroups"][:1]}, "metadata": {"labels": {"q": "1"}}})
    world.run(1)
    assert world.find("PodGang", "a-0")["spec"] == spec
    assert "q" not in world.find("PodGang", "a-0")["metadata"]["labels"]


def test_a_set_as_it_was_written_runs_where_no_webhook_completes_it() -> None:
    """Real Kubernetes with nothing but the CRD: minimums and the delay are not stored."""
    world = GroveWorld()
    world.api.groups -= {constants.GROUP}
    world.set("a", clique("x", 2), clique("w"), groups=[group("g", ["w"], 2)])
    world.run(20)
    stored = world.find("PodCliqueSet", "a")
    assert "minAvailable" not in stored["spec"]["template"]["cliques"][0]["spec"]
    assert world.find("PodClique", "a-0-x")["spec"]["minAvailable"] == 2
    assert world.gated() == []
