"""`kohort simulate` as people call it: numbers at 80 columns, JSON, a report, comparisons, what is wrong in a trace."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kohort.cli.main import app
from kohort.simulate.formats import read_csv, read_swf
from kohort.simulate.plots import _top, length
from kohort.simulate.trace import TraceError, read_yaml

SMALL = str(Path(__file__).parents[2] / "examples" / "traces" / "small.yaml")
TINY = """
cluster: {pools: [{name: n, count: 2, capacity: {cpu: 4}}]}
jobs:
- {name: a, user: ana, at: 0, pods: 2, requests: {cpu: 4}, duration: 100}
- {name: b, user: bo, at: 10, pods: 1, requests: {cpu: 2}, duration: 50, count: 2, every: 5}
"""


def simulate(*words: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *words])


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


def test_numbers(tiny: str) -> None:
    done = simulate(tiny)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert [line.split() for line in done.output.splitlines()][:5] == [
        ["jobs", "3"],
        ["finished", "3"],
        ["never", "started", "0"],
        ["makespan", "2.5", "min"],
        ["wait,", "mean", "58", "s"],
    ]


def test_json(tiny: str) -> None:
    (found,) = json.loads(simulate(tiny, "-o", "json").output)
    assert (found["jobs"], found["finished"], found["wait"]["longest"], found["resource"]) == (3, 3, 90.0, "cpu")
    assert [one["user"] for one in found["users"]] == ["ana", "bo"]


def test_a_report_is_one_file_that_asks_nobody(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    done = simulate(SMALL, "--report", str(report))
    assert done.exit_code == 0, done.output
    text = report.read_text()
    assert text.count("<svg") == 4
    assert re.findall(r"(?:src|href)=|https?://(?!www\.w3\.org)|<script", text) == []
    assert "nvidia.com/gpu in use" in text
    assert "chen" in text


def test_two_clusters_side_by_side(tiny: str, tmp_path: Path) -> None:
    larger = tmp_path / "larger.yaml"
    larger.write_text("pools: [{name: n, count: 4, capacity: {cpu: 4}}]\n")
    packed = tmp_path / "packed.yaml"
    packed.write_text("{}\n")
    done = simulate(tiny, "--compare", str(larger), "--compare", str(packed), "-o", "json")
    assert done.exit_code == 0, done.output
    base, more, same = json.loads(done.output)
    assert [base["name"], more["name"], same["name"]] == ["tiny", "larger", "packed"]
    assert more["wait"]["mean"] == 0 < base["wait"]["mean"] == same["wait"]["mean"]
    shown = simulate(tiny, "--compare", str(larger)).output
    assert re.search(r"tiny\s+larger", shown)
    assert simulate(tiny, "--compare", str(larger), str(packed), "-o", "json").output == done.output
    alone = simulate(tiny, str(larger))
    assert alone.exit_code == 1
    assert "larger.yaml: one trace is run; --compare FILE" in alone.output


def test_mistakes_are_told_before_the_run(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.cli.simulate.Simulation", None)
    table = tmp_path / "t.csv"
    table.write_text("arrival,cpu,duration\n0,1,1\n")
    for words, says in (
        ((tiny, "--report", str(tmp_path / "none" / "r.html")), "there is no directory"),
        ((tiny, "--report", str(tmp_path)), "is a directory; a file is wanted"),
        ((str(table),), "t.csv: the trace names no cluster; use --cluster FILE"),
    ):
        done = simulate(*words)
        assert done.exit_code == 1
        assert says in " ".join(done.output.split())


def test_nothing_is_said_of_a_time_that_there_was_not(tmp_path: Path) -> None:
    idle = tmp_path / "idle.yaml"
    idle.write_text(TINY.replace("pods: 2, requests: {cpu: 4}", "pods: 1, requests: {cpu: 1}"))
    shown = simulate(str(idle)).output
    assert re.search(r"cpu in use while something waited\s+–", shown)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (59, "59 s"),
        (60, "1 min"),
        (90, "90 s"),
        (3600, "1 h"),
        (5400, "90 min"),
        (7200, "2 h"),
        (86400, "1 d"),
        (9000, "2.5 h"),
    ],
)
def test_lengths_as_people_say_them(seconds: float, said: str) -> None:
    assert length(seconds) == said


@pytest.mark.parametrize(
    ("highest", "unit", "top"),
    [(19, "", 20), (3, "", 4), (21, "", 40), (8500, "s", 14400), (70, "s", 120), (9, "s", 20), (900_000, "s", 1728000)],
)
def test_plots_end_at_round_numbers(highest: float, unit: str, top: float) -> None:
    assert _top(highest, unit) == top


def test_everything_that_is_wrong_at_once(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("jobs:\n- {pods: 0, duration: -1, requests: {cpu: x}, colour: red}\n- 7\nfailures: [{at: 3}]\n")
    done = simulate(str(path))
    assert done.exit_code == 1
    for field in (
        "jobs[0].pods",
        "jobs[0].duration",
        "jobs[0].requests.cpu",
        "jobs[0].colour",
        "jobs[1]",
        "failures[0]",
    ):
        assert field in done.output
    path.write_text("jobs: [{duration: 1}]\n")
    assert "--cluster FILE" in simulate(str(path)).output
    assert "cannot be read" in simulate(str(tmp_path / "none.yaml")).output


def test_swf() -> None:
    found = read_swf(
        "; MaxProcs: 8\n"
        "1 0 -1 100 4 -1 -1 4 -1 -1 1 7 -1 -1 0 -1 -1 -1\n"
        "2 5 -1 -1 4 -1 -1 4 -1 -1 0 7 -1 -1 0 -1 -1 -1\n"
        "3 9 -1 60 -1 -1 -1 2 -1 -1 1 -1 -1 -1 0 -1 -1 -1\n"
    )
    assert [(one.name, one.at, one.duration, one.pods, one.user) for one in found.jobs] == [
        ("job-1", 0.0, 100.0, 4, "user-7"),
        ("job-3", 9.0, 60.0, 2, ""),
    ]
    assert found.cluster["pools"][0]["count"] == 8
    assert found.notes == ("1 jobs without processors or running time are left out",)
    with pytest.raises(TraceError, match="line 1: found 3 fields"):
        read_swf("1 2 3\n")


def test_csv() -> None:
    found = read_csv("arrival,pods,duration,cpu,nvidia.com/gpu,user\n0,4,60,8,8,ana\n5.5,1,10,500m,,\n")
    first, second = found.jobs
    assert (first.pods, dict(first.requests), first.user) == (4, {"cpu": "8", "nvidia.com/gpu": "8"}, "ana")
    assert (second.at, dict(second.requests)) == (5.5, {"cpu": "500m"})
    with pytest.raises(TraceError, match="no column duration"):
        read_csv("arrival,pods\n1,2\n")
    with pytest.raises(TraceError, match="line 2: cpu: 'many' is not a quantity"):
        read_csv("arrival,duration,cpu\n0,1,many\n")


def test_yaml_counts() -> None:
    found = read_yaml("jobs: [{name: s, at: 10, every: 5, count: 3, duration: 1}]")
    assert [(one.name, one.at) for one in found.jobs] == [("s-0", 10.0), ("s-1", 15.0), ("s-2", 20.0)]
