"""`kohort get` and `kohort top`, asked of a server over HTTPS: columns as kubectl has them, 80 columns, no colours."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.web import stage

from kohort.cli.main import app
from kohort.kube.client import Client
from kohort.plan.loading import load
from kohort.server.server import Server
from kohort.server.settings import Settings


@pytest.fixture
async def config(tmp_path: Path) -> AsyncIterator[str]:
    """Forty nodes, gangs that run on them, a gang and a pod that wait."""
    async with Server(Settings(tmp_path, "1.37", port=0, in_memory=True)) as server:
        await load(server, stage.full(40, 10))
        async with Client.within(server.api, clock=server.clock) as client:
            wants = {"requests": {"cpu": "400"}}
            huge = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "huge", "labels": {"size": "huge"}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": wants}]},
            }
            await client.of(huge).create(huge, "default")
            yield str(tmp_path / "kubeconfig")


async def kohort(*words: str) -> Result:
    """In a thread: the server answers on this loop."""
    return await asyncio.to_thread(CliRunner().invoke, app, list(words))


async def test_a_list(config: str) -> None:
    done = await kohort("get", "-A", "--kubeconfig", config)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].split() == ["NAMESPACE", "KIND", "NAME", "STATE", "PODS", "MIN", "WAITS", "REASON"]
    assert re.fullmatch(r"default +Pod +huge +Waiting +0/1 +- +\d+ s +InsufficientResource", lines[1])
    assert re.fullmatch(
        r"lab +PodGroup +gang-2 +Running +64/64 +64 +- +-", next(one for one in lines if "gang-2 " in one)
    )
    assert "\x1b" not in done.output


async def test_what_is_chosen(config: str) -> None:
    names = await kohort("get", "podgroups", "-n", "lab", "-o", "name", "--kubeconfig", config)
    assert names.output.splitlines() == [f"podgroup/gang-{number}" for number in range(7)]
    one = await kohort("get", "podgroup/gang-3", "-n", "lab", "-o", "json", "--kubeconfig", config)
    (found,) = json.loads(one.output)["items"]
    assert (found["workload"], found["placed"]) == ({"kind": "PodGroup", "name": "gang-3"}, 63)
    labelled = await kohort("get", "-l", "size=huge", "-o", "wide", "--kubeconfig", config)
    assert "1 × cpu 400" in labelled.output
    none = await kohort("get", "jobset", "-n", "lab", "--kubeconfig", config)
    assert none.output == "nothing found in namespace lab\n"
    missing = await kohort("get", "podgroup", "none", "-n", "lab", "--kubeconfig", config)
    assert missing.exit_code == 1
    assert "podgroup none: not found in namespace lab" in missing.output


async def test_what_is_named_has_to_be_there(config: str) -> None:
    """As for kubectl: what is there is shown, what is not is an error."""
    both = await kohort("get", "podgroup", "none", "gang-3", "-n", "lab", "-o", "name", "--kubeconfig", config)
    assert (both.exit_code, both.stdout) == (1, "podgroup/gang-3\n")
    assert "podgroup none: not found in namespace lab" in both.stderr
    for words, says in (
        (("podgroup/none",), "podgroup/none: not found in namespace lab"),
        (("nosuch",), "nosuch: not found in namespace lab"),
        (("nosuch", "gang-3"), '"nosuch": the server has no such type; accepted are'),
    ):
        done = await kohort("get", *words, "-n", "lab", "--kubeconfig", config)
        assert (done.exit_code, done.stdout) == (1, "")
        assert says in done.stderr
    for words in (("gang-3",), ("po",), ("podgroups", "gang-3")):  # a name alone, a short name, a plural
        done = await kohort("get", *words, "-A" if len(words) == 1 else "-nlab", "-o", "name", "--kubeconfig", config)
        assert done.exit_code == 0, done.output
        assert done.stdout
    wrong = await kohort("get", "-o", "xml", "--kubeconfig", config)
    assert wrong.exit_code == 1
    assert "accepted are text" in wrong.output


async def test_top_in_a_pipe(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    done = await kohort("top", "--kubeconfig", config)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert "\x1b" not in done.output
    head = done.output.splitlines()[0]
    assert head.startswith("40 nodes")
    assert "of 320 nvidia.com/gpu" in head
    assert "RACK" in done.output
    assert re.search(r"zone-0-rack-0 +█+░* +\d+ %", done.output)
    assert re.search(r"PodGroup gang-2 +lab +64 pods +8 nodes", done.output)
    assert re.search(r"Pod huge +default +\d+ s +InsufficientResource", done.output)


async def test_top_where_nothing_waits(config: str) -> None:
    done = await kohort("top", "-n", "nobody", "--kubeconfig", config)
    assert done.exit_code == 0, done.output
    assert done.output.endswith("\nRUNNING\nnothing\n\nQUEUE\nnothing\n")


async def test_top_for_programs(config: str) -> None:
    done = await kohort("top", "-o", "json", "-n", "lab", "--kubeconfig", config)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["nodes"], found["resource"], found["capacity"]) == (40, "nvidia.com/gpu", 320)
    assert {one["ns"] for one in found["running"]} == {"lab"}
    assert found["queue"] == []
    assert sum(one["capacity"] for one in found["domains"]) == 320


async def test_top_of_labels_and_of_all_namespaces(config: str) -> None:
    labelled = json.loads((await kohort("top", "-l", "size=huge", "-o", "json", "--kubeconfig", config)).output)
    assert [one["name"] for one in labelled["queue"]] == ["huge"]
    assert labelled["running"] == []
    wide = await kohort("top", "-A", "-o", "wide", "--kubeconfig", config)
    assert "(a pod asks 400 cpu); nobody can be preempted for it\n" in wide.output, "reasons are whole"
    assert "and 0 more" not in wide.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-A", "-n", "lab"], "-A and -n: one namespace or all of them"),
        (["-o", "name"], "kohort get -o name lists names; accepted are text, wide, json, yaml"),
        (["--once", "-w"], "--once and -w"),
    ],
)
async def test_what_top_does_not_take(config: str, words: list[str], said: str) -> None:
    done = await kohort("top", *words, "--kubeconfig", config)
    assert done.exit_code == 1
    assert said in done.output


async def test_names_are_what_kubectl_reads(config: str) -> None:
    tree = await kohort("tree", "podgroup/gang-2", "-n", "lab", "-o", "name", "--kubeconfig", config)
    assert tree.output.splitlines()[0] == "podgroup/gang-2"
    assert len(tree.output.splitlines()) == 65, "the group and its pods"
    waits = await kohort("explain", "-A", "-o", "name", "--kubeconfig", config)
    assert {"pod/huge", "podgroup/gang-0"} <= set(waits.output.splitlines()), "a pod, and a gang that lacks members"
    assert "podgroup/gang-2" not in waits.output
    runs = await kohort("explain", "podgroup/gang-2", "-n", "lab", "-o", "name", "--kubeconfig", config)
    assert runs.output == "", "it does not wait"
