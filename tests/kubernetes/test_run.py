"""`kohort run` on real Kubernetes: the page that tells people how, followed; and what it says of other clusters."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.kube.client import Client
from kohort.sim.cluster import plain
from kohort.sim.kubelet import KubeletSimulator
from kohort.testing.cluster import Cluster
from kohort.testing.environment import files
from kohort.testing.environment.environment import Environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "run-on-kubernetes.md").read_text()
JOBSET = "jobset.x-k8s.io/v1alpha2"


def kohort(*args: str, check: bool = True) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kohort.cli.main", *args], capture_output=True, text=True, timeout=120, check=False
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def shown(command: str) -> str:
    """What the page prints after a command."""
    found = re.search(rf"^\$ {re.escape(command)}\n(.*?)(?=^\$ |^```)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, command
    return found[1].strip()


def entries(printed: str) -> list[str]:
    """Lines, however wide the terminal: what goes on below where it began belongs to the line before."""
    whole = re.sub(r"\n {30,}", " ", printed)
    return [re.sub(r"\s+", " ", line).strip() for line in whole.splitlines()]


def dry_run(kubeconfig: Path) -> dict[str, dict[str, Any]]:
    told = json.loads(kohort("run", "--kubeconfig", str(kubeconfig), "--once", "--dry-run", "-o", "json"))
    return {one["what"]: one for one in told["capabilities"]}


def jobset(name: str, scheduler: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "c", "image": "registry.example/c:1", "command": ["sleep", "3600"], "resources": resources}
    pod = {"restartPolicy": "Never", "schedulerName": scheduler, "containers": [container]}
    job = {"spec": {"parallelism": 2, "completions": 2, "template": {"spec": pod}}}
    spec = {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": [{"name": "w", "replicas": 2, "template": job}]}
    return {"apiVersion": JOBSET, "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


class Running:
    """The command in a process of its own."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        argv = [sys.executable, "-m", "kohort.cli.main", "run", "--kubeconfig", str(kubeconfig)]
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen([*argv, "--listen", "127.0.0.1:0"], stdout=output, stderr=output)
        end = time.monotonic() + 60
        while "working" not in self.text():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(0.05)

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.text()


def test_the_page_followed_from_start_to_finish(
    kubernetes_environments: Callable[..., Environment], tmp_path: Path
) -> None:
    env = kubernetes_environments(
        "1.37", ("kcm", "scheduler"), {"WorkloadWithJob": True}
    )  # nobody else's nodes are in it
    env.kubectl("apply", "--server-side", "-f", "-", stdin=kohort("crds"))
    env.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    env.kubectl("apply", "-f", str(ROOT / "deploy" / "rbac.yaml"))
    printed = kohort("run", "--kubeconfig", str(env.kubeconfig), "--once", "--dry-run")
    told = entries(printed)
    assert not [one for one in entries(shown("kohort run --once --dry-run")) if one != "…" and one not in told], told
    token = env.kubectl("create", "token", "kohort", "-n", "kohort-system", "--duration=8h").stdout.strip()
    account = files.write_private(tmp_path / "kubeconfig", files.kubeconfig(env.url, env.ca_file, "kohort", token))
    running = Running(account, tmp_path / "run.log")
    try:
        asyncio.run(_gangs(env))
        assert " cannot " not in running.text()  # the roles are enough
    finally:
        running.stop()
    assert "stopped: nothing is left half done, the lease is free" in running.text()
    lease = json.loads(env.kubectl("get", "lease", "kohort", "-n", "kohort-system", "-o", "json").stdout)
    assert not lease["spec"].get("holderIdentity")


async def _gangs(env: Environment) -> None:
    """Ours is placed by us and theirs by kube-scheduler, on the same nodes."""
    async with Client.connect(env.kubeconfig) as client:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "page-"}}
        name = (await client.kind("v1", "Namespace").create(space))["metadata"]["name"]
        cluster = Cluster(client, name, patience=180.0)
        async with KubeletSimulator(client, plain(2), lifecycle=False, heartbeat=10.0) as kubelets:
            await kubelets.ready()
            await cluster.create(jobset("ours", "kohort"), jobset("theirs", "default-scheduler"))
            await cluster.running(8)

            async def both() -> bool:
                by = {(one["involvedObject"]["name"][:4], _who(one)) for one in await cluster.events("Scheduled")}
                return {("ours", "kohort-scheduler"), ("thei", "default-scheduler")} <= by

            await cluster.until(both, what="an event of each scheduler")
            tree = kohort("tree", "-n", name, "--kubeconfig", str(env.kubeconfig), "jobset/ours")
            assert "gang, minimum 4 pods  4 of 4 placed" in tree
            await client.kind("v1", "Namespace").delete(name)

            async def gone() -> bool:
                return not await cluster.pods()

            await cluster.until(gone, what="an empty namespace")
            for node in (await client.kind("v1", "Node").list()).items:
                await client.kind("v1", "Node").delete(node["metadata"]["name"])


def _who(event: dict[str, Any]) -> str:
    return str(event.get("reportingComponent") or event.get("source", {}).get("component"))


@pytest.mark.parametrize("minor", ["1.36", "1.35"])
def test_older_minors(kubernetes_environments: Callable[..., Environment], minor: str) -> None:
    told = dry_run(kubernetes_environments(minor).kubeconfig)
    assert told["Workload API"]["verdict"] == "does"
    assert told["Workload API"]["text"].endswith(f"release {minor}")
    assert "CompositePodGroup" not in told


def test_a_server_without_the_workload_api(kubernetes_environments: Callable[..., Environment]) -> None:
    names = ("WorkloadWithJob", "CompositePodGroup", "TopologyAwareWorkloadScheduling", "DRAWorkloadResourceClaims")
    env = kubernetes_environments("1.37", (), {"GenericWorkload": False, **dict.fromkeys(names, False)})
    told = dry_run(env.kubeconfig)
    assert told["Workload API"]["verdict"] == "missing"
    assert "--feature-gates=GenericWorkload=true" in told["Workload API"]["how"]
    assert told["scheduler"]["verdict"] == "does"


def test_a_gate_that_is_off(kubernetes_environments: Callable[..., Environment]) -> None:
    told = dry_run(kubernetes_environments("1.37", (), {"WorkloadWithJob": False}).kubeconfig)
    assert told["WorkloadWithJob"]["verdict"] == "missing"
    assert told["CompositePodGroup"]["verdict"] == "does"
