"""`kohort plan` as a command: what it says, what it makes of mistakes. test_random.py compares it with what happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kohort.api.kind import Object
from kohort.cli.main import app
from kohort.kube.client import Client
from kohort.plan.clustercopy import ClusterCopy, described, read_cluster
from kohort.plan.plan import plan
from kohort.scheduler.clusterlist import list_cluster
from kohort.scheduler.snapshot import dump
from kohort.sim.cluster import Level, Pool
from kohort.testing.cluster import Cluster, cluster
from kohort.testing.virtual import VirtualLoop

RACK = "example.com/rack"
CLASSES = {"low": -10, "high": 1000}
INDEX = "batch.kubernetes.io/job-completion-index"
Places = dict[str, str]  # which pod -> node
Gone = list[tuple[str, str]]  # whose pod, on which node: which of several equal ones is left open


def jobset(name: str, pods: int, cpu: int, priority: str = "") -> Object:
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}],
        **({"priorityClassName": priority} if priority else {}),
    }
    template = {"metadata": {"annotations": {"sim.kohort.dev/run-seconds": "1000000"}}, "spec": spec}
    job = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}
    body = {
        "gangConfig": {"gangMode": "Gang"},
        "replicatedJobs": [{"name": "w", "replicas": 1, "template": {"spec": job}}],
    }
    meta = {"name": name, "namespace": "lab"}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": body}


def priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def owner(pod: Object) -> str:
    (found,) = pod["metadata"]["ownerReferences"]
    return f"{found['kind']} {found['name']}"


async def places(client: Client, name: str) -> Places:
    pods = (await client.kind("v1", "Pod").list("lab", labels=f"jobset.sigs.k8s.io/jobset-name={name}")).items
    return {pod["metadata"]["labels"][INDEX]: pod["spec"].get("nodeName", "") for pod in pods}


async def settled(found: Cluster, names: Sequence[str]) -> None:
    """Until nothing has changed for longer than the scheduler waits before it tries again."""
    seen: list[Places] = []
    same = 0
    while same < 40:
        await found.sleep(1)
        now = [await places(found.client, name) for name in names]
        same = same + 1 if now == seen else 0
        seen = now


@dataclass
class Case:
    """What runs, and what is asked about. `happened`: where its pods are once it has been submitted."""

    pools: Sequence[Pool]
    running: Sequence[Object]
    asked: Object
    snapshot: Any = None

    def happens(self) -> tuple[ClusterCopy, Places, Gone]:
        """The cluster before it, where it went, and who had to go for it."""

        async def work() -> tuple[ClusterCopy, Places, Gone]:
            async with cluster(pools=self.pools) as found:
                await found.create(*(priority_class(*one) for one in CLASSES.items()))
                names = [one["metadata"]["name"] for one in self.running]
                for one in self.running:
                    await found.create(one)
                    await settled(found, names)
                copied = await read_cluster(found.client)
                seen = await list_cluster(found.client)
                self.snapshot = dump(seen.core, seen.objects)
                await found.create(self.asked)
                name = self.asked["metadata"]["name"]
                await settled(found, [*names, name])
                left = {pod["metadata"]["uid"] for pod in await found.pods()}
                bound = [pod for pod in copied.pods() if pod["spec"].get("nodeName")]
                gone = [(owner(pod), pod["spec"]["nodeName"]) for pod in bound if pod["metadata"]["uid"] not in left]
                return copied, await places(found.client, name), sorted(gone)

        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(work())


def pools(nodes: int, cpu: int) -> list[Pool]:
    return [Pool(name="n", count=nodes, capacity={"cpu": str(cpu), "pods": "20"}, topology=(Level(RACK, 2),))]


@pytest.fixture(scope="module")
def full() -> Case:
    """Two nodes of which a JobSet of low priority takes all; another one is asked about."""
    found = Case(pools(2, 4), [jobset("first", 4, 2, "low")], jobset("second", 2, 2))
    _, _, gone = found.happens()
    assert len(gone) == 2
    return found


def saved(full: Case, to: Path) -> str:
    path = to / "state.json"
    path.write_text(json.dumps(full.snapshot))
    return str(path)


def written(to: Path, *objects: Object) -> str:
    path = to / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


def ask(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["plan", *words])
    return done.exit_code, done.output


def test_the_command_names_nodes_and_victims(full: Case, tmp_path: Path) -> None:
    code, text = ask("-f", written(tmp_path, full.asked), "--state", saved(full, tmp_path), "-n", "lab")
    assert code == 0, text
    assert "JobSet second in lab starts: 2 pods at once" in text
    assert "evicted    Job first-w-0 in lab: 2 pods (" in text


def test_it_says_why_not(full: Case, tmp_path: Path) -> None:
    large = jobset("large", 3, 4)
    code, text = ask("-f", written(tmp_path, large), "--state", saved(full, tmp_path))
    assert code == 1, text
    assert "JobSet large in lab does not start" in text
    assert "InsufficientResource" in text


def test_what_is_submitted_before_counts(tmp_path: Path) -> None:
    nodes = tmp_path / "cluster.yaml"
    nodes.write_text("pools: [{name: n, count: 2, capacity: {cpu: 4, pods: 10}}]")
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for path, one in ((first, jobset("first", 2, 3)), (second, jobset("second", 2, 3))):
        one["metadata"].pop("namespace")
        path.write_text(json.dumps(one))
    assert ask("-f", str(second), "--cluster", str(nodes))[0] == 0
    code, text = ask("-f", str(second), "--with", str(first), "--cluster", str(nodes), "-o", "json")
    assert code == 1
    data = json.loads(text)
    assert data["starts"] is False
    assert [one["name"] for one in data["workloads"]] == ["second"]


def test_what_is_there_already_is_not_planned(full: Case, tmp_path: Path) -> None:
    code, text = ask("-f", written(tmp_path, jobset("first", 4, 2)), "--state", saved(full, tmp_path))
    assert code == 1
    assert "is in the cluster already; kohort explain jobset/first" in " ".join(text.split())


def test_what_could_not_be_asked_is_no_answer(tmp_path: Path) -> None:
    """Whoever asks in CI tells "no" from "that file is not there" by the exit code."""
    nodes, other = tmp_path / "cluster.yaml", tmp_path / "other.yaml"
    nodes.write_text("pools: [{name: n, count: 1}]")
    other.write_text("pools: []\n---\napiVersion: v1\nkind: Pod\nspec: {}\n")
    for path, says in (
        (tmp_path / "none.yaml", ["none.yaml: no such file or directory"]),
        (other, ["apiVersion: Required value", "kind: Required value", "Pod/(no name): metadata.name: Required value"]),
    ):
        code, text = ask("-f", str(path), "--cluster", str(nodes))
        assert code == 2
        assert "a fault of Kohort" not in text
        for one in says:
            assert one in " ".join(text.split())


def test_a_refusal_is_told(tmp_path: Path) -> None:
    nodes = tmp_path / "cluster.yaml"
    nodes.write_text("pools: [{name: n, count: 1}]")
    bad = jobset("bad", 1, 1, "nobody-knows-it")
    bad["metadata"].pop("namespace")
    bad["spec"]["replicatedJobs"][0]["name"] = "Not A Name"
    code, text = ask("-f", written(tmp_path, bad), "--cluster", str(nodes))
    assert code == 1
    assert "the API server would refuse JobSet/bad" in text


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "--state"), ('{"objects": {}}', "version"), ('{"version": 1, "objects": {"pods": [1]}}', "objects.pods")],
)
def test_a_bad_snapshot(content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    code, text = ask("-f", written(tmp_path, jobset("x", 1, 1)), "--state", str(path))
    assert code == 2
    assert says in text
    assert "Traceback" not in text


def test_a_node_that_is_not_ready_takes_nothing() -> None:
    (pool,) = pools(1, 4)
    (node,) = pool.nodes()
    node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    node["spec"] = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    asked = jobset("x", 1, 1)
    asked["metadata"].pop("namespace")
    found = _where(described([node]), asked)
    assert found == [""]


def _where(copied: ClusterCopy, asked: Object) -> list[str]:
    async def look(client: Client) -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in (await client.kind("v1", "Pod").list("default")).items]

    return plan(copied, [[asked]], look).found
