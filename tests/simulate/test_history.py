"""What a cluster ran, out of a snapshot, comes again: at the same seconds, for as long, on the same nodes."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.simulate.test_equal import NODES, RACK, Starts, submit

from kohort.cli.main import app
from kohort.kube.client import Client
from kohort.plan.anonymise import anonymised
from kohort.plan.capture import capture
from kohort.plan.history import history
from kohort.simulate.history import read_history
from kohort.simulate.run import Simulation
from kohort.simulate.trace import TraceError, TraceJob
from kohort.testing.cluster import cluster
from kohort.testing.virtual import VirtualLoop

GPU = "nvidia.com/gpu"
RAN = (
    TraceJob("whole", 0, 100.0, 8, {"cpu": "4", GPU: "8"}),
    TraceJob("rack", 20, 40.0, 4, {"cpu": "4", GPU: "8"}, topology=RACK),
    TraceJob("one", 33, 10.0, 1, {"cpu": "8"}),
)


@pytest.fixture(scope="module")
def lived() -> tuple[dict[str, Any], Starts]:
    """The snapshot of a cluster on which everything has ended, and where its pods were."""

    async def work() -> tuple[dict[str, Any], Starts]:
        async with cluster("1.37", pools=[NODES], namespace="test") as found:
            client: Client = found.client
            begun = 0.0
            for job in RAN:
                await client.clock.sleep(job.at - begun)
                begun = job.at
                await submit(client, job)
            pods = client.kind("v1", "Pod")
            while any(one["status"].get("phase") != "Succeeded" for one in (await pods.list("test")).items):
                await client.clock.sleep(5)
            starts: Starts = {}
            for pod in (await pods.list("test")).items:
                name, _, index = pod["metadata"]["name"].rpartition("-")
                starts.setdefault(name, (0, {}))[1][int(index)] = pod["spec"]["nodeName"]
            return (await capture(client))[0], starts

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


def test_it_is_read_from_what_is_left(lived: tuple[dict[str, Any], Starts]) -> None:
    trace, nodes = read_history(lived[0])
    assert [(one.name, one.pods, one.topology, one.user) for one in trace.jobs] == [
        ("test/whole", 8, "", "test"),
        ("test/rack", 4, RACK, "test"),
        ("test/one-0", 1, "", "test"),
    ]
    assert [one.at for one in trace.jobs] == pytest.approx([0, 20, 33], abs=2)
    assert [one.duration for one in trace.jobs] == pytest.approx([100, 40, 10], abs=2)
    assert dict(trace.jobs[0].requests) == {"cpu": "4000m", GPU: "8"}
    assert len(nodes) == 8
    assert trace.notes == ()


def test_it_comes_again_where_it_was(lived: tuple[dict[str, Any], Starts]) -> None:
    trace, nodes = read_history(lived[0])
    outcome = Simulation(trace, nodes).run()
    assert {one.job.name.removeprefix("test/").removesuffix("-0"): one.nodes for one in outcome.runs} == {
        name: where for name, (_, where) in lived[1].items()
    }
    whole, rack, one = (one.started for one in outcome.runs)
    assert (whole, rack, one) == pytest.approx((0, 100, 33), abs=3)


def test_without_names_it_is_the_same(lived: tuple[dict[str, Any], Starts], tmp_path: Path) -> None:
    told = []
    for number, document in enumerate((lived[0], anonymised(lived[0]))):
        path = tmp_path / f"c{number}.json.gz"
        path.write_bytes(gzip.compress(json.dumps(document).encode()))
        done = CliRunner().invoke(app, ["simulate", str(path), "-o", "json"])
        assert done.exit_code == 0, done.output
        (found,) = json.loads(done.output)
        told.append({name: value for name, value in found.items() if name not in {"name", "users"}})
    assert told[0] == told[1]
    assert told[0]["finished"] == 3


def pod(name: str, index: int | None = None, **status: Any) -> dict[str, Any]:
    owner = [{"kind": "Job", "name": "j", "uid": "u", "controller": True}] if index is not None else []
    labels = {"batch.kubernetes.io/job-completion-index": str(index)} if index is not None else {}
    meta = {"name": name, "namespace": "n", "creationTimestamp": "2026-11-17T08:00:00Z", "labels": labels}
    spec = {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}
    if index is not None:
        spec["schedulingGroup"] = {"podGroupName": "g"}  # type: ignore[assignment]
    return {"metadata": {**meta, "ownerReferences": owner}, "spec": spec, "status": status}


def test_pods_that_were_made_anew_count_once() -> None:
    first, second = pod("g-0-a", 0, phase="Failed"), pod("g-0-b", 0, phase="Running", startTime="2026-11-17T08:01:00Z")
    second["metadata"]["creationTimestamp"] = "2026-11-17T08:00:30Z"
    (found,) = history([second, first], [])
    assert (found["pods"], found["created"], found["started"]) == (1, "2026-11-17T08:00:30Z", "2026-11-17T08:01:00Z")
    assert "ended" not in found


def test_what_had_not_ended_is_said() -> None:
    ended = {"state": {"terminated": {"finishedAt": "2026-11-17T08:10:00Z"}}}
    pods = [
        pod("a", phase="Succeeded", startTime="2026-11-17T08:05:00Z", containerStatuses=[ended]),
        pod("b", phase="Running", startTime="2026-11-17T08:00:00Z"),
        pod("c", phase="Pending"),
    ]
    document = {"objects": {}, "time": "2026-11-17T09:00:00Z", "history": history(pods, [])}
    trace, _ = read_history(document)
    assert [(one.name, one.duration) for one in trace.jobs] == [("n/a", 300.0), ("n/b", 3600.0), ("n/c", 300.0)]
    assert "2 of 3 had not ended" in trace.notes[0]


def test_a_file_without_history_says_so(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('{"version": 1, "objects": {}}')
    done = CliRunner().invoke(app, ["simulate", str(path)])
    assert done.exit_code == 1
    assert "kohort snapshot" in done.output
    with pytest.raises(TraceError, match=r"history\[0\]\.pods"):
        read_history(
            {"objects": {}, "history": [{"created": "2026-11-17T08:00:00Z", "pods": 0, "requests": {"cpu": "1"}}]}
        )
