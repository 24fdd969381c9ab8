"""The pure life of a pod: every state and every moment computed from what is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kohort.sim import behaviour
from kohort.sim.behaviour import FOR_EVER, PREFIX, read
from kohort.sim.pod import Container, Pod
from kohort.sim.podlife import Next, step

START = datetime(2026, 11, 15, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def pod(policy: str = "Never", **wishes: Any) -> Pod:
    annotations = {PREFIX + name.replace("_", "-"): str(value) for name, value in wishes.items()}
    return msgspec.convert(
        {
            "metadata": {"name": "p", "uid": "u", "creationTimestamp": START, "annotations": annotations},
            "spec": {"nodeName": "n", "restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Pending"},
        },
        Pod,
    )


def told(one: Pod, seconds: float, grace: int = 30) -> Pod:
    one.metadata.deletion_timestamp = after(seconds + grace)
    one.metadata.deletion_grace_period_seconds = grace
    return one


def play(one: Pod, until: float) -> list[tuple[float, str, Next]]:
    """Let it live: each look at the moment that the one before asked for."""
    now, seen = START, []
    for _ in range(50):
        found = step(one, now)
        if found.status is not None:
            raw = msgspec.to_builtins(one.status) | found.status
            one.status = msgspec.convert(raw, type(one.status))
            seen.append(((now - START).total_seconds(), one.status.phase, found))
            if not found.remove:
                continue
        if found.remove or found.at is None or found.at > after(until):
            break
        now = found.at
    return seen


def test_a_job_pod_starts_and_ends() -> None:
    seen = play(pod(start_seconds=2, run_seconds=30), 100)
    assert [(when, phase) for when, phase, _ in seen] == [(2, "Running"), (32, "Succeeded")]


@pytest.mark.parametrize("source", ["labels", "annotations"])
@pytest.mark.parametrize(("index", "end"), [("0", (11, "Failed")), ("1", (1001, "Succeeded"))])
def test_what_a_script_does_depends_on_the_index_of_the_pod(source: str, index: str, end: tuple[float, str]) -> None:
    """As in JobSet's examples of failure policies: the first pod fails after ten seconds, the others go on."""
    key = "batch.kubernetes.io/job-completion-index"
    one = pod()
    script = """
    echo "JOB_COMPLETION_INDEX=$JOB_COMPLETION_INDEX"
    if [[ "$JOB_COMPLETION_INDEX" == "0" ]]; then
      for i in $(seq 10 -1 1)
      do
        echo "Sleeping in $i"
        sleep 1
      done
      exit 1
    fi
    for i in $(seq 1 1000)
    do
      sleep 1
    done
    """
    env = [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{source}['{key}']"}}}]
    body = {"name": "c", "command": ["bash", "-xc", script], "env": env}
    one.spec.containers = [msgspec.convert(body, Container)]
    meta = msgspec.to_builtins(one.metadata) | {source: {key: index}}
    one.metadata = msgspec.convert(meta, type(one.metadata))
    last = play(one, 5000)[-1]
    assert last[:2] == end


def test_it_is_ready_later() -> None:
    seen = play(pod(ready_seconds=5, run_seconds=30), 100)
    assert [when for when, _, _ in seen] == [1, 6, 31]
    ready = [
        one["status"] for _, _, found in seen for one in (found.status or {})["conditions"] if one["type"] == "Ready"
    ]
    assert ready == ["False", "True", "False"]


def test_a_pod_that_was_made_with_its_node_counts_as_scheduled() -> None:
    one = pod()
    one.status.conditions = []
    (first, *_) = play(one, 100)
    assert {"type": "PodScheduled", "status": "True"}.items() <= first[2].status["conditions"][0].items()  # type: ignore[index]


def test_never_ready() -> None:
    (first, *_) = play(pod("Always", never_ready="true"), 100)
    assert {"type": "Ready", "status": "False"}.items() <= first[2].status["conditions"][-1].items()  # type: ignore[index]


def test_a_service_pod_runs_for_ever() -> None:
    one = pod("Always")
    assert [phase for _, phase, _ in play(one, 1e6)] == ["Running"]
    assert step(one, after(1e6)) == Next()


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (3, "Failed")])
def test_exit_codes(code: int, phase: str) -> None:
    *_, (_, last, found) = play(pod(exit_code=code), 100)
    assert last == phase
    state = (found.status or {})["containerStatuses"][0]["state"]
    assert state["terminated"]["exitCode"] == code
    assert state["terminated"]["finishedAt"] == "2026-11-15T12:00:11Z"


def test_on_failure_containers_start_again() -> None:
    seen = play(pod("OnFailure", restarts=2, run_seconds=4), 100)
    assert [(when, phase) for when, phase, _ in seen] == [
        (1, "Running"),
        (5, "Running"),  # again at once
        (9, "Running"),  # waiting for the second time
        (19, "Running"),
        (23, "Succeeded"),
    ]
    first = [(found.status or {})["containerStatuses"][0] for _, _, found in seen]
    assert [one["restartCount"] for one in first] == [0, 1, 1, 2, 2]
    assert [next(iter(one["state"])) for one in first] == ["running", "running", "waiting", "running", "terminated"]


def commanded(policy: str, *scripts: str) -> Pod:
    one = pod(policy)
    one.spec.containers = [Container(name=f"c{n}", command=["sh", "-c", text]) for n, text in enumerate(scripts)]
    return one


@pytest.mark.parametrize(
    ("scripts", "wanted"),
    [
        (["exit 0"], [(1, "Running"), (1, "Succeeded")]),
        (["sleep 4; exit 3"], [(1, "Running"), (5, "Failed")]),
        (["sleep 4", "sleep 7; exit 1"], [(1, "Running"), (8, "Failed")]),
        (["sleep 4", "while true; do sleep 1; done"], [(1, "Running")]),
        (["sleep 4", "python train.py"], [(1, "Running"), (11, "Succeeded")]),  # as usual
    ],
)
def test_commands_say_how_a_pod_ends(scripts: list[str], wanted: list[tuple[float, str]]) -> None:
    assert [(when, phase) for when, phase, _ in play(commanded("Never", *scripts), 100)] == wanted


def test_annotations_go_before_commands() -> None:
    one = commanded("Never", "exit 1")
    one.metadata.annotations = {PREFIX + "exit-code": "0", PREFIX + "run-seconds": "9"}
    assert [(when, phase) for when, phase, _ in play(one, 100)] == [(1, "Running"), (10, "Succeeded")]


def test_containers_that_keep_ending_are_tried_less_and_less_often() -> None:
    seen = play(commanded("Always", "exit 1"), 1000)
    states = [(when, next(iter((found.status or {})["containerStatuses"][0]["state"]))) for when, _, found in seen]
    assert [when for when, state in states if state == "running"] == [1, 1, 11, 31, 71, 151, 311, 611, 911]


def test_told_to_stop() -> None:
    one = pod(stop_seconds=3, run_seconds=100)
    play(one, 10)
    assert step(told(one, 10), after(11)).at == after(13)
    found = step(one, after(13))
    assert found.remove
    assert (found.status or {})["phase"] == "Failed"


def test_grace_is_not_exceeded() -> None:
    one = pod(stop_seconds=300, run_seconds=900)
    play(one, 10)
    assert step(told(one, 10, grace=5), after(11)).at == after(15)


def test_a_pod_that_never_ran_goes_at_once() -> None:
    found = step(told(pod(start_seconds=60), 1), after(2))
    assert found.remove
    assert (found.status or {})["phase"] == "Failed"


def test_time_that_was_slept_through_is_made_up_for() -> None:
    """The simulator was away for an hour: moments are those at which things should have happened."""
    one = pod(run_seconds=30)
    first = step(one, after(3600))
    one.status = msgspec.convert(first.status, type(one.status))
    last = step(one, after(3600)).status or {}
    assert last["containerStatuses"][0]["state"]["terminated"]["finishedAt"] == "2026-11-15T12:00:31Z"


def test_codes_by_index_and_chance() -> None:
    index = "batch.kubernetes.io/job-completion-index"
    found, problems = read({PREFIX + "exit-codes": "1=3,2=137"}, FOR_EVER)
    assert not problems
    assert [found.code("u", {index: str(n)}, 0) for n in range(3)] == [0, 3, 137]
    chancy, _ = read({PREFIX + "fail-chance": "0.3"}, FOR_EVER)
    share = sum(chancy.code(f"uid-{n}", {}, 0) for n in range(2000)) / 2000
    assert 0.25 < share < 0.35
    assert chancy.code("same", {}, 0) == chancy.code("same", {}, 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run-seconds", "soon"),
        ("run-seconds", "-1"),
        ("exit-code", "300"),
        ("fail-chance", "2"),
        ("never-ready", "x"),
        ("what", "1"),
    ],
)
def test_wrong_annotations_are_told_and_ignored(name: str, text: str) -> None:
    found, problems = read({PREFIX + name: text, "other/thing": "x"}, FOR_EVER)
    assert found == FOR_EVER
    assert len(problems) == 1
    assert problems[0].startswith(PREFIX + name)


def test_a_resize_is_given_at_once() -> None:
    one = pod("Always")
    one.spec.containers[0].resources = {"requests": {"cpu": "1"}}
    first = step(one, after(60)).status
    assert first is not None
    given = first["containerStatuses"][0]
    assert (given["resources"], given["allocatedResources"]) == ({"requests": {"cpu": "1"}}, {"cpu": "1"})
    one.status = msgspec.convert(first, type(one.status))
    one.spec.containers[0].resources = {"requests": {"cpu": "1000m"}}
    assert step(one, after(70)).status is None, "the same amount in other words"
    one.spec.containers[0].resources = {"requests": {"cpu": "2"}}
    then = step(one, after(80)).status
    assert then is not None
    assert then["containerStatuses"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert then["containerStatuses"][0]["state"] == given["state"], "without a restart"


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {"other": "1"},
        {PREFIX + "run-seconds": "30", "other": "1"},
        {PREFIX + "run-seconds": "soon", PREFIX + "exit-code": "3"},
        {PREFIX + "nothing": "1"},
        {PREFIX + "exit-codes": ",".join(f"{index}=1" for index in range(500))},
    ],
)
def test_behaviours_that_are_remembered_are_those_that_are_read(annotations: dict[str, str]) -> None:
    said = tuple(item for item in annotations.items() if item[0].startswith(PREFIX))
    for _ in range(2):
        found, problems = read(annotations, FOR_EVER)
        assert (found, tuple(problems)) == behaviour._read(said, FOR_EVER)
        problems.append("the caller's own")
