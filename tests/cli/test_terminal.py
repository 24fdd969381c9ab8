"""What each command prints where nobody looks: at 80 columns, without colour, without a terminal.

The texts are in tests/cli/terminal, one file for each command; KOHORT_SNAPSHOTS=write writes them anew, to be read
before they are committed.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.web import stage

from kohort.cli.main import app
from kohort.plan.clustercopy import ClusterCopy
from kohort.plan.loading import load
from kohort.server.server import Server
from kohort.server.settings import Settings

TEXTS = Path(__file__).parent / "terminal"
ROOT = Path(__file__).parents[2]
WIDTH = 80
LONG_AGO = "2020-01-01T00:00:00Z"
COMMANDS = {
    "get": "get -A",
    "get-one": "get podgroup/train -n lab",
    "get-nothing": "get jobset -n lab",
    "get-wide": "get -A -o wide",
    "tree": "tree podgroup/train -n lab",
    "tree-waiting": "tree podgroup/large -n lab",
    "tree-wide": "tree podgroup/train -n lab -o wide",
    "tree-name": "tree podgroup/train -n lab -o name",
    "explain": "explain -A",
    "explain-wide": "explain -A -o wide",
    "explain-name": "explain -A -o name",
    "explain-one-wide": "explain podgroup/large -n lab -o wide",
    "explain-one": "explain podgroup/large -n lab",
    "explain-running": "explain podgroup/train -n lab",
    "top": "top --once",
    "top-wide": "top -A -o wide",
    "top-name": "top -o name",
    "drain": "plan --drain gpu-0",
    "doctor": "doctor",
    "plan": "plan -f examples/jobset-gang.yaml --cluster examples/cluster.yaml",
    "plan-waits": "plan -f examples/jobset-gang.yaml --cluster tests/cli/terminal/small-cluster.yaml",
    "simulate": "simulate examples/traces/small.yaml",
    "simulate-compare": "simulate examples/traces/small.yaml --compare examples/cluster.yaml",
    "help": "--help",
    "get-help": "get --help",
    "simulate-help": "simulate --help",
}
_LOCAL = {"plan", "plan-waits", "simulate", "simulate-compare", "help", "get-help", "simulate-help"}
# One line each, however long: for that it is asked for. So are errors, which programs look for.
_UNBROKEN = {"get-wide", "explain-wide", "explain-one-wide", "tree-wide", "top-wide", "top-name"}
_AGE = re.compile(r"\d{4,5} d\b")  # grows by the day
_KOHORT = re.compile(r"\b\d+\.\d+\.\d+(?:\.dev\d+\S*)?")


def _cluster() -> ClusterCopy:
    """Four nodes in two racks; a gang that runs, one that does not fit a rack, a pod that fits nowhere."""
    found = stage.full(4, 1)
    nodes = [_aged(one) for one in found.of("nodes")]
    for number, one in enumerate(nodes):
        one["metadata"]["labels"][stage.RACK] = f"rack-{number // 2}"
    groups = [_group("train", 2), _group("large", 4, rack=True)]
    pods = [_pod(f"train-{number}", "train", nodes[number]["metadata"]["name"], gpus=8) for number in range(2)]
    pods += [_pod(f"large-{number}", "large", "", gpus=8) for number in range(4)]
    pods.append(_pod("huge", "", "", cpu="400"))
    spaces = [_aged(one) for one in found.of("namespaces")]
    return ClusterCopy("1.37", {"namespaces": spaces, "nodes": nodes, "podgroups": groups, "pods": pods})


def _aged(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "creationTimestamp": LONG_AGO}}


def _meta(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "lab", "uid": f"u-{name}", "creationTimestamp": LONG_AGO}


def _group(name: str, least: int, *, rack: bool = False) -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if rack:
        spec["schedulingConstraints"] = {"topology": [{"key": stage.RACK}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {**_meta(name), "uid": f"g-{name}"},
        "spec": spec,
    }


def _pod(name: str, group: str, node: str, cpu: str = "8", gpus: int = 0) -> dict[str, Any]:
    asks = {"cpu": cpu, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    spec = {
        "schedulerName": "kohort",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": asks}}],
        **({"schedulingGroup": {"podGroupName": group}} if group else {}),
        **({"nodeName": node} if node else {}),
    }
    phase = {"phase": "Running", "startTime": LONG_AGO} if node else {"phase": "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _meta(name), "spec": spec, "status": phase}


@pytest.fixture
async def config(tmp_path: Path) -> AsyncIterator[str]:
    async with Server(Settings(tmp_path, "1.37", port=0, in_memory=True)) as server:
        await load(server, _cluster())
        yield str(tmp_path / "kubeconfig")


def printed(line: str) -> str:
    """As a pipe gets it."""
    done = CliRunner(env={"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}).invoke(
        app, shlex.split(line), prog_name="kohort"
    )
    text = _KOHORT.sub("VERSION", _AGE.sub(lambda one: "N" * (len(one[0]) - 2) + " d", done.output))
    shown = "\n".join(one.rstrip() for one in text.splitlines())
    return f"$ kohort {line}\n{shown}\nexit code {done.exit_code}\n"


def check(name: str, found: str) -> None:
    path = TEXTS / f"{name}.txt"
    if os.environ.get("KOHORT_SNAPSHOTS") == "write":
        path.write_text(found)
    assert found == path.read_text()
    assert "\x1b" not in found
    long = [line for line in found.splitlines() if len(line) > WIDTH and not line.startswith("$")]
    assert long == [] or name in _UNBROKEN


@pytest.mark.parametrize("name", sorted(_LOCAL))
def test_without_a_cluster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    check(name, printed(COMMANDS[name]))


async def test_of_a_cluster(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One server for all of them; it answers on this loop, they ask from a thread."""
    monkeypatch.setenv("KUBECONFIG", config)
    found = {name: await asyncio.to_thread(printed, COMMANDS[name]) for name in COMMANDS.keys() - _LOCAL}
    for name, text in sorted(found.items()):
        check(name, text)
