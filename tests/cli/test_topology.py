"""Maps of ranks, as `kohort plan`, `kohort explain` and `kohort tree` print them."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from tests.scheduler.test_topology import RACK, cluster, gang, root

from kohort.cli import plan
from kohort.cli.explainprint import answer_lines, standing_lines
from kohort.cli.lookup import Found
from kohort.cli.tree import page
from kohort.place.networkstanding import LevelStanding, Standing
from kohort.scheduler.rootstatus import root_status

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_plan_prints_two_crossings_of_ten_ranks_on_three_racks(capsys: pytest.CaptureFixture[str]) -> None:
    asked = plan.PlanOptions(
        (str(EXAMPLES / "job-ranks.yaml"),), cluster=str(EXAMPLES / "clusters" / "three-racks.yaml")
    )
    assert plan.run(asked, "text") == 0
    printed = capsys.readouterr().out
    assert f"crossings  {RACK} 2, of 9 neighbours" in printed
    assert [line.split()[-2:] for line in printed.splitlines() if " rack-" in line[:20]] == [
        ["rack-0", "0-3"],
        ["rack-1", "4-7"],
        ["rack-2", "8-9"],
    ]


def test_tree_and_explain_have_a_line_per_domain() -> None:
    sim = cluster(a=3, b=3)
    gang(sim, "g", range(5), 5, {"kohort.dev/topology": "rack=preferred"})
    sim.settle()
    found = Found(sim.core, "PodGroup", "default", "g", [(root(sim, "g"), None)])
    console = Console(width=200)
    with console.capture() as captured:
        console.print(page(found))
    lines = [line.strip("│├└─ ") for line in captured.get().splitlines()]
    assert lines[1] == ("PodGroup g  gang, minimum 5 pods  5 of 5 placed  in few topology.kubernetes.io/rack: a, b")
    assert lines[2:5] == [f"{RACK}=a  ranks 0-2", f"{RACK}=b  ranks 3-4", "1 of 4 neighbours apart"]
    assert [line.split()[0] for line in lines[5:]] == ["g-0", "g-1", "g-2", "g-3", "g-4"]
    told = [str(line) for line in answer_lines(root_status(sim.core, root(sim, "g")), alone=True)]
    assert "  ranks      a  0-2" in told
    assert "             b  3-4" in told


def test_many_domains_are_cut_off() -> None:
    standing = Standing(
        [LevelStanding(RACK, "", {f"r{number}": 1 for number in range(20)}, 19, 19)],
        {f"r{number}": str(number) for number in range(20)},
    )
    lines = [str(line) for line in standing_lines(standing)]
    assert len(lines) == 18
    assert lines[16] == "             and 4 domains more"
