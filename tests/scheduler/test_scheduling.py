"""Behaviour beyond the recorded scenarios, on the simulated API: fairness, repair, healing, what is said."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.scheduler.short import change, create, pod_body
from tests.scheduler.sim import SETTINGS, Sim

from kohort.place.demand import Demand, Result
from kohort.place.engine import Engine
from kohort.place.explain import Explanation, explain
from kohort.place.profile import ProfileError
from kohort.scheduler.__main__ import main
from kohort.scheduler.defaultselectors import DefaultSelectors
from kohort.scheduler.jsonlog import JsonLines
from kohort.scheduler.model import Pod
from kohort.scheduler.settings import SchedulerSettings, read_profile_file


def cluster(**nodes: str) -> Sim:
    sim = Sim()
    for name, cpu in nodes.items():
        create(sim, {"node": name, "cpu": cpu})
    return sim


def gang(sim: Sim, name: str, size: int, minimum: int | None = None, cpu: str = "1", **more: str) -> None:
    create(sim, {"group": name, "gang": minimum or size, **more})
    for number in range(size):
        pod = {"pod": f"{name}-{number}", "in": name, "cpu": cpu}
        create(sim, pod | ({"priority": more["priority"]} if "priority" in more else {}))


# ---- fairness


def small(sim: Sim, number: int) -> str:
    create(sim, {"pod": f"small-{number}", "cpu": "1"})
    return f"small-{number}"


@pytest.mark.parametrize(("patience", "lands"), [(0.0, False), (60.0, True)])
def test_a_waiting_gang_is_not_starved_by_small_pods(patience: float, lands: bool) -> None:
    """A stream of small pods, each of which takes what another frees. Room is held for the gang once it waited long."""
    sim = Sim(settings=replace(SETTINGS, profile=replace(SETTINGS.profile, patience=patience)))
    create(sim, {"node": "n", "cpu": "4"})
    living = [small(sim, number) for number in range(4)]
    sim.settle(1.0)
    gang(sim, "big", 4)
    for number in range(4, 40):
        living.append(small(sim, number))
        sim.delete("pod", living.pop(0))
        sim.settle(10.0)
    assert ("big-0" in sim.bound) is lands


def test_a_gang_that_can_never_fit_holds_nothing() -> None:
    sim = cluster(n="4")
    gang(sim, "huge", 5)
    sim.settle(1000.0)
    small(sim, 1)
    sim.settle(1.0)
    assert sim.core.backfill.root is None
    assert "small-1" in sim.bound


def decisions(sim: Sim) -> int:
    return sum(step.decision is not None for step in sim.steps)


def test_by_the_clock_nobody_is_decided_for_whom_nothing_has_changed() -> None:
    """A gang that waits for days costs nothing meanwhile; pods that are bound beside it take room, and free none."""
    sim = cluster(n="4")
    gang(sim, "huge", 5)
    sim.settle(400.0)
    before = decisions(sim)
    sim.settle(86_400.0)
    assert decisions(sim) == before
    small(sim, 1)
    sim.settle(86_400.0)
    assert decisions(sim) == before + 1, "the small pod alone"
    create(sim, {"node": "more", "cpu": "4"})
    sim.settle(60.0)
    assert {f"huge-{number}" for number in range(5)} <= set(sim.bound)


def test_a_backlog_costs_nothing_while_nothing_it_could_use_is_freed() -> None:
    """A hundred gangs of ten sizes wait; small pods come and go. Neither the clock nor they make anybody decide."""
    sim = Sim(settings=replace(SETTINGS, explains=False))
    create(sim, {"node": "n", "cpu": "100"})
    create(sim, {"pod": "long", "cpu": "97", "node": "n"})
    for number in range(100):
        gang(sim, f"g{number:03}", 4 + number % 10)
    sim.settle(400.0)
    before = decisions(sim)
    for number in range(20):
        name = small(sim, number)
        sim.settle(400.0)
        sim.delete("pod", name)
    assert decisions(sim) - before <= 40, "the small pods, and whoever may hold room"


@pytest.mark.parametrize(("explains", "again"), [(True, 1), (False, 0)])
def test_where_failures_are_told_the_numbers_are_new_after_five_minutes(explains: bool, again: int) -> None:
    sim = Sim(settings=replace(SETTINGS, explains=explains))
    create(sim, {"node": "n", "cpu": "4"})
    small(sim, 1)
    gang(sim, "huge", 5)
    sim.settle(400.0)
    before = decisions(sim)
    sim.delete("pod", "small-1")
    sim.settle(400.0)
    assert decisions(sim) == before + again


def test_room_is_held_for_a_limited_time_only() -> None:
    sim = cluster(n="4")
    create(sim, {"pod": "long", "cpu": "2", "node": "n"})
    gang(sim, "big", 4)
    sim.settle(61.0)
    assert sim.core.backfill.root == "default/big"
    small(sim, 1)
    sim.settle(1.0)
    assert "small-1" not in sim.bound
    assert "room is held for default/big" in next(one.detail for one in sim.core.pending() if "small" in one.key)
    sim.settle(1000.0)
    assert "small-1" in sim.bound


def test_a_more_important_root_does_not_see_what_is_held() -> None:
    sim = cluster(n="4")
    create(sim, {"pod": "long", "cpu": "2", "node": "n"})
    gang(sim, "big", 4)
    sim.settle(61.0)
    create(sim, {"pod": "urgent", "cpu": "1", "priority": "p100"})
    sim.settle(1.0)
    assert "urgent" in sim.bound


def test_c10_of_ten_equal_gangs_two_fit_and_the_others_cost_one_attempt_each() -> None:
    sim = cluster(n1="6")
    for number in range(10):
        gang(sim, f"g{number}", 3)
    sim.settle(30.0)
    assert len(sim.bound) == 6
    assert sim.counts() == {"scheduled": 2, "unschedulable": 8}


# ---- repair


def test_a_refused_member_is_placed_elsewhere() -> None:
    sim = cluster(n1="2", n2="2")
    sim.refuse["g-0"] = 1
    gang(sim, "g", 2)
    sim.settle()
    first = next(step.decision.assignments for step in sim.steps if step.decision and step.decision.assignments)
    refused = first[sim.objects["pod"]["g-0"]["metadata"]["uid"]]
    assert sim.pending == {"g-0": "SchedulerError"}
    sim.settle(2.0)
    assert sim.bound["g-0"] != refused


def test_the_room_of_a_refused_member_is_not_given_away() -> None:
    sim = cluster(n1="2")
    sim.refuse["g-0"] = 1
    gang(sim, "g", 2)
    sim.settle()
    create(sim, {"pod": "thief", "cpu": "1"})
    sim.settle(3.0)
    assert sorted(sim.bound) == ["g-0", "g-1"]


def test_a_gang_that_a_crash_left_half_bound_is_made_whole_before_more_important_ones() -> None:
    sim = cluster(n1="4")
    sim.crash = 1
    sim.before_binding = lambda: gang(sim, "high", 3, priority="p100-never")
    gang(sim, "low", 3)
    sim.settle(5.0)
    assert sorted(sim.bound) == ["low-0", "low-1", "low-2"]
    assert set(sim.pending) == {"high-0", "high-1", "high-2"}


def test_the_room_of_a_refused_member_is_not_given_to_more_important_ones() -> None:
    sim = cluster(n1="3")
    sim.refuse["low-0"] = 1
    gang(sim, "low", 3)
    sim.settle()
    create(sim, {"pod": "high", "cpu": "1", "priority": "p100-never"})
    sim.settle(3.0)
    assert sorted(sim.bound) == ["low-0", "low-1", "low-2"]


def test_a_gang_that_was_whole_once_is_repaired_in_its_turn() -> None:
    sim = cluster(n1="3")
    gang(sim, "low", 3)
    sim.settle()
    sim.delete("pod", "low-0")
    create(sim, {"pod": "high", "cpu": "1", "priority": "p100-never"})
    create(sim, {"pod": "low-new", "in": "low", "cpu": "1"})
    sim.settle(3.0)
    assert sorted(sim.bound) == ["high", "low-1", "low-2"]


def test_q15_a_member_lost_with_its_node_is_replaced_inside_the_rack() -> None:
    sim = Sim()
    for name, rack in (("a1", "A"), ("a2", "A"), ("b1", "B")):
        create(sim, {"node": name, "cpu": "2", "labels": {"rack": rack}})
    create(sim, {"pod": "on-a2", "cpu": "1", "node": "a2"})
    gang(sim, "g", 3, topology="rack")
    sim.settle()
    lost = next(name for name, node in sim.bound.items() if node == "a2" and name != "on-a2")
    sim.delete("pod", "on-a2")
    sim.delete("node", "a2")
    sim.delete("pod", lost)
    create(sim, {"pod": "g-9", "in": "g", "cpu": "1"})
    sim.settle(3.0)
    assert sim.pending == {"g-9": "Unschedulable"}
    said = next(sim.core.pending())
    assert said.reason in {"TopologyDomainTooSmall", "InsufficientResource"}
    create(sim, {"node": "a3", "cpu": "2", "labels": {"rack": "A"}})
    sim.settle(3.0)
    assert sim.bound["g-9"] == "a3"


def done_and_lost(sim: Sim, *, named: bool) -> None:
    """A gang of four of one Job: two members are done on n2, one runs there, and n2 is deleted with all of them.
    `named`: whether the Job's template names the group, as a JobSet's does."""
    create(sim, {"node": "n1", "cpu": "2"})
    create(sim, {"node": "n2", "cpu": "3"})
    create(sim, {"group": "g", "gang": 4})
    template = {"spec": {"schedulingGroup": {"podGroupName": "g"}}} if named else {}
    job = sim.put("job", "j", {"spec": {"template": template}, "status": {}})
    for number in range(4):
        member_of(sim, job, f"g-{number}", node="n1" if number == 3 else "n2")
    for number in range(2):
        change(sim, f"pod/g-{number}", {"phase": "Succeeded"})
    sim.settle()
    job["status"]["succeeded"] = 2
    sim.tell("job", "j")
    sim.delete("node", "n2")
    for number in range(3):
        sim.delete("pod", f"g-{number}")


def member_of(sim: Sim, job: dict[str, Any], name: str, node: str = "") -> None:
    body = pod_body({"pod": name, "in": "g", "cpu": "1"} | ({"node": node} if node else {}))
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job["metadata"]["uid"], "controller": True}
    ]
    sim.put("pod", name, body)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("restart", [False, True])
def test_members_that_their_job_has_recorded_as_done_count_when_their_pods_are_gone(named: bool, restart: bool) -> None:
    """Without them the replacement would wait for ever: nobody makes the two that are done again."""
    sim = Sim()
    done_and_lost(sim, named=named)
    member_of(sim, sim.objects["job"]["j"], "g-9")
    if restart:
        sim.restart()
    sim.settle(3.0)
    assert sim.bound == {"g-3": "n1", "g-9": "n1"}


def test_what_a_job_has_recorded_counts_once_and_goes_with_the_job() -> None:
    sim = Sim()
    done_and_lost(sim, named=True)
    group, job = sim.core.cache.trees.get("default/g"), sim.objects["job"]["j"]
    assert group is not None
    assert (group.done, group.members) == (2, 3)
    member_of(sim, job, "g-9")
    change(sim, "pod/g-9", {"phase": "Succeeded"})
    assert group.done == 2  # the Job has not counted it yet, or it has and this is one of the two
    job["status"]["succeeded"] = 3
    sim.tell("job", "j")
    assert group.done == 3
    job["metadata"]["deletionTimestamp"] = sim.stamp()
    sim.tell("job", "j")
    assert group.done == 1  # the pod that is there
    sim.delete("job", "j")
    sim.delete("pod", "g-9")
    assert (group.done, group.members) == (0, 1)


def test_preemption_that_a_restart_interrupts_takes_no_second_victim() -> None:
    sim = cluster(n1="2", n2="2")
    for node in ("n1", "n2"):
        for number in range(2):
            create(sim, {"pod": f"{node}-{number}", "cpu": "1", "node": node, "priority": "p10"})
    sim.slow = True
    gang(sim, "g", 2, priority="p100")
    sim.settle()
    first = dict(sim.evicted)
    assert len(first) == 2
    sim.restart()
    sim.settle(5.0)
    assert sim.evicted == first
    sim.finish_deletions()
    sim.settle(5.0)
    assert {"g-0", "g-1"} <= sim.bound.keys()


def test_a_pod_without_a_group_preempts_on_the_node_that_kube_scheduler_would_choose() -> None:
    """The highest priority and the number of victims are equal on both nodes: the lower sum of priorities decides,
    before the later start that a group's preemption looks at."""
    sim = cluster(n1="2", n2="2")
    for name, node, priority, started in (
        ("a", "n1", 20, 9),
        ("b", "n1", 19, 9),
        ("c", "n2", 20, 99),
        ("d", "n2", 5, 99),
    ):
        item = {"pod": name, "cpu": "1", "node": node, "priority": f"p{priority}", "started": started}
        create(sim, item)
    create(sim, {"pod": "high", "cpu": "2", "priority": "p100"})
    sim.settle(2.0)
    assert set(sim.evicted) == {"c", "d"}
    assert sim.bound["high"] == "n2"


def test_an_explanation_is_only_made_for_what_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(engine: Engine, root: Demand, result: Result) -> Explanation:
        made.append(root.name)
        return explain(engine, root, result)

    monkeypatch.setattr("kohort.scheduler.decision.explain", counted)
    sim = cluster(n1="2")
    create(sim, {"pod": "w", "cpu": "2", "node": "n1", "priority": "p10"})
    gang(sim, "high", 2, priority="p100")
    sim.settle(2.0)
    assert {"high-0", "high-1"} <= sim.bound.keys()
    assert made == []
    gang(sim, "late", 2, priority="p100")
    sim.settle()
    assert made == ["default/late"]


# ---- what is said


def test_o3_true_is_never_taken_back() -> None:
    sim = cluster(n1="2")
    gang(sim, "g", 2)
    sim.settle()
    before = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    create(sim, {"pod": "g-9", "in": "g", "cpu": "1"})
    sim.settle(30.0)
    assert sim.pending == {"g-9": "Unschedulable"}
    assert sim.condition("group", "g", "PodGroupInitiallyScheduled") == before


def test_o2_the_transition_time_is_kept_while_the_status_is() -> None:
    sim = cluster(n1="2")
    gang(sim, "g", 3)
    sim.settle(2.0)
    before = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    create(sim, {"pod": "g-9", "in": "g", "cpu": "1", "priority": "p50"})
    sim.settle(2.0)
    after = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert before is not None
    assert after is not None
    assert (before["reason"], after["reason"]) == ("Unschedulable", "SchedulerError")
    assert before["lastTransitionTime"] == after["lastTransitionTime"]


def test_what_was_said_is_not_said_again() -> None:
    sim = cluster(n1="2")
    gang(sim, "g", 3)
    sim.settle()
    explanation = len(sim.events)
    writes = sum(len(step.writes.patches) for step in sim.steps)
    for number in range(5):  # it is tried again, for something has changed, and it is told the same
        sim.objects["node"]["n1"]["metadata"].setdefault("labels", {})["seen"] = str(number)
        sim.tell("node", "n1")
        sim.settle(400.0)
    assert sim.counts()["unschedulable"] > 3
    assert (len(sim.events), sum(len(step.writes.patches) for step in sim.steps)) == (explanation, writes)


def test_a_disrupted_group_is_told() -> None:
    sim = cluster(n1="2")
    gang(sim, "low", 2, disruption="all", priority="p10")
    sim.settle()
    gang(sim, "high", 2, priority="p100")
    sim.settle(2.0)
    said = sim.condition("group", "low", "DisruptionTarget")
    assert said is not None
    assert (said["status"], said["reason"]) == ("True", "PreemptionByScheduler")
    assert any(note.text.startswith("Preempted by podgroup") for note in sim.events)


def test_o4_the_group_says_minimum_and_victims() -> None:
    sim = cluster(n1="1")
    sim.slow = True
    create(sim, {"pod": "w", "cpu": "1", "node": "n1", "priority": "p10"})
    gang(sim, "g", 1, priority="p100")
    sim.settle()
    said = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert said is not None
    assert "minCount (1) cannot be satisfied" in said["message"]
    assert "preempting 1 victims" in said["message"]


def test_conditions_say_what_came_closest_and_what_would_help() -> None:
    sim = cluster(n1="2")
    gang(sim, "g", 3)
    sim.settle()
    said = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert said is not None
    assert said["message"] == (
        "minCount (3) cannot be satisfied: InsufficientResource: 3 pods need 3 cpu, 1 node has 2 free; "
        "nobody can be preempted for it; closest: n1 lacks 1 cpu for one more pod; "
        "would fit with 1 more node like n1, or with minCount 2, now"
    )
    pod = sim.condition("pod", "g-0", "PodScheduled")
    assert pod is not None
    assert (pod["reason"], "would fit with 1 more node" in pod["message"]) == ("Unschedulable", True)
    events = {note.regarding.name: note.text for note in sim.events if note.reason == "FailedScheduling"}
    assert events["g"] == said["message"]
    (state,) = sim.core.pending()
    assert state.explanation is not None
    assert [one.kind for one in state.explanation.remedies] == ["nodes", "minimum"]


def test_of_a_tree_the_level_is_said_where_it_fails() -> None:
    sim = cluster(n1="4")
    create(sim, {"composite": "root", "gang": 2})
    create(sim, {"composite": "mid", "gang": 1, "parent": "root"})
    gang(sim, "a", 1, parent="root")
    gang(sim, "deep", 6, parent="mid")
    sim.settle()
    said = sim.condition("composite", "root", "CompositePodGroupInitiallyScheduled")
    assert said is not None
    assert "InsufficientResource" in said["message"]
    assert "in default/deep (level 2): closest: n1 lacks 1 cpu for one more pod" in said["message"]


def test_a_group_that_is_not_ready_for_a_while_gets_an_event() -> None:
    sim = cluster(n1="8")
    gang(sim, "g", 2, minimum=3)
    create(sim, {"group": "orphan", "gang": 1, "parent": "nobody"})
    create(sim, {"pod": "orphan-0", "in": "orphan", "cpu": "1"})
    sim.settle()
    said = {(note.regarding.name, note.text) for note in sim.core.notices(10.0).events}
    assert ("g", "WaitingForMembers: 2 of 3 members exist; next step: 1 more member has to exist") in said
    orphan = (
        "WaitingForPodGroup: CompositePodGroup default/nobody does not exist; "
        "next step: create CompositePodGroup default/nobody, or correct spec.parentCompositePodGroupName"
    )
    assert ("orphan", orphan) in said
    assert [note.regarding.name for note in sim.core.notices(20.0).events] == ["orphan-0"]
    assert not sim.core.notices(30.0)


def test_q4_a_lower_minimum_opens_the_gate() -> None:
    sim = cluster(n1="8")
    gang(sim, "g", 2, minimum=3)
    sim.settle()
    change(sim, "group/g", {"minCount": 2})
    sim.settle()
    assert len(sim.bound) == 2


def test_the_same_input_gives_the_same_placement() -> None:
    def placed() -> dict[str, str]:
        sim = cluster(n1="3", n2="5", n3="4", n4="4")
        for number, size in enumerate((3, 2, 4, 3)):
            gang(sim, f"g{number}", size)
        sim.settle()
        return sim.bound

    assert placed() == placed()


def test_nobody_goes_for_a_gang_that_lost_a_member_since_the_plan() -> None:
    sim = cluster(n1="2")
    for number in range(2):
        create(sim, {"pod": f"w{number}", "cpu": "1", "node": "n1", "priority": "p10"})
    gang(sim, "g", 2, priority="p100")
    sim.before_binding = lambda: sim.delete("pod", "g-1")
    sim.settle(5.0)
    assert sim.evicted == {}
    assert not list(sim.core.cache.reservations)


# ---- the profile


def test_pods_of_a_replica_set_are_spread_softly_by_default_and_members_of_a_group_are_not() -> None:
    """kube-scheduler's default constraints; `strategy: most` would otherwise fill one node."""
    packing = replace(SETTINGS, profile=replace(SETTINGS.profile, strategy="most"))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}

    def nodes(profile_of: SchedulerSettings, *, grouped: bool) -> int:
        sim = Sim(settings=profile_of)
        for name in ("n1", "n2"):
            create(sim, {"node": name, "cpu": "8"})
        sim.core.cache.default_selectors.set_controller("ReplicaSet", "default/rs", {"matchLabels": {"app": "x"}})
        create(sim, {"group": "g", "gang": 2})
        for number in range(2):
            item = {"pod": f"p{number}", "cpu": "1", "labels": {"app": "x"}} | ({"in": "g"} if grouped else {})
            body = pod_body(item)
            body["metadata"]["ownerReferences"] = [owner]
            sim.put("pod", f"p{number}", body)
        sim.settle()
        return len(set(sim.bound.values()))

    assert nodes(packing, grouped=False) == 2
    assert nodes(packing, grouped=True) == 1
    off = replace(packing, profile=replace(packing.profile, default_spread=()))
    assert nodes(off, grouped=False) == 1


def test_a_service_selects_pods_as_well() -> None:
    owners = DefaultSelectors()
    owners.set_service("default/s", {"app": "x"})
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "default", "labels": {"app": "x", "v": "1"}}}, Pod)
    assert owners.selector(pod) == {"matchLabels": {"app": "x"}}
    owners.set_service("default/s", None)
    assert owners.selector(pod) is None


def test_a_profile_file_tells_every_mistake_at_once(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text("strategy: most\nresources: {nvidia.com/gpu: 10}\ndefaultSpread: []\n")
    profile = read_profile_file(path)
    assert (profile.strategy, profile.weights, profile.default_spread) == ("most", {"nvidia.com/gpu": 10}, ())
    path.write_text("strategy: some\nweights: {spread: -1, colour: 3}\ndefaultSpread: [{maxSkew: 1}]\n")
    with pytest.raises(ProfileError) as wrong:
        read_profile_file(path)
    fields = [line.split(": ")[1] for line in str(wrong.value).splitlines()]
    assert fields == [
        "strategy",
        "weights.spread",
        "weights.colour",
        "defaultSpread[0].topologyKey",
        "defaultSpread[0].whenUnsatisfiable",
    ]
    with pytest.raises(ProfileError, match="cannot be read"):
        read_profile_file(tmp_path / "none")


def test_python_m_kohort_scheduler_says_what_is_wrong_with_its_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text("strategy: some\n")
    assert main(["--profile", str(path)]) == 2
    assert "strategy: found 'some'" in capsys.readouterr().err


# ---- flaws that were recorded of kube-scheduler, and are not ours


def test_b3_a_binding_that_is_always_refused_is_no_hot_loop() -> None:
    """kube-scheduler tries again a millisecond later, for ever. Here the pause grows, and the group is not True."""
    sim = Sim(settings=replace(SETTINGS, longest_backoff=10.0))
    create(sim, {"node": "n1", "cpu": "4"})
    sim.refuse["g-0"] = -1
    gang(sim, "g", 2)
    sim.settle(100.0)
    tries = [step for step in sim.steps if step.decision is not None and step.decision.assignments]
    assert 5 <= len(tries) <= 14
    assert sim.groups() == {"g": ("False", "SchedulerError")}
    (said,) = sim.core.pending()
    assert (said.reason, "refused on purpose" in said.detail) == ("BindingRefused", True)


def test_x3_a_member_deleted_in_mid_cycle_does_not_hold_its_siblings() -> None:
    sim = cluster(n1="4")
    gang(sim, "g", 3, minimum=2)
    sim.before_binding = lambda: sim.delete("pod", "g-1")
    sim.settle(2.0)
    assert sorted(sim.bound) == ["g-0", "g-2"]


def test_x4_nobody_goes_for_a_leaf_that_fails_anyway() -> None:
    sim = cluster(n1="2")
    for number in range(2):
        create(sim, {"pod": f"w{number}", "cpu": "1", "node": "n1", "priority": "p10"})
    create(sim, {"composite": "root", "gang": 1, "priority": "p100"})
    gang(sim, "small", 1, parent="root", priority="p100")
    gang(sim, "huge", 9, parent="root", priority="p100")
    sim.settle(3.0)
    assert len(sim.evicted) == 1
    assert "small-0" in sim.bound


def test_f24_what_does_not_fit_is_no_error() -> None:
    sim = Sim()
    gang(sim, "g", 2)
    sim.settle()
    assert sim.groups() == {"g": ("False", "Unschedulable")}
    assert set(sim.pending.values()) == {"Unschedulable"}


def test_x18_the_retry_of_leftovers_does_not_overwrite_true() -> None:
    sim = cluster(n1="2")
    gang(sim, "g", 4, minimum=2)
    sim.settle(300.0)
    assert len(sim.bound) == 2
    assert sim.groups() == {"g": ("True", "Scheduled")}


# ---- healing


def test_members_lost_with_a_node_that_cannot_be_replaced_say_what_to_do() -> None:
    """The gang lives in one rack. A member is lost with its node; the rack has no room for another."""
    sim = Sim()
    for name, rack in (("a1", "A"), ("a2", "A"), ("b1", "B")):
        create(sim, {"node": name, "cpu": "2", "labels": {"rack": rack}})
    create(sim, {"pod": "on-b", "cpu": "1", "node": "b1"})
    gang(sim, "g", 4, topology="rack")
    sim.settle()
    lost = [name for name, node in sim.bound.items() if node == "a2"]
    sim.delete("node", "a2")
    for name in lost:
        sim.delete("pod", name)
    for number in range(len(lost)):
        create(sim, {"pod": f"new-{number}", "in": "g", "cpu": "1"})
    sim.settle(3.0)
    assert set(sim.pending) == {"new-0", "new-1"}
    (said,) = sim.core.pending()
    assert said.reason == "TopologyDomainTooSmall"
    assert "rack=A, where its members run" in said.detail
    assert said.explanation is not None
    assert "with 1 more node like a1 in rack=A" in [str(one) for one in said.explanation.remedies]
    create(sim, {"node": "a3", "cpu": "2", "labels": {"rack": "A"}})
    sim.settle(3.0)
    assert {sim.bound["new-0"], sim.bound["new-1"]} == {"a3"}


# ---- choices


def test_groups_only_leaves_single_pods_to_others() -> None:
    sim = Sim(settings=replace(SETTINGS, groups_only=True))
    create(sim, {"node": "n1", "cpu": "4"})
    create(sim, {"pod": "alone", "cpu": "1"})
    gang(sim, "g", 2)
    sim.settle(5.0)
    assert sorted(sim.bound) == ["g-0", "g-1"]
    assert not list(sim.core.pending())


def test_a_log_line_is_json_with_the_facts_of_the_decision() -> None:
    sim = cluster(n1="1")
    gang(sim, "g", 2)
    sim.settle()
    decision = next(step.decision for step in sim.steps if step.decision is not None)
    record = logging.LogRecord("kohort.scheduler.loop", logging.INFO, "", 1, "%s", ("said",), None)
    record.facts = decision.facts()
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["message"], line["root"]) == ("info", "said", "default/g")
    assert (line["result"], line["reason"], line["left"]) == ("unschedulable", "InsufficientResource", 2)


def test_b3_a_gang_whose_member_is_refused_for_ever_says_so_and_nothing_is_taken_back() -> None:
    sim = Sim(refuse={"g-2": -1})
    create(sim, {"node": "n1", "cpu": "4"})
    create(sim, {"group": "g", "gang": 3})
    for number in range(3):
        create(sim, {"pod": f"g-{number}", "in": "g", "cpu": "1"})
    sim.settle(120)
    assert set(sim.bound) == {"g-0", "g-1"}
    assert not sim.evicted
    said = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert said is not None
    assert (said["status"], said["reason"]) == ("False", "SchedulerError")
    expected = (
        "BindingRefused: default/g-2 is not taken by the API server: refused on purpose; members that are bound keep"
    )
    assert said["message"].startswith(expected)
    explanation = [note for note in sim.events if note.regarding.kind == "PodGroup"]
    assert [(note.type, note.reason) for note in explanation] == [("Warning", "BindingRefused")]  # once, however often
    sim.refuse.clear()
    sim.settle(120)
    assert len(sim.bound) == 3
    said = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert said is not None
    assert said["status"] == "True"


def test_b3_a_tree_says_at_every_level_that_a_member_is_refused_and_one_refusal_is_no_news() -> None:
    sim = Sim(refuse={"b-0": -1, "alone-0": 1})
    create(sim, {"node": "n1", "cpu": "8"})
    create(sim, {"composite": "root", "gang": 2})
    for name in "ab":
        create(sim, {"group": name, "gang": 1, "parent": "root"})
        create(sim, {"pod": f"{name}-0", "in": name, "cpu": "1"})
    create(sim, {"group": "alone", "gang": 1})
    create(sim, {"pod": "alone-0", "in": "alone", "cpu": "1"})
    sim.settle(60)
    root = sim.condition("composite", "root", "CompositePodGroupInitiallyScheduled")
    branch = sim.condition("group", "b", "PodGroupInitiallyScheduled")
    assert root is not None
    assert branch is not None
    assert root["message"] == branch["message"]
    assert "default/b-0 is not taken by the API server" in root["message"]
    assert (root["reason"], branch["reason"]) == ("Unschedulable", "SchedulerError")
    assert set(sim.bound) == {"a-0", "alone-0"}
    assert [note.reason for note in sim.events if note.regarding.name == "alone"] == ["Scheduled"]
