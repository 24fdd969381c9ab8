"""Each numbered scenario of the pages on TrainJob, Grove and LeaderWorkerSet has an end-to-end test of that number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# How many scenarios a page has, and how the tests of its files write a number.
PAGES = {
    "trainjob": (80, r"(?<=_)([1-9]\d*)(?=_)"),
    "grove": (67, r"(?<=_)g(\d+)(?=_)"),
    "lws": (60, r"(?<=_)l_(\d+)(?=_)"),
}
# What no cluster can be brought to show, and the test that does: 47 needs an API server that serves the kinds and
# forgets the field (two of them, of which one has the gate), 63 a mistake of the controller itself.
INSIDE = {
    "grove": {
        47: "tests/kinds/grove/control/test_groups.py::test_g47_a_server_that_drops_the_membership",
        63: "tests/kinds/grove/control/test_groups.py::test_g63_a_pod_without_its_labels_is_not_made",
    },
}


def names(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def numbers(name: str, pattern: str) -> set[int]:
    """Of one test: those at the beginning of its name."""
    words = r"test_((?:(?:g|l_)?\d+_)*)"
    found = re.match(words, name)
    return {int(one) for one in re.findall(pattern, f"_{found[1]}")} if found else set()


@pytest.mark.parametrize("page", PAGES)
def test_scenarios_have_tests(page: str) -> None:
    most, pattern = PAGES[page]
    found = {
        number for file in HERE.glob(f"test_{page}_*.py") for name in names(file) for number in numbers(name, pattern)
    }
    inside = INSIDE.get(page, {})
    assert sorted(set(range(1, most + 1)) - found - set(inside)) == []
    assert sorted(found - set(range(1, most + 1))) == []
    assert not found & set(inside)
    for test in inside.values():
        file, _, name = test.partition("::")
        assert name in set(names(HERE.parents[1] / file))


def test_numbers_are_read_from_names() -> None:
    assert numbers("test_25_26_the_whole_job", PAGES["trainjob"][1]) == {25, 26}
    assert numbers("test_a_job_of_8_nodes", PAGES["trainjob"][1]) == set()
    assert numbers("test_01_multi_node", PAGES["trainjob"][1]) == set()
    assert numbers("test_g12_g13_pods", PAGES["grove"][1]) == {12, 13}
    assert numbers("test_l_50_l_60_a_gang", PAGES["lws"][1]) == {50, 60}
