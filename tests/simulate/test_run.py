"""Traces in virtual time: what the core decides, by hand-made cases, textbook schedulers and others' benchmarks."""

from __future__ import annotations

import heapq
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kohort.place.profile import Profile
from kohort.sim.cluster import Level, Pool
from kohort.simulate.formats import read_swf
from kohort.simulate.metrics import jain, measure
from kohort.simulate.run import Outcome, Simulation
from kohort.simulate.trace import NodeFailure, Trace, TraceJob

GPU = "nvidia.com/gpu"
RACK = "example.com/rack"


def pool(count: int, racks: int = 0, cpu: str = "64", gpus: int = 0) -> Pool:
    offers = {"cpu": cpu, "memory": "1Ti", "pods": "110", **({GPU: str(gpus)} if gpus else {})}
    return Pool(name="node", count=count, capacity=offers, topology=(Level(RACK, racks),) if racks else ())


def run(jobs: Sequence[TraceJob], nodes: Pool, failures: Sequence[NodeFailure] = ()) -> Outcome:
    return Simulation(Trace(tuple(jobs), tuple(failures)), nodes.nodes()).run()


def job(name: str, at: float, pods: int, duration: float, cpu: str = "64", **more: object) -> TraceJob:
    return TraceJob(name, at, duration, pods, {"cpu": cpu}, **more)  # type: ignore[arg-type]


def starts(outcome: Outcome) -> dict[str, float]:
    return {one.job.name: one.started for one in outcome.runs}


def test_a_gang_waits_for_all_its_nodes() -> None:
    outcome = run([job("first", 0, 3, 100), job("whole", 10, 4, 50), job("small", 20, 1, 5)], pool(4))
    assert starts(outcome) == {"first": 0, "whole": 100, "small": 20}
    assert {one.job.name: one.ended for one in outcome.runs} == {"first": 100, "whole": 150, "small": 25}
    found = measure(outcome)
    assert (found.finished, found.longest_queue, found.makespan) == (3, 1, 150)
    assert found.utilisation == pytest.approx((300 + 200 + 5) / 600)


def test_nobody_is_tried_for_room_that_is_held() -> None:
    """While nodes are freed one by one and held for a gang that has waited long, those behind it are left alone."""
    first = [job(f"first-{number}", 0, 1, 200 + 10 * number) for number in range(8)]
    small = [job(f"small-{number}", 100 + number, 2, 50) for number in range(6)]
    outcome = run([*first, job("whole", 1, 8, 100), *small], pool(8))
    found = starts(outcome)
    assert found["whole"] == 270
    assert {found[f"small-{number}"] for number in range(4)} == {370}
    # Each once when it comes, once when its patience ends, once when it starts; the gang once more meanwhile.
    assert outcome.decisions <= len(first) + 3 * (1 + len(small)) + 1


@pytest.mark.parametrize(("seconds", "starts_at"), [(600.0, 5000.0), (3600.0, 2000.0)])
def test_room_is_held_for_as_long_as_the_profile_says(seconds: float, starts_at: float) -> None:
    """A node is free every 500 s, and small jobs wait for each: ten minutes are too short to gather four."""
    small = [
        job(f"s{number}", 0 if number < 4 else 2, 1, 500 * (number + 1 if number < 4 else 4)) for number in range(10)
    ]
    profile = replace(Profile(), hold_limit=seconds)
    trace = Trace((*small[:4], job("whole", 1, 4, 10), *small[4:]))
    outcome = Simulation(trace, pool(4).nodes(), profile).run()
    assert starts(outcome)["whole"] == starts_at


def test_topology_is_kept() -> None:
    outcome = run([job("rack", 0, 4, 10, topology=RACK), job("no", 0, 5, 10, topology=RACK)], pool(8, racks=2))
    nodes = {name.split("-")[1] for name in outcome.runs[0].nodes.values()}
    assert nodes in ({"0", "1", "2", "3"}, {"4", "5", "6", "7"})
    assert [one.job.name for one in outcome.never_started] == ["no"]


def test_priority_preempts_and_the_victim_begins_anew() -> None:
    outcome = run([job("low", 0, 4, 100, priority=-1), job("high", 40, 2, 10, priority=10)], pool(4))
    low, high = outcome.runs
    assert 40 <= high.started <= 42
    assert low.preemptions == 1
    assert low.first_started == 0
    assert low.started >= high.ended
    assert low.ended == low.started + 100


def test_a_lost_node_restarts_who_was_on_it() -> None:
    outcome = run([job("two", 0, 2, 100)], pool(2), [NodeFailure("node-1", 30, 20)])
    (two,) = outcome.runs
    assert (two.restarts, two.started, two.ended) == (1, 50, 150)


def test_a_node_that_stays_away_leaves_a_job_waiting() -> None:
    outcome = run([job("two", 0, 2, 100)], pool(2), [NodeFailure("node-1", 30)])
    assert outcome.runs[0].ended == -1
    assert measure(outcome).finished == 0


def test_nothing_is_used_twice() -> None:
    """At no time more than there is, whatever comes."""
    rng = random.Random(7)
    jobs = [
        job(
            f"j{number}",
            rng.randrange(2000),
            rng.choice((1, 1, 2, 4, 8)),
            rng.randrange(1, 300),
            cpu=str(rng.choice((8, 16, 64))),
        )
        for number in range(200)
    ]
    outcome = run(jobs, pool(8, racks=2))
    assert all(0 <= used <= there for _, used, there, _, _ in outcome.usage)
    assert measure(outcome).finished == 200
    changes: list[tuple[float, int, str, int]] = []
    for one in outcome.runs:
        for node in one.nodes.values():
            cpu = int(one.job.requests["cpu"])
            changes += [(one.started, 1, node, cpu), (one.ended, 0, node, -cpu)]
    used: dict[str, int] = {}
    for _, _, node, cpu in sorted(changes):
        used[node] = used.get(node, 0) + cpu
        assert used[node] <= 64


def test_fairness() -> None:
    assert jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert jain([1.0, 0.0]) == pytest.approx(0.5)


# ---- NVIDIA knavigator's gang benchmark: 32 nodes of 8 GPUs; gangs of whole-node pods that fill nine rounds exactly

KNAVIGATOR = (
    *((1, 32), (2, 16), (3, 10), (1, 2), (4, 8), (5, 6), (2, 1), (6, 5), (1, 2), (7, 4), (1, 2), (2, 1), (8, 4)),
    *((9, 3), (1, 5)),
)


def test_knavigator_gangs() -> None:
    """53 gangs of 288 pods, 30 s each, submitted at once. Nine rounds are the best that can be."""
    jobs: list[TraceJob] = []
    for count, pods in KNAVIGATOR:
        jobs += [TraceJob(f"g{len(jobs) + one}", 0, 30, pods, {GPU: "8"}) for one in range(count)]
    assert (len(jobs), sum(one.pods for one in jobs)) == (53, 288)
    outcome = run(jobs, pool(32, gpus=8))
    found = measure(outcome)
    rounds = found.makespan / 30
    print(f"knavigator: {rounds:.2f} rounds, {found.utilisation:.1%} of {found.resource} in use")
    assert found.finished == 53
    assert rounds <= 10
    assert found.utilisation >= 0.9


# ---- textbook schedulers, on processors


def fcfs(jobs: Sequence[tuple[float, float, int]], processors: int) -> list[float]:
    """First come, first served: (arrival, duration, processors) -> when each starts."""
    return _queue(jobs, processors, backfill=False)


def easy(jobs: Sequence[tuple[float, float, int]], processors: int) -> list[float]:
    """EASY: whoever does not delay the first of the queue may go before it. Durations are known."""
    return _queue(jobs, processors, backfill=True)


def _queue(jobs: Sequence[tuple[float, float, int]], processors: int, *, backfill: bool) -> list[float]:
    started = [-1.0] * len(jobs)
    running: list[tuple[float, int]] = []  # (end, processors)
    waiting: list[int] = []
    arrivals = sorted(range(len(jobs)), key=lambda one: (jobs[one][0], one))
    free, place = processors, 0
    while place < len(arrivals) or waiting:
        moments = [jobs[arrivals[place]][0]] if place < len(arrivals) else []
        now = min([*moments, running[0][0]] if running else moments)
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        while place < len(arrivals) and jobs[arrivals[place]][0] <= now:
            waiting.append(arrivals[place])
            place += 1

        def start(number: int, now: float = now) -> None:
            nonlocal free
            started[number] = now
            free -= jobs[number][2]
            heapq.heappush(running, (now + jobs[number][1], jobs[number][2]))

        while waiting and jobs[waiting[0]][2] <= free:
            start(waiting.pop(0))
        if backfill and waiting:
            shadow, room = _shadow(running, free, jobs[waiting[0]][2])
            for number in waiting[1:]:
                _, duration, wants = jobs[number]
                ends_before = now + duration <= shadow
                if wants <= free and (ends_before or wants <= room):
                    room -= 0 if ends_before else wants
                    waiting.remove(number)
                    start(number)
    return started


def _shadow(running: list[tuple[float, int]], free: int, wants: int) -> tuple[float, int]:
    """When the first of the queue can start, and how much is left over then."""
    for end, processors in sorted(running):
        free += processors
        if free >= wants:
            return end, free - wants
    raise AssertionError("it never fits")


def test_the_textbook_ones() -> None:
    jobs = [(0, 10, 3), (1, 10, 4), (2, 5, 1), (3, 20, 1)]
    assert fcfs(jobs, 4) == [0, 10, 20, 20]
    assert easy(jobs, 4) == [0, 10, 2, 20]


def mean_slowdown(jobs: Sequence[tuple[float, float, int]], started: Sequence[float]) -> float:
    found = [
        max(1.0, (start + duration - arrival) / max(duration, 10.0))
        for (arrival, duration, _), start in zip(jobs, started, strict=True)
    ]
    return sum(found) / len(found)


def test_between_first_come_and_backfilling() -> None:
    """On a queue of parallel jobs Kohort waits less than first come, first served."""
    rng = random.Random(3)
    jobs: list[tuple[float, float, int]] = []
    at = 0.0
    for _ in range(100):
        at += rng.expovariate(1 / 60)
        jobs.append((round(at), float(rng.choice((30, 120, 600, 3000))), rng.choice((1, 1, 2, 4, 8, 16))))
    trace = [
        job(f"j{number}", arrival, pods, duration, cpu="1") for number, (arrival, duration, pods) in enumerate(jobs)
    ]
    outcome = run(trace, pool(16, cpu="1"))
    ours = mean_slowdown(jobs, [one.started for one in outcome.runs])
    textbook = mean_slowdown(jobs, fcfs(jobs, 16)), mean_slowdown(jobs, easy(jobs, 16))
    print(f"mean slowdown: kohort {ours:.1f}, first come {textbook[0]:.1f}, EASY {textbook[1]:.1f}")
    assert ours < textbook[0]


@pytest.mark.skipif("KOHORT_SWF" not in os.environ, reason="KOHORT_SWF names no trace in Standard Workload Format")
def test_a_public_trace() -> None:
    """KOHORT_SWF=lublin_256.swf pytest -s: beside the textbook."""
    trace = read_swf(Path(os.environ["KOHORT_SWF"]).read_text())
    most = int(os.environ.get("KOHORT_SWF_JOBS", "10000"))
    trace = Trace(trace.jobs[:most], cluster=trace.cluster)
    processors = trace.cluster["pools"][0]["count"]
    jobs = [(one.at, one.duration, one.pods) for one in trace.jobs]
    outcome = run(trace.jobs, pool(processors, cpu="1"))
    found = measure(outcome)
    for name, started in (("first come", fcfs(jobs, processors)), ("EASY", easy(jobs, processors))):
        waits = [start - arrival for (arrival, _, _), start in zip(jobs, started, strict=True)]
        print(f"{name}: mean wait {sum(waits) / len(waits):.0f} s, mean slowdown {mean_slowdown(jobs, started):.1f}")
    print(
        f"kohort: mean wait {found.wait.mean:.0f} s, mean slowdown {found.slowdown.mean:.1f}, {found.utilisation:.1%}"
    )
    assert found.finished == len(jobs)
