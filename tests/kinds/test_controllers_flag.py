"""`--controllers`: kube-controller-manager's words, over the registration of kinds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kohort.cli.common import UsageError, configured
from kohort.controllermanager import registry as manager
from kohort.kinds.controllers import groups, is_enabled, names, selected, selection_mistakes
from kohort.testing.cluster import cluster
from kohort.testing.virtual import VirtualLoop


@pytest.mark.parametrize(
    ("words", "on", "off"),
    [
        (None, ("job", "jobset"), ()),
        (("*",), ("job", "jobset"), ()),
        (("job",), ("job",), ("jobset",)),
        (("*", "-jobset"), ("job", "grove"), ("jobset",)),
        (("-jobset", "*"), ("job", "grove"), ("jobset",)),
        (("job", "-job"), ("job",), ("jobset",)),  # the first word about it decides
        ((), (), ("job", "jobset")),
    ],
)
def test_words(words: tuple[str, ...] | None, on: tuple[str, ...], off: tuple[str, ...]) -> None:
    assert all(is_enabled(words, name) for name in on)
    assert not any(is_enabled(words, name) for name in off)


def test_a_name_means_all_controllers_that_only_make_sense_together() -> None:
    assert selected(("grove",)) == groups()["grove"].controllers
    assert selected(None) == (*names(), *manager.names())
    assert selected(("*", "-replicaset")) == tuple(name for name in selected(None) if name != "replicaset")
    assert set(selected(None)) - set(selected(("*", "-jobset"))) == {"jobset", "jobset-placement"}


def test_what_is_not_known_is_refused_with_what_is_accepted() -> None:
    ((word, wrong),) = selection_mistakes(("*", "-jobsets", "job"))
    assert word == "-jobsets"
    for name in groups():
        assert name in wrong


def test_leaving_out_of_nothing_is_refused() -> None:
    ((word, wrong),) = selection_mistakes(("-jobset", "-grove"))
    assert (word, wrong) == ("-jobset,-grove", "leaves out of nothing; write *,-jobset,-grove for all but these")


def test_kohort_up_takes_it_from_the_file_and_the_flag_wins(tmp_path: Path) -> None:
    file = tmp_path / "kohort.yaml"
    file.write_text("apiVersion: config.kohort.dev/v1alpha1\nkind: KohortConfiguration\ncontrollers: ['*', -jobset]\n")
    assert configured(str(file), (), {"controllers"}).controllers == ("*", "-jobset")
    assert configured(str(file), (), {"controllers"}, "job").controllers == ("job",)
    assert configured("", (), {"controllers"}, "none").controllers == ()
    with pytest.raises(UsageError, match="accepted are job, cronjob"):
        configured("", (), {"controllers"}, "*,nonsense")


def _pod_template() -> dict[str, Any]:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}


def test_what_is_left_out_is_for_somebody_else() -> None:
    """Jobs run; a JobSet is served and judged, and nobody makes anything of it."""

    async def work() -> None:
        async with cluster(controllers=selected(("*", "-jobset"))) as lab:
            job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}}
            replicated = [{"name": "r", "template": {"spec": {"template": _pod_template()}}}]
            jobset = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "b"}}
            await lab.create({**jobset, "spec": {"replicatedJobs": replicated}})
            await lab.create({**job, "spec": {"template": _pod_template()}})
            await lab.running(1)
            await lab.sleep(60)
            assert [one["metadata"]["name"] for one in await lab.every("batch/v1", "Job")] == ["a"]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work())
