"""Gangs that lose members: who waits, who goes next door, who is moved, failed or restarted as a whole, and when."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduler.short import create, group_body, pod_body
from tests.scheduler.sim import SETTINGS, Sim
from tests.scheduler.test_topology import RACK, add, cluster, gang, racks, root, satisfied

from kohort.api.scheduling.healing import Healing
from kohort.place.profile import ProfileError, read_profile
from kohort.place.score import Profile
from kohort.scheduler.rootstatus import root_status
from kohort.scheduler.settings import SchedulerSettings

REQUIRED = {"kohort.dev/topology": "rack=required"}


def lose(sim: Sim, pod: str) -> None:
    """A node dies with its pod, and the owner makes the pod anew."""
    node = sim.bound[pod]
    name, rank = pod.split("-")[:2]
    sim.delete("pod", pod)
    sim.delete("node", node)
    add(sim, name, int(rank), suffix="-again")


def events(sim: Sim, reason: str) -> list[str]:
    return [one.text for one in sim.events if one.reason == reason and one.regarding.kind == "PodGroup"]


def recreate(sim: Sim, name: str, ranks: range) -> None:
    """What a Job does about pods that were deleted."""
    there = {pod.split("-")[1] for pod in sim.objects["pod"] if pod.startswith(f"{name}-")}
    for rank in ranks:
        if str(rank) not in there:
            add(sim, name, rank, suffix="-new")


# ---- the domain is full


def test_a_gang_moves_as_a_whole_to_a_domain_that_takes_all_of_it() -> None:
    sim = cluster(a=3, b=2, c=4)
    gang(sim, "g", range(3), 3, {**REQUIRED, "kohort.dev/replacement": "Move"})
    sim.settle()
    assert racks(sim, "g") == "aaa"
    lose(sim, "g-1")
    sim.settle()
    assert sorted(sim.evicted) == ["g-0", "g-2"]
    (told,) = events(sim, "Moved")
    assert told.startswith(f"kohort.dev/replacement Move: {RACK}=a, where its members run, is too small")
    assert told.endswith("3 pods would fit elsewhere")
    assert all(f"kohort: {told}" == text or told in text for text in sim.evicted.values())
    target = sim.condition("group", "g", "DisruptionTarget")
    assert target is not None
    assert target["reason"] == "MoveByScheduler"
    recreate(sim, "g", range(3))
    sim.settle(5.0)
    assert racks(sim, "g") == "ccc"
    assert satisfied(sim, "g")[0] == "True"


def test_the_room_that_a_gang_moves_to_is_held_for_it() -> None:
    sim = cluster(a=3, b=3)
    gang(sim, "g", range(3), 3, {**REQUIRED, "kohort.dev/replacement": "Move"})
    sim.settle()
    lose(sim, "g-1")
    sim.settle()
    gang(sim, "h", range(2), 2, REQUIRED)  # before the members of g are made anew; rack a has room for both
    sim.settle(1.0)
    recreate(sim, "g", range(3))
    sim.settle(5.0)
    assert (racks(sim, "g"), racks(sim, "h")) == ("bbb", "aa")


def test_room_is_not_held_for_ever_for_a_gang_that_does_not_come() -> None:
    sim = cluster(a=3, b=3)
    gang(sim, "g", range(3), 3, {**REQUIRED, "kohort.dev/replacement": "Move"})
    sim.settle()
    lose(sim, "g-1")
    sim.settle()
    gang(sim, "h", range(3), 3, REQUIRED)
    sim.settle(30.0)
    assert racks(sim, "h") == ""
    sim.settle(60.0)
    assert racks(sim, "h") == "bbb"


def test_nobody_is_moved_without_a_place_to_go_to() -> None:
    sim = cluster(a=3, b=2)
    gang(sim, "g", range(3), 3, {**REQUIRED, "kohort.dev/replacement": "Move"})
    sim.settle()
    lose(sim, "g-1")
    sim.settle(30.0)
    assert sim.evicted == {}
    assert racks(sim, "g") == "aa"
    status = root_status(sim.core, root(sim, "g"))
    assert status.explanation is not None
    assert "kohort.dev/replacement Move: no place was found that takes all of default/g" in status.explanation.detail


def test_a_member_above_the_minimum_moves_nobody() -> None:
    sim = cluster(a=3, b=4)
    gang(sim, "g", range(4), 3, {"kohort.dev/topology": "rack=required", "kohort.dev/replacement": "Move"})
    sim.settle()
    assert racks(sim, "g") == "bbbb"
    lose(sim, "g-1")
    sim.settle(10.0)
    assert sim.evicted == {}
    assert racks(sim, "g") == "bbb"


def test_a_gang_fails_as_a_whole_and_says_so_in_a_condition_that_owners_can_name() -> None:
    sim = cluster(a=3, b=3)
    gang(sim, "g", range(3), 3, {**REQUIRED, "kohort.dev/replacement": "Fail"})
    gang(sim, "h", range(2), 2, REQUIRED)
    sim.settle()
    lose(sim, "g-1")
    sim.settle()
    assert sorted(sim.evicted) == ["g-0", "g-1-again", "g-2"]
    for name in sim.evicted:
        assert sim.objects["pod"][name]["status"]["phase"] == "Failed"
        said = sim.condition("pod", name, "kohort.dev/GangFailed")
        assert said is not None
        assert "kohort.dev/replacement Fail" in said["message"]
    assert len(events(sim, "Failed")) == 1
    assert racks(sim, "h") == "bb"


def test_whoever_can_be_preempted_for_a_member_is() -> None:
    """The gang's own policy is for when nobody makes room."""
    sim = cluster(a=3)
    body = {"gang": 2, "priority": "p5"}
    said = {"annotations": {**REQUIRED, "kohort.dev/replacement": "Fail"}}
    sim.put("group", "g", {**group_body(body, composite=False), "metadata": said})
    for rank in range(2):
        sim.put("pod", f"g-{rank}", pod_body({"in": "g", "cpu": "1", "priority": "p5"}))
    sim.settle()
    create(sim, {"pod": "low", "cpu": "1"})
    sim.settle()
    lost = sim.bound["g-1"]
    sim.delete("pod", "g-1")
    sim.delete("node", lost)
    sim.put("pod", "g-1-again", pod_body({"in": "g", "cpu": "1", "priority": "p5"}))
    sim.settle(5.0)
    assert list(sim.evicted) == ["low"]
    assert len([name for name in sim.bound if name.startswith("g-")]) == 2


# ---- below the minimum for longer than the grace


@pytest.mark.parametrize(("policy", "gone"), [("Restart", ["g-0", "g-2"]), ("Fail", ["g-0", "g-1-again", "g-2"])])
def test_a_group_below_its_minimum_is_ended_after_its_grace(policy: str, gone: list[str]) -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3, {**REQUIRED, "kohort.dev/below-minimum": policy, "kohort.dev/grace": "90s"})
    sim.settle()
    lose(sim, "g-1")
    sim.settle(80.0)
    assert sim.evicted == {}
    (told,) = root_status(sim.core, root(sim, "g")).healing
    assert "2 of at least 3 pods have nodes or have succeeded since 2026-01-01T00:00:00Z" in told
    assert f"as a whole after 90 s (kohort.dev/replacement Wait, kohort.dev/below-minimum {policy})" in told
    sim.settle(20.0)
    assert sorted(sim.evicted) == gone
    (told,) = events(sim, f"{policy}ed")
    assert told == (
        f"kohort.dev/below-minimum {policy}: 2 of at least 3 pods have nodes or have succeeded, "
        "for longer than its grace of 90 s"
    )


def test_members_that_nobody_makes_anew_do_not_keep_the_others_for_ever() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3, pods_say={"kohort.dev/below-minimum": "Restart", "kohort.dev/grace": "5s"})
    sim.settle()
    sim.delete("pod", "g-1")
    sim.settle(10.0)
    assert sorted(sim.evicted) == ["g-0", "g-2"]


def test_a_member_that_came_back_in_time_ends_the_grace() -> None:
    sim = cluster(a=4)
    gang(sim, "g", range(3), 3, {"kohort.dev/below-minimum": "Restart", "kohort.dev/grace": "60s"})
    sim.settle()
    for number in range(3):
        sim.delete("pod", f"g-1{'-again' * number}")
        sim.settle(40.0)
        add(sim, "g", 1, suffix="-again" * (number + 1))
        sim.settle(1.0)
    sim.settle(100.0)
    assert sim.evicted == {}
    assert len(sim.bound) == 3


def test_a_new_leader_goes_on_counting() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3, {"kohort.dev/below-minimum": "Restart", "kohort.dev/grace": "60s"})
    sim.settle()
    sim.delete("pod", "g-1")
    sim.settle(50.0)
    sim.restart()
    sim.settle(15.0)
    assert sorted(sim.evicted) == ["g-0", "g-2"]


def test_without_a_policy_survivors_stay() -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3)
    sim.settle()
    sim.delete("pod", "g-1")
    sim.settle(1000.0)
    assert len(sim.bound) == 2


def test_a_member_that_is_being_deleted_is_not_one_any_more() -> None:
    """On a node that is lost it stays so until somebody finds the node."""
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3, {"kohort.dev/below-minimum": "Restart", "kohort.dev/grace": "60s"})
    sim.settle()
    sim.objects["pod"]["g-1"]["metadata"]["deletionTimestamp"] = sim.stamp()
    sim.tell("pod", "g-1")
    sim.settle(1.0)
    assert satisfied(sim, "g") == ("False", "2 of at least 3 pods have nodes or have succeeded")
    sim.settle(60.0)
    assert sorted(sim.evicted) == ["g-0", "g-2"]


# ---- members that are evicted


@pytest.mark.parametrize(("mode", "gone"), [("all", ["g-0", "g-2"]), ("single", [])])
def test_who_goes_with_a_member_that_is_drained(mode: str, gone: list[str]) -> None:
    sim = cluster(a=3)
    sim.put("group", "g", group_body({"gang": 3, "disruption": mode}, composite=False))
    for rank in range(3):
        add(sim, "g", rank)
    sim.settle()
    pod = sim.objects["pod"]["g-1"]
    pod["metadata"]["deletionTimestamp"] = sim.stamp()
    said = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    pod["status"]["conditions"] = [said]
    sim.tell("pod", "g-1")
    sim.settle()
    assert sorted(sim.evicted) == gone
    assert len(events(sim, "Evicted")) == bool(gone)


def test_a_member_whose_node_is_lost_goes_alone_whatever_the_mode() -> None:
    sim = cluster(a=3)
    sim.put("group", "g", group_body({"gang": 3, "disruption": "all"}, composite=False))
    for rank in range(3):
        add(sim, "g", rank)
    sim.settle()
    sim.delete("pod", "g-1")
    sim.settle()
    assert sim.evicted == {}


# ---- what a member that comes back needs


@pytest.mark.parametrize(
    ("said", "bound"),
    [
        ({}, 1),  # as kube-scheduler: survivors and replacements have to reach the minimum
        ({"kohort.dev/match-policy": "waiting-and-running"}, 1),
        ({"kohort.dev/match-policy": "once-satisfied"}, 2),
        ({"gang.scheduling.koordinator.sh/match-policy": "once-satisfied"}, 2),
    ],
)
def test_whether_a_member_needs_the_whole_minimum(said: dict[str, str], bound: int) -> None:
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3, pods_say=said)
    sim.settle()
    sim.delete("pod", "g-0")
    sim.delete("pod", "g-1")
    add(sim, "g", 1, said, suffix="-again")
    sim.settle(5.0)
    assert len(sim.bound) == bound
    add(sim, "g", 0, said, suffix="-again")
    sim.settle(5.0)
    assert len(sim.bound) == 3


def test_a_gang_of_which_nobody_is_left_starts_whole_again_whatever_it_says() -> None:
    sim = cluster(a=3)
    said = {"kohort.dev/match-policy": "once-satisfied"}
    gang(sim, "g", range(3), 3, said)
    sim.settle()
    for rank in range(3):
        sim.delete("pod", f"g-{rank}")
    add(sim, "g", 0, suffix="-again")
    sim.settle(5.0)
    assert sim.bound == {}


def test_a_gang_does_not_get_younger_by_losing_a_member() -> None:
    """Another gang of the same priority has waited for the room; the one that is broken has it first."""
    sim = cluster(a=3)
    gang(sim, "g", range(3), 3, REQUIRED)
    sim.settle()
    sim.now += 5
    gang(sim, "h", range(1), 1, REQUIRED)
    sim.settle(20.0)
    sim.delete("pod", "g-1")
    add(sim, "g", 1, suffix="-again")
    sim.settle(20.0)
    assert sorted(sim.bound) == ["g-0", "g-1-again", "g-2"]


# ---- what is said


def test_all_mistakes_at_once() -> None:
    sim = cluster(a=3)
    said = {
        "kohort.dev/replacement": "Hope",
        "kohort.dev/below-minimum": "Cry",
        "kohort.dev/grace": "-1s",
        "kohort.dev/match-policy": "only-waiting",
        "kohort.dev/spares": "many",
    }
    gang(sim, "g", range(2), 2, said)
    sim.settle()
    told = sim.condition("group", "g", "PodGroupInitiallyScheduled")
    assert told is not None
    path = "PodGroup default/g metadata.annotations"
    for mistake in (
        f"{path}[kohort.dev/replacement]: found 'Hope'; one of Wait, Widen, Move, Fail is wanted",
        f"{path}[kohort.dev/below-minimum]: found 'Cry'; one of Wait, Restart, Fail is wanted",
        f"{path}[kohort.dev/grace]: found '-1s'; a duration of at least 0 is wanted, such as 90s or 5m",
        f"{path}[kohort.dev/match-policy]: found 'only-waiting'; one of waiting-and-running, once-satisfied is wanted",
        f"{path}[kohort.dev/spares]: found 'many'; a whole number from 0 to 16 is wanted",
    ):
        assert mistake in told["message"]


def test_the_profile_has_the_policies_of_those_who_say_nothing() -> None:
    healing = {"replacement": "Move", "belowMinimum": "Restart", "grace": "2m", "matchPolicy": "once-satisfied"}
    profile = read_profile({"healing": healing})
    assert profile.healing == Healing("Move", "Restart", 120.0, once_satisfied=True)
    with pytest.raises(ProfileError) as wrong:
        read_profile({"healing": {"grace": "soon", "spares": 1}})
    assert wrong.value.mistakes == (
        "healing.grace: found 'soon'; a duration of at least 0 is wanted, such as 90s or 5m",
        "healing.spares: no such field; fields are replacement, belowMinimum, grace, matchPolicy",
    )
    usual = Profile(resources=("cpu",), healing=Healing(below_minimum="Restart", grace=10.0))
    sim = _cluster_with(usual)
    gang(sim, "g", range(2), 2)
    gang(sim, "h", range(2), 2, {"kohort.dev/below-minimum": "Wait"})
    sim.settle()
    sim.delete("pod", "g-1")
    sim.delete("pod", "h-1")
    sim.settle(15.0)
    assert list(sim.evicted) == ["g-0"]


def _cluster_with(profile: Profile) -> Sim:
    settings: dict[str, Any] = {name: getattr(SETTINGS, name) for name in SchedulerSettings.__dataclass_fields__}
    sim = Sim(SchedulerSettings(**{**settings, "profile": profile}))
    for number in range(4):
        create(sim, {"node": f"n{number}", "cpu": "1"})
    return sim
