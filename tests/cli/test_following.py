"""`-w` and `-f` of `kohort explain` and `kohort tree`, on a whole cluster in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kohort.cli import explain, tree
from kohort.cli.common import UsageError
from kohort.cli.following import Answer, follow
from kohort.cli.main import app
from kohort.cli.targets import Question, Reply, answer
from kohort.sim.cluster import Pool
from kohort.testing.cluster import Cluster, cluster
from kohort.testing.virtual import VirtualLoop


def virtually(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())


def job(name: str, pods: int) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "scheduling": {"schedulingPolicy": {"gang": {}}},
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


SMALL = (Pool(name="node", count=1, capacity={"cpu": "4", "memory": "8Gi", "pods": "110"}),)
LOOKS: dict[str, Callable[[Reply], Answer]] = {
    "explain": lambda reply: explain._named(reply, "text"),
    "tree": lambda reply: tree._look(reply, "text", every=False),
}


@pytest.mark.parametrize(
    ("command", "first", "then"),
    [
        ("explain", "waits for", "runs: all 3 pods have nodes"),
        ("tree", "0 of 3 placed", "3 of 3 placed"),
    ],
)
def test_the_answer_is_printed_again_when_it_has_changed(
    command: str, first: str, then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> None:
        async with cluster(pools=SMALL) as lab:
            await lab.create(job("train", 3))
            await lab.until(lambda: _waits(lab, 3))
            stop = asyncio.Event()
            question = Question(("job", "train"), namespace="lab")
            task = asyncio.create_task(follow(lab.client, question, LOOKS[command], "text", stop))
            await lab.sleep(30)
            told = capsys.readouterr().out
            assert told.count("Job") == 1, "nothing changed, nothing more is said"
            assert first in told
            await lab.client.kind("v1", "Node").create(_node("more"))
            await lab.running(3)
            await lab.sleep(2)
            assert then in capsys.readouterr().out
            stop.set()
            assert await task == 0

    virtually(work)


def _node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


async def _waits(lab: Cluster, pods: int) -> bool:
    return len(await lab.pods()) == pods and len(await lab.events("FailedScheduling")) > 0


def test_what_is_not_there_at_the_beginning_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    async def work() -> None:
        async with cluster(pools=SMALL) as lab:
            question = Question(("job", "nobody"), namespace="lab")
            assert await follow(lab.client, question, LOOKS["explain"], "text", asyncio.Event()) == 1

    virtually(work)
    assert "job/nobody: not found in namespace lab" in capsys.readouterr().err


def test_files_name_what_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    file.write_text(yaml.safe_dump_all([service, job("train", 1), job("absent", 1)]))

    async def work() -> None:
        async with cluster(pools=SMALL) as lab:
            await lab.create(job("train", 1))
            await lab.running(1)
            reply = await answer(lab.client, Question(filename=(str(file),), namespace="lab"))
            assert [found.asked for found in reply.found] == ["Job lab/train"]
            assert reply.missing == ["Job.batch/absent: not found in namespace lab"]

    virtually(work)


def test_a_file_of_another_namespace_and_one_without_workloads_are_refused(tmp_path: Path) -> None:
    elsewhere, nothing = tmp_path / "elsewhere.yaml", tmp_path / "nothing.yaml"
    elsewhere.write_text(yaml.safe_dump({**job("a", 1), "metadata": {"name": "a", "namespace": "prod"}}))
    nothing.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}))

    async def work() -> None:
        async with cluster(pools=SMALL) as lab:
            with pytest.raises(UsageError, match=r"-n lab: Job/a in .*elsewhere.yaml is in namespace prod"):
                await answer(lab.client, Question(filename=(str(elsewhere),), namespace="lab"))
            with pytest.raises(UsageError, match="no workload, group or pod with a name is in it"):
                await answer(lab.client, Question(filename=(str(nothing),)))

    virtually(work)


@pytest.mark.parametrize("command", ["explain", "tree"])
@pytest.mark.parametrize("words", [["-A"], ["-l", "a=b"], ["job", "x"]])
def test_files_and_words_do_not_go_together(command: str, words: list[str]) -> None:
    done = CliRunner().invoke(app, [command, "-f", "x.yaml", *words])
    assert done.exit_code == 1
    assert "files say what is meant; leave out one of the two" in done.output
