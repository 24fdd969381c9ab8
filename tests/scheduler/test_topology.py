"""Topology through the whole core: annotations of groups and pods, ranks, slices, and what people are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduler.short import create, group_body, pod_body
from tests.scheduler.sim import Sim

from kohort.place.networkstanding import LevelStanding
from kohort.scheduler.rootstatus import root_status
from kohort.scheduler.trees import Group

RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
INDEX = "batch.kubernetes.io/job-completion-index"


def cluster(**racks: int) -> Sim:
    """Nodes of one cpu; racks take turns, as in a cluster that grew."""
    sim = Sim()
    for number in range(max(racks.values())):
        for rack, size in racks.items():
            if number < size:
                labels = {RACK: rack, ZONE: f"zone-{rack[0]}"}
                create(sim, {"node": f"{rack}-{number}", "cpu": "1", "labels": labels})
    return sim


def gang(sim: Sim, name: str, ranks: range, minimum: int, said: Any = None, pods_say: Any = None) -> None:
    body = group_body({"gang": minimum}, composite=False)
    sim.put("group", name, {**body, "metadata": {"annotations": said or {}}})
    for rank in ranks:
        add(sim, name, rank, pods_say)


def add(sim: Sim, name: str, rank: int, said: Any = None, suffix: str = "") -> None:
    body = pod_body({"in": name, "cpu": "1", "labels": {INDEX: str(rank)}})
    body["metadata"]["annotations"] = said or {}
    sim.put("pod", f"{name}-{rank}{suffix}", body)


def racks(sim: Sim, name: str) -> str:
    """The rack of each rank, as one word."""
    found = {pod: node for pod, node in sim.bound.items() if pod.startswith(f"{name}-")}
    return "".join(found[pod][0] for pod in sorted(found, key=lambda pod: int(pod.split("-")[1])))


def root(sim: Sim, name: str) -> Group:
    found = sim.core.root(f"default/{name}")
    assert isinstance(found, Group)
    return found


@pytest.mark.parametrize(
    ("said", "pods_say"),
    [
        ({"kohort.dev/topology": "rack=preferred"}, {}),
        ({}, {"kueue.x-k8s.io/podset-preferred-topology": RACK}),
        ({}, {"kai.scheduler/topology-preferred-placement": RACK}),
        ({}, {"volcano.sh/network-topology-mode": "soft"}),
        ({"kohort.dev/topology": f"{RACK}=preferred"}, {"kueue.x-k8s.io/podset-preferred-topology": RACK}),
    ],
)
def test_preferred_levels_however_they_are_said(said: dict[str, str], pods_say: dict[str, str]) -> None:
    sim = cluster(a=3, b=2, c=4)
    gang(sim, "g", range(4), 4, said, pods_say)
    gang(sim, "h", range(5), 5, said, pods_say)
    sim.settle()
    assert racks(sim, "g") == "cccc"
    assert racks(sim, "h") == "aaabb"


def test_required_in_an_annotation_waits_for_a_domain() -> None:
    sim = cluster(a=3, b=2)
    gang(sim, "g", range(4), 4, {"kohort.dev/topology": "rack=required"})
    sim.settle()
    assert sim.bound == {}
    told = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert told is not None
    assert f"{RACK}=a, the largest of 2, is too small" in told["message"]


def test_mistakes_are_told_with_their_place() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(2), 2, {"kohort.dev/topology": "rack=maybe"}, {"kohort.dev/topology-slice": "rack"})
    sim.settle()
    told = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert told is not None
    assert "PodGroup default/g metadata.annotations[kohort.dev/topology]: found 'rack=maybe'" in told["message"]
    assert "Pod default/g-0 metadata.annotations[kohort.dev/topology-slice]: found 'rack'" in told["message"]


def test_a_group_and_its_pods_must_ask_for_the_same() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(2), 2, {"kohort.dev/topology": "rack"}, {"kohort.dev/topology": "zone"})
    sim.settle()
    assert sim.bound == {}
    told = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert told is not None
    assert "annotations of Pod default/g-0 ask for another topology than those of PodGroup default/g" in told["message"]


def test_slices_through_kueue_annotations() -> None:
    sim = cluster(a=3, b=2, c=3)
    said = {
        "kueue.x-k8s.io/podset-slice-required-topology": RACK,
        "kueue.x-k8s.io/podset-slice-size": "3",
    }
    gang(sim, "g", range(6), 6, pods_say=said)
    sim.settle()
    assert racks(sim, "g") == "aaaccc"


def test_slices_that_do_not_fit_say_so() -> None:
    sim = cluster(a=2, b=2, c=2)
    gang(sim, "g", range(6), 6, {"kohort.dev/topology-slice": "rack=3"})
    sim.settle()
    assert sim.bound == {}
    status = root_status(sim.core, root(sim, "g"))
    assert status.explanation is not None
    assert "default/g#0" in str(status.explanation)


def test_a_replacement_goes_to_the_rack_of_its_neighbours() -> None:
    """Siblings stay, the rank is kept, though a rack that is emptier has room too."""
    sim = cluster(a=3, b=3, c=5)
    gang(sim, "g", range(5), 5, {"kohort.dev/topology": "rack=preferred"})
    sim.settle()
    assert racks(sim, "g") == "ccccc"
    before = sim.bound
    sim.delete("pod", "g-2")
    sim.delete("node", before["g-2"])
    create(sim, {"node": "c-9", "cpu": "1", "labels": {RACK: "c", ZONE: "zone-c"}})
    add(sim, "g", 2, suffix="-again")
    sim.settle(15.0)
    after = sim.bound
    assert after.pop("g-2-again") == "c-9"
    assert after == {pod: node for pod, node in before.items() if pod != "g-2"}


def test_explain_has_a_map_of_ranks_and_the_level_that_was_given_up() -> None:
    sim = cluster(a=4, b=4, c=4)
    gang(sim, "g", range(10), 10, {"kohort.dev/topology": "rack=preferred,zone=preferred"})
    sim.settle()
    (place,) = root_status(sim.core, root(sim, "g")).places
    assert place.standing.ranks == {"a": "0-3", "b": "4-7", "c": "8-9"}
    note = "10 pods are on 3 domains; {0}={1}a, the largest of 3, takes 4"
    assert place.standing.levels == [
        LevelStanding(ZONE, "preferred", {"zone-a": 4, "zone-b": 4, "zone-c": 2}, 2, 9, note.format(ZONE, "zone-")),
        LevelStanding(RACK, "preferred", {"a": 4, "b": 4, "c": 2}, 2, 9, note.format(RACK, "")),
    ]


def test_explain_says_when_a_level_could_be_kept_now() -> None:
    sim = cluster(a=2, b=2)
    gang(sim, "g", range(3), 3, {"kohort.dev/topology": "rack=preferred"})
    sim.settle()
    create(sim, {"node": "a-8", "cpu": "1", "labels": {RACK: "a"}})
    sim.settle()
    (place,) = root_status(sim.core, root(sim, "g")).places
    assert place.standing.levels[-1].note == f"3 pods are on 2 domains; {RACK}=a would take all of them now"


def test_labels_that_change_under_a_gang_are_told_and_nothing_is_undone() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3, {"kohort.dev/topology": "rack=preferred"})
    sim.settle()
    create(sim, {"node": "a-1", "cpu": "1", "labels": {}})
    sim.settle(30.0)
    assert len(sim.bound) == 3
    (place,) = root_status(sim.core, root(sim, "g")).places
    assert place.standing.levels[-1].domains == {"a": 2, "?": 1}


# ---- members that are lost


def satisfied(sim: Sim, name: str) -> tuple[str, str]:
    told = sim.condition("group", name, "PodGroupSatisfied")
    assert told is not None
    return told["status"], told["message"]


def test_a_group_says_at_any_moment_whether_it_has_its_minimum() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3)
    gang(sim, "h", range(1), 1)
    sim.settle()
    assert satisfied(sim, "g") == ("True", "3 of at least 3 pods have nodes or have succeeded")
    assert satisfied(sim, "h") == ("False", "0 of at least 1 pods have nodes or have succeeded")
    sim.delete("pod", "g-1")
    sim.settle()
    assert satisfied(sim, "g") == ("False", "2 of at least 3 pods have nodes or have succeeded")
    first = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert first is not None
    assert first["status"] == "True"
    add(sim, "g", 1, suffix="-again")
    sim.settle(15.0)
    assert sim.condition("group", "h", "PodGroupSatisfied") != sim.condition("group", "g", "PodGroupSatisfied")
    assert {satisfied(sim, "g")[0], satisfied(sim, "h")[0]} == {"True", "False"}


def test_a_restart_knows_who_was_satisfied() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3)
    sim.settle()
    sim.delete("pod", "g-1")
    sim.restart()
    sim.settle()
    assert satisfied(sim, "g")[0] == "False"


@pytest.mark.parametrize(("policy", "lands"), [({}, ""), ({"kohort.dev/replacement": "Widen"}, "b-0")])
def test_a_member_whose_domain_is_full_waits_or_goes_next_door(policy: dict[str, str], lands: str) -> None:
    sim = cluster(a=3, b=2)
    gang(sim, "g", range(3), 3, {"kohort.dev/topology": "rack=required", **policy})
    sim.settle()
    lost = sim.bound["g-1"]
    sim.delete("pod", "g-1")
    sim.delete("node", lost)
    add(sim, "g", 1, suffix="-again")
    sim.settle(15.0)
    assert sim.bound.get("g-1-again", "") == lands
    assert satisfied(sim, "g")[0] == ("True" if lands else "False")
    if lands:
        told = [event.text for step in sim.steps for event in step.writes.events if event.reason == "Widened"]
        why = f"{RACK}=a, where its members run, is too small: 1 pod needs 1 cpu, 2 nodes have 0 free"
        assert told == [f"kohort.dev/replacement Widen: placed outside of the group's domain, for {why}"]
        sim.delete("pod", "g-0")
        add(sim, "g", 0, suffix="-again")
        sim.settle(15.0)
        assert len([pod for pod in sim.bound if pod.startswith("g-")]) == 3  # in two racks, and nothing is wrong


def test_a_new_gang_keeps_to_what_it_requires_whatever_its_policy() -> None:
    sim = cluster(a=2, b=2)
    gang(sim, "g", range(3), 3, {"kohort.dev/topology": "rack=required", "kohort.dev/replacement": "Widen"})
    sim.settle()
    assert sim.bound == {}


# ---- networks as they are


def test_nodes_without_a_level_are_used_when_domains_are_full_and_shown_as_such() -> None:
    """Of mixed hardware: three racks of different size, and nodes that know no rack at all."""
    sim = cluster(a=3, b=1)
    for number in range(2):
        create(sim, {"node": f"x-{number}", "cpu": "1", "labels": {ZONE: "zone-x"}})
    gang(sim, "g", range(5), 5, {"kohort.dev/topology": "rack=preferred"})
    sim.settle()
    assert racks(sim, "g")[:3] == "aaa"
    (place,) = root_status(sim.core, root(sim, "g")).places
    rack = next(one for one in place.standing.levels if one.key == RACK)
    assert rack.domains["a"] == 3
    assert sum(rack.domains.values()) == 5


def test_a_required_level_is_never_a_node_without_it() -> None:
    sim = cluster(a=1)
    for number in range(4):
        create(sim, {"node": f"x-{number}", "cpu": "1", "labels": {ZONE: "zone-x"}})
    gang(sim, "g", range(2), 2, {"kohort.dev/topology": "rack=required"})
    sim.settle()
    assert sim.bound == {}


def test_a_label_that_moves_a_node_to_another_rack_undoes_nothing_and_says_why_members_wait() -> None:
    """The gang required one rack; its nodes are in two now. A member that is lost waits, by policy it goes on."""
    sim = cluster(a=4, b=2)
    gang(sim, "g", range(3), 3, {"kohort.dev/topology": "rack=required"})
    sim.settle()
    moved, lost = sim.bound["g-0"], sim.bound["g-1"]
    sim.objects["node"][moved]["metadata"]["labels"][RACK] = "b"
    sim.tell("node", moved)
    sim.settle(30.0)
    assert len(sim.bound) == 3
    sim.delete("pod", "g-1")
    add(sim, "g", 1, suffix="-again")
    sim.settle(15.0)
    assert lost
    assert "g-1-again" not in sim.bound
    status = root_status(sim.core, root(sim, "g"))
    assert status.explanation is not None
    assert f"members of default/g run on 2 domains of {RACK}" in status.explanation.detail
    sim.objects["node"][moved]["metadata"]["labels"][RACK] = "a"  # the label comes back, and so does the member
    sim.tell("node", moved)
    sim.settle(400.0)
    assert sim.bound["g-1-again"].startswith("a-")
