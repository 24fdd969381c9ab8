"""The JobSets of the worked examples (spec trainjob 5.1 to 5.5): wired, sized, and such as JobSet itself accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import kohort
from kohort.api import admit
from kohort.api.kind import Context, Object
from kohort.api.options import DEFAULT_OPTIONS

ROOT = Path(__file__).parents[4]
INPUTS = [*sorted(ROOT.glob("tests/golden/trainjob-*/input.yaml")), *sorted(ROOT.glob("examples/trainjob-*.yaml"))]
TREES = {"TrainJobCompositePodGroup": True}


def _children(name: str) -> list[Object]:
    (result,) = kohort.compile(ROOT / "tests/golden" / name / "input.yaml", gates=TREES)
    return list(result.children)


def _pods(jobset: Object) -> dict[str, tuple[int, str]]:
    """ReplicatedJob -> (pods, group)."""
    return {
        job["name"]: (
            job["template"]["spec"]["parallelism"],
            job["template"]["spec"]["template"]["spec"]["schedulingGroup"]["podGroupName"],
        )
        for job in jobset["spec"]["replicatedJobs"]
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("trainjob-torch-gang", {"node": (8, "resnet-gang-trainer-3024ca3565")}),
        (
            "trainjob-mpi",
            {"launcher": (1, "weather-mpi-trainer-ba2077df7f"), "node": (12, "weather-mpi-trainer-ba2077df7f")},
        ),
        (
            "trainjob-mpi-late-launcher",
            {"node": (12, "weather-mpi-trainer-ba2077df7f"), "launcher": (1, "weather-mpi-trainer-ba2077df7f")},
        ),
        (
            "trainjob-initializers",
            {
                "dataset-initializer": (1, "phi-tune-initializer-e01f55d539"),
                "model-initializer": (1, "phi-tune-initializer-e01f55d539"),
                "node": (4, "phi-tune-trainer-a22bd97f15"),
            },
        ),
        ("trainjob-rack", {"node": (16, "rack-vit-trainer-d8101569eb")}),
        (
            "trainjob-composite",
            {
                "fetch": (1, "staged-fetch-3ea2b6d81f"),
                "launcher": (1, "staged-launcher-node-486b43b040"),
                "node": (6, "staged-launcher-node-486b43b040"),
            },
        ),
    ],
)
def test_pods_point_to_their_groups(name: str, wanted: dict[str, Any]) -> None:
    assert _pods(_children(name)[-1]) == wanted


def test_5_2_hostfile() -> None:
    hostfile, jobset = _children("trainjob-mpi")
    lines = hostfile["data"]["hostfile"].splitlines()
    assert lines == [f"weather-mpi-node-0-{pod}.weather-mpi slots=2" for pod in range(12)]
    assert jobset["kind"] == "JobSet"


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
@pytest.mark.parametrize("file", INPUTS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_jobset_would_accept_it(file: Path, minor: str) -> None:
    ctx = Context.of(minor, options=DEFAULT_OPTIONS)
    for result in kohort.compile(file, to=minor, gates=TREES):
        for child in result.children:
            if child["kind"] == "JobSet":
                assert [str(error) for error in admit.check(child, ctx)] == []


def test_every_input_is_one_job_with_its_runtime() -> None:
    for file in INPUTS:
        kinds = [document["kind"] for document in yaml.safe_load_all(file.read_text())]
        assert kinds[-1] == "TrainJob"
