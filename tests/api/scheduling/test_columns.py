"""Printer columns against the tables that real servers answered (spec workload-api 6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.api.scheduling.player import kind_at, rehearse

from kohort.api.kind import Kind, Object
from kohort.api.scheduling.columns import group_columns

RECORDED = Path(__file__).parents[2] / "recorded"
TABLES = [
    pytest.param(case, id=f"{minor}-{case['id']}")
    for minor in ("1.35", "1.36", "1.37")
    for case in json.loads((RECORDED / f"validation-{minor}.json").read_text())["cases"]
    if case["id"].startswith("table-")
]


def _cells(kind: Kind, obj: Object) -> list[Any]:
    shown = ("<age>" if c.type == "date" else c.cell(obj) if c.cell else None for c in kind.columns)
    return [obj["metadata"]["name"], *shown]


@pytest.mark.parametrize("case", TABLES)
def test_recorded_table(case: dict[str, Any]) -> None:
    player = rehearse(case)
    kind = kind_at(case["request"]["path"])
    assert kind is not None
    table = case["answer"]["table"]
    assert ["Name", *(column.name for column in kind.columns)] == [column["name"] for column in table["columns"]]
    objects = {
        meta["name"]: obj
        for (_, plural, _), obj in player.objects.items()
        if plural == kind.plural
        for meta in [obj["metadata"]]
    }
    assert [_cells(kind, objects[row["cells"][0]]) for row in table["rows"]] == [row["cells"] for row in table["rows"]]
    assert case["request"]["path"].endswith("/ring") or len(table["rows"]) == len(objects)


def test_there_are_twelve_tables() -> None:
    assert len(TABLES) == 12


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([], "Pending"),
        ([("PodGroupInitiallyScheduled", "True", "Scheduled")], "Scheduled"),
        ([("PodGroupScheduled", "True", "Scheduled")], "Scheduled"),
        ([("PodGroupInitiallyScheduled", "False", "SchedulerError")], "Unschedulable"),
        ([("PodGroupInitiallyScheduled", "True", "Scheduled"), ("DisruptionTarget", "False", "Moved")], "Moved"),
    ],
)
def test_the_status_of_a_group_in_each_release(conditions: list[tuple[str, str, str]], status: str) -> None:
    listed = [{"type": kind, "status": value, "reason": reason} for kind, value, reason in conditions]
    scheduled = conditions[0][0] if conditions else "PodGroupScheduled"
    (column,) = [one for one in group_columns(scheduled) if one.name == "Status"]
    assert column.cell is not None
    assert column.cell({"status": {"conditions": listed}}) == status
