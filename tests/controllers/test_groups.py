"""Wanted versus stored of groups, whatever the kind: who may be used, what follows, what is made in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from kohort.api.kind import Object
from kohort.controllers import groups as kit
from kohort.controllers.drift import Resize, differences, resize
from kohort.controllers.groups import GroupPolicy, ProblemType
from kohort.controllers.reconcile import Answer, Event, Part, ReconcileError, Refusal, Write

OWNER: Object = {"apiVersion": "toys/v1", "kind": "Toy", "metadata": {"name": "toy", "uid": "u1", "namespace": "n"}}
API = "scheduling.k8s.io/v1beta1"


def reference(uid: str = "u1", name: str = "toy", kind: str = "Toy") -> Object:
    return {"apiVersion": "toys/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def made(kind: str, name: str, spec: Object, owner: Object | None = None, **meta: Any) -> Object:
    owners = [owner or reference()]
    if kind != "Workload":
        owners.append({"apiVersion": API, "kind": "Workload", "name": "toy", "uid": "stand-in"})
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}", "ownerReferences": owners, **meta}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def policy_of(least: int) -> Object:
    return {"schedulingPolicy": {"gang": {"minCount": least}}}


def workload(least: int = 2, **more: Any) -> Object:
    return made("Workload", "toy", {"podGroupTemplates": [{"name": "t", **policy_of(least)}]}, **more)


def branch(name: str, parent: str = "") -> Object:
    return made("CompositePodGroup", name, {"parentCompositePodGroupName": parent} if parent else {})


def leaf(name: str, least: int = 2, **more: Any) -> Object:
    return made("PodGroup", name, policy_of(least), **more)


class Loud(GroupPolicy):
    __slots__ = ()

    def _say(self, what: str, obj: Object) -> Event:
        return Event(self.owner, "Normal", what, kit.described(obj))

    def created(self, objects: Sequence[Object]) -> Iterable[Event]:
        return (self._say("Created", obj) for obj in objects)

    def deleted(self, objects: Sequence[Object]) -> Iterable[Event]:
        return (self._say("Deleted", obj) for obj in objects)

    def refused(self, obj: Object, refusal: Refusal) -> Iterable[Event]:
        yield self._say(f"Refused{refusal.code}", obj)

    def resized(self, obj: Object, change: Resize) -> Iterable[Event]:
        yield self._say(f"Resized{change.old}to{change.new}", obj)

    def drifted(self, obj: Object, places: Sequence[str]) -> Iterable[Event]:
        yield self._say("Drifted", obj)


def accepted(write: Write) -> Answer:
    return Answer({**write.body, "metadata": {**write.body["metadata"], "uid": f"new-{write.name}"}})


def refusing(*names: str, code: int = 422, reason: str = "Invalid") -> Callable[[Write], Answer]:
    return lambda write: (
        Answer(refusal=Refusal(code, reason, "no")) if write.name in names else Answer(write.body if write.body else {})
    )


def play(part: Part, server: Callable[[Write], Answer] = accepted) -> tuple[Any, list[list[Write]], list[str]]:
    """-> what it ends with, the writes of each step, and what was told"""
    steps: list[list[Write]] = []
    told: list[str] = []
    answers: list[Answer] | None = None
    while True:
        try:
            step = next(part) if answers is None else part.send(answers)
        except StopIteration as end:
            return end.value, steps, told
        told += [f"{event.reason} {event.note}" for event in step.events]
        if step.writes:
            steps.append(list(step.writes))
        answers = [
            server(write) if write.verb == "create" else refusing()(write) if server is accepted else server(write)
            for write in step.writes
        ]


def names(steps: list[list[Write]]) -> list[list[str]]:
    return [[f"{write.verb} {write.name}" for write in step] for step in steps]


# ---- making


def test_what_is_named_is_made_first_and_levels_at_once() -> None:
    wanted = [leaf("l2"), branch("b", "a"), branch("c", "a"), branch("a"), leaf("l1"), workload()]
    outcome, steps, told = play(kit.reconcile(Loud(owner=OWNER), wanted, ()))
    assert names(steps) == [["create toy"], ["create a"], ["create b", "create c"], ["create l2", "create l1"]]
    assert told[0] == "Created Workload toy"
    assert not outcome.problems
    assert len(outcome.stored) == 6


def test_a_group_is_owned_by_the_workload_that_was_just_made() -> None:
    _, steps, _ = play(kit.reconcile(GroupPolicy(owner=OWNER), [workload(), leaf("l")], ()))
    owners = steps[1][0].body["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners] == ["u1", "new-toy"]


def test_a_group_is_owned_by_a_workload_that_is_there() -> None:
    _, steps, _ = play(kit.reconcile(GroupPolicy(owner=OWNER), [leaf("l")], [workload()]))
    assert steps[0][0].body["metadata"]["ownerReferences"][1]["uid"] == "uid-toy"


def test_leaves_are_made_in_batches() -> None:
    wanted = [leaf(f"l{index}") for index in range(kit.AT_ONCE + 1)]
    _, steps, _ = play(kit.reconcile(GroupPolicy(owner=OWNER), wanted, ()))
    assert [len(step) for step in steps] == [kit.AT_ONCE, 1]


def test_a_circle_of_branches_ends() -> None:
    _, steps, _ = play(kit.reconcile(GroupPolicy(owner=OWNER), [branch("a", "b"), branch("b", "a")], ()))
    assert names(steps) == [["create a", "create b"]]


@pytest.mark.parametrize("whole", [True, False])
def test_after_a_refusal(whole: bool) -> None:
    wanted = [workload(), branch("a"), leaf("l")]
    run = kit.reconcile(Loud(owner=OWNER, all_or_nothing=whole), wanted, ())
    outcome, steps, told = play(run, refusing("a"))
    assert names(steps)[1:] == ([["create a"]] if whole else [["create a"], ["create l"]])
    assert "Refused422 CompositePodGroup a" in told
    assert [problem.type for problem in outcome.problems] == [ProblemType.CREATE]
    with pytest.raises(ReconcileError, match="CompositePodGroup a: no"):
        outcome.raise_for(ProblemType.CREATE)
    outcome.raise_for(ProblemType.UPDATE)


def test_without_a_workload_nothing_that_names_it_is_made() -> None:
    run = kit.reconcile(GroupPolicy(owner=OWNER, all_or_nothing=False), [workload(), leaf("l")], ())
    outcome, steps, _ = play(run, refusing("toy"))
    assert names(steps) == [["create toy"]]
    assert not outcome.stored


@pytest.mark.parametrize("accept", [True, False])
def test_a_name_that_is_taken_after_all(accept: bool) -> None:
    run = kit.reconcile(GroupPolicy(owner=OWNER, accept_existing=accept), [leaf("l")], ())
    outcome, _, _ = play(run, refusing("l", code=409, reason="AlreadyExists"))
    assert bool(outcome.problems) is not accept


# ---- whose it is


GOING: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("stored", "rules", "problem"),
    [
        (leaf("l"), {}, None),
        (leaf("l", owner=reference("u2", "other")), {}, ProblemType.FOREIGN),
        (leaf("l", owner=reference("u2", kind="Game")), {}, ProblemType.FOREIGN),
        (leaf("l", owner=reference("u2", "other")), {"use_foreign": True}, None),
        (leaf("l", owner=reference("u0")), {}, ProblemType.TERMINATING),  # of a Toy of this name before
        (leaf("l", owner=reference("u0")), {"use_foreign": True}, None),
        (leaf("l", **GOING), {}, ProblemType.TERMINATING),
        (leaf("l", **GOING), {"use_foreign": True}, ProblemType.TERMINATING),
        (leaf("l", **GOING), {"use_terminating": True}, None),
    ],
)
def test_whose_an_object_is(stored: Object, rules: dict[str, Any], problem: ProblemType | None) -> None:
    outcome, steps, _ = play(kit.reconcile(GroupPolicy(owner=OWNER, **rules), [leaf("l"), leaf("m")], [stored]))
    assert [one.type for one in outcome.problems] == ([] if problem is None else [problem])
    assert names(steps) == ([["create m"]] if problem is None else [])


def test_one_that_goes_holds_up_no_other() -> None:
    run = kit.reconcile(
        GroupPolicy(owner=OWNER, all_or_nothing=False),
        [leaf("l"), leaf("m"), leaf("n")],
        [leaf("l", **GOING), leaf("n")],
    )
    outcome, steps, _ = play(run)
    assert names(steps) == [["create m"]]
    assert sorted(outcome.stored) == [("PodGroup", "m"), ("PodGroup", "n")]


# ---- what follows, what is told


def test_minimums_follow() -> None:
    run = kit.reconcile(
        Loud(owner=OWNER, resize=True, drift="report"), [workload(5), leaf("l", 5)], [workload(), leaf("l")]
    )
    outcome, steps, told = play(run)
    assert [write.body for step in steps for write in step] == [
        {"spec": {"podGroupTemplates": [{"name": "t", **policy_of(5)}]}},
        {"spec": policy_of(5)},
    ]
    assert told == ["Resized2to5 Workload toy", "Resized2to5 PodGroup l"]
    assert not outcome.problems


def test_where_minimums_are_frozen_another_one_is_drift() -> None:
    run = kit.reconcile(GroupPolicy(owner=OWNER, drift="report"), [leaf("l", 5)], [leaf("l")])
    outcome, steps, _ = play(run)
    assert steps == []
    assert [str(one) for one in outcome.problems] == ["PodGroup l: spec.schedulingPolicy.gang.minCount is 2"]


def test_a_refused_resize_holds_up_nothing() -> None:
    run = kit.reconcile(Loud(owner=OWNER, resize=True), [leaf("l", 5), leaf("m")], [leaf("l")])
    outcome, steps, told = play(run, refusing("l"))
    assert names(steps) == [["patch l"], ["create m"]]
    assert [one.type for one in outcome.problems] == [ProblemType.UPDATE]
    assert told == ["Created PodGroup m"]


def test_labels_follow_and_those_of_others_stay() -> None:
    stored = leaf("l", labels={"a": "1", "theirs": "x"})
    run = kit.reconcile(GroupPolicy(owner=OWNER, relabel=True), [leaf("l", labels={"a": "2"})], [stored])
    _, steps, _ = play(run)
    assert steps[0][0].body == {"metadata": {"labels": {"a": "2"}}}


@pytest.mark.parametrize(
    ("drift", "writes", "told"),
    [
        (None, [["create m"]], ["Created PodGroup m"]),
        ("report", [["create m"]], ["Drifted PodGroup l", "Created PodGroup m"]),
        ("stop", [], ["Drifted PodGroup l"]),
        (
            "recreate",
            [["delete l"], ["delete toy"]],
            ["Drifted PodGroup l", "Deleted PodGroup l", "Deleted Workload toy"],
        ),
    ],
)
def test_what_drift_leads_to(drift: Any, writes: list[list[str]], told: list[str]) -> None:
    drifted = made("PodGroup", "l", {"schedulingPolicy": {"basic": {}}})
    run = kit.reconcile(Loud(owner=OWNER, drift=drift), [workload(), leaf("l"), leaf("m")], [workload(), drifted])
    _, steps, found = play(run)
    assert (names(steps), found) == (writes, told)


@pytest.mark.parametrize(
    ("stored", "places"),
    [
        (policy_of(2), []),
        ({**policy_of(2), "disruptionMode": {"single": {}}, "priority": 3}, []),  # filled in by the server
        (
            {**policy_of(2), "schedulingConstraints": {"topology": [{"key": "rack"}]}},
            ["spec.schedulingConstraints was added"],
        ),
        (
            {"schedulingPolicy": {"basic": {}}},
            ["spec.schedulingPolicy.gang is missing", "spec.schedulingPolicy.basic was added"],
        ),
        ({}, ["spec.schedulingPolicy is missing"]),
    ],
)
def test_places_that_differ(stored: Object, places: list[str]) -> None:
    assert differences(leaf("l"), made("PodGroup", "l", stored)) == places


def test_templates_are_compared_by_name() -> None:
    both = [{"name": "a", **policy_of(1)}, {"name": "b", **policy_of(2)}]
    wanted = made("Workload", "toy", {"podGroupTemplates": both})
    assert differences(wanted, made("Workload", "toy", {"podGroupTemplates": both[::-1]})) == []
    other = made("Workload", "toy", {"podGroupTemplates": [both[1], {**both[0], **policy_of(4)}]})
    assert differences(wanted, other) == ["spec.podGroupTemplates[0].schedulingPolicy.gang.minCount is 4"]
    assert differences(wanted, other, minimums=False) == []
    assert differences(wanted, made("Workload", "toy", {"podGroupTemplates": both[:1]})) == [
        "spec.podGroupTemplates is another"
    ]


def test_minimums_below_branches_follow_too() -> None:
    def tree(least: int) -> Object:
        inner = {"name": "root", "podGroupTemplates": [{"name": "t", **policy_of(least)}]}
        return made("Workload", "toy", {"compositePodGroupTemplates": [inner]})

    change = resize(tree(7), tree(2))
    assert change == Resize(tree(7)["spec"], 2, 7)
    assert resize(tree(2), tree(2)) is None


# ---- removing


def test_leaves_go_first_and_what_others_made_stays() -> None:
    known = [
        workload(),
        branch("a"),
        leaf("l"),
        leaf("kept"),
        leaf("going", **GOING),
        leaf("theirs", owner=reference("u2", "other")),
    ]
    _, steps, told = play(kit.remove(Loud(owner=OWNER), known, {("PodGroup", "kept")}))
    assert names(steps) == [["delete l"], ["delete a"], ["delete toy"]]
    assert {write.uid for step in steps for write in step} == {"uid-l", "uid-a", "uid-toy"}
    assert told == ["Deleted PodGroup l", "Deleted CompositePodGroup a", "Deleted Workload toy"]


@pytest.mark.parametrize(("code", "stops"), [(404, False), (409, False), (403, True)])
def test_a_refused_deletion(code: int, stops: bool) -> None:
    run = kit.remove(GroupPolicy(owner=OWNER), [workload(), leaf("l")])
    if stops:
        with pytest.raises(ReconcileError, match="PodGroup l: no"):
            play(run, refusing("l", code=code, reason="Any"))
    else:
        assert len(play(run, refusing("l", code=code, reason="Any"))[1]) == 2
