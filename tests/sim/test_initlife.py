"""Init containers and sidecars of a pod on a virtual node: order, states, failures, moments."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.test_podlife import after, play, pod, told

from kohort.sim.behaviour import PREFIX
from kohort.sim.pod import Container, Pod
from kohort.sim.podlife import step


def with_init(*scripts: str, policy: str = "Never", **wishes: Any) -> Pod:
    """One init container for each script; `sidecar` is one that runs on."""
    one = pod(policy, **{"run_seconds": 30} | wishes)
    one.spec.init_containers = [
        Container(name=f"i{n}", restart_policy="Always" if text == "sidecar" else "", command=["sh", "-c", text])
        for n, text in enumerate(scripts)
    ]
    return one


def states(status: dict[str, Any]) -> list[str]:
    return [next(iter(one["state"])) for one in status["initContainerStatuses"]]


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [one for one in status["conditions"] if one["type"] == kind]
    return dict(found)


def test_one_after_the_other_then_the_containers() -> None:
    seen = play(with_init("sleep 4", "sleep 7"), 100)
    assert [(when, phase) for when, phase, _ in seen] == [
        (1, "Pending"), (5, "Pending"), (12, "Running"), (42, "Succeeded"),
    ]  # fmt: skip
    first, second, third, _ = [found.status or {} for _, _, found in seen]
    assert [states(first), states(second), states(third)] == [
        ["running", "waiting"], ["terminated", "running"], ["terminated", "terminated"],
    ]  # fmt: skip
    assert first["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert condition(first, "Ready")["reason"] == "ContainersNotReady"
    waiting = [condition(one, "Initialized") for one in (first, second)]
    assert [(one["status"], one["reason"], one["message"]) for one in waiting] == [
        ("False", "ContainersNotInitialized", "containers with incomplete status: [i0 i1]"),
        ("False", "ContainersNotInitialized", "containers with incomplete status: [i1]"),
    ]
    assert [one["lastTransitionTime"] for one in waiting] == ["2026-11-15T12:00:01Z"] * 2
    assert condition(third, "Initialized")["status"] == "True"
    ended = [one["state"]["terminated"] for one in third["initContainerStatuses"]]
    assert [(one["startedAt"][-3:], one["finishedAt"][-3:]) for one in ended] == [("01Z", "05Z"), ("05Z", "12Z")]
    assert third["containerStatuses"][0]["state"]["running"]["startedAt"] == "2026-11-15T12:00:12Z"


def test_those_that_say_nothing_take_no_time_and_no_write() -> None:
    ((when, phase, found), *_) = play(with_init("python fetch.py", "true"), 20)
    assert (when, phase, states(found.status or {})) == (1, "Running", ["terminated", "terminated"])


def test_a_sidecar_runs_beside_and_ends_last() -> None:
    first, last = play(with_init("true", "sidecar", "true"), 100)
    assert states(first[2].status or {}) == ["terminated", "running", "terminated"]
    assert (first[2].status or {})["initContainerStatuses"][1]["ready"]
    assert (last[0], last[1], states(last[2].status or {})) == (31, "Succeeded", ["terminated"] * 3)


def test_a_sidecar_does_not_hold_what_comes_after_it() -> None:
    seen = play(with_init("sidecar", "sleep 5"), 20)
    assert [(when, phase, states(found.status or {})) for when, phase, found in seen] == [
        (1, "Pending", ["running", "running"]),
        (6, "Running", ["running", "terminated"]),
    ]


def test_a_failure_is_the_end_of_a_pod_that_is_not_restarted() -> None:
    seen = play(with_init("sleep 2; exit 3", "true"), 100)
    assert [(when, phase) for when, phase, _ in seen] == [(1, "Pending"), (3, "Failed")]
    last = seen[-1][2].status or {}
    assert last["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert states(last) == ["terminated", "waiting"]
    assert condition(last, "Initialized")["status"] == "False"
    assert states(last) == ["terminated", "waiting"]


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_otherwise_it_is_tried_again_less_and_less_often(policy: str) -> None:
    seen = play(with_init("sleep 4", policy=policy, init_restarts=2), 60)
    told_ = [(when, phase, (found.status or {}).get("initContainerStatuses")) for when, phase, found in seen]
    assert [
        (when, phase, one[0]["restartCount"], next(iter(one[0]["state"]))) for when, phase, one in told_ if one
    ] == [
        (1, "Pending", 0, "running"),
        (5, "Pending", 1, "running"),  # again at once
        (9, "Pending", 1, "waiting"),
        (19, "Pending", 2, "running"),
        (23, "Running", 2, "terminated"),
    ]


def test_annotations_go_before_commands() -> None:
    seen = play(with_init("exit 1", "sleep 100", init_seconds=3, init_exit_code=0), 20)
    assert [(when, phase) for when, phase, _ in seen] == [(1, "Pending"), (4, "Pending"), (7, "Running")]
    one = with_init("true")
    one.metadata.annotations |= {PREFIX + "init-exit-code": "2"}
    assert [phase for _, phase, _ in play(one, 20)] == ["Failed"]


def test_one_that_never_ends_is_stopped_with_its_pod() -> None:
    one = with_init("while true; do sleep 1; done", stop_seconds=3)
    assert [phase for _, phase, _ in play(one, 1000)] == ["Pending"]
    assert step(told(one, 10), after(11)).at == after(13)
    found = step(one, after(13))
    assert found.remove
    status = found.status or {}
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    assert condition(status, "Initialized")["status"] == "False"


def test_time_that_was_slept_through_is_made_up_for() -> None:
    first = step(with_init("sleep 4", "sleep 7"), after(3600)).status or {}
    assert first["containerStatuses"][0]["state"]["running"]["startedAt"] == "2026-11-15T12:00:12Z"


def test_who_waits_for_others_ends_when_they_are_there() -> None:
    one, free = with_init("true", "true"), False

    def holds(container: Container) -> bool | None:
        return not free if container.name == "i1" else None

    waiting = step(one, after(1), None, holds)
    assert (states(waiting.status or {}), waiting.at) == (["terminated", "running"], None)
    one.status.init_container_statuses = (waiting.status or {})["initContainerStatuses"]
    assert step(one, after(50), None, holds).status is None  # nothing new to say
    free = True
    begun = step(one, after(60), None, holds).status or {}
    assert begun["phase"] == "Running"
    assert begun["initContainerStatuses"][1]["state"]["terminated"]["finishedAt"] == "2026-11-15T12:01:00Z"
    assert begun["containerStatuses"][0]["state"]["running"]["startedAt"] == "2026-11-15T12:01:00Z"
