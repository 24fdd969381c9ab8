"""The runner of upstream's end-to-end tests, without them: names, shares, what is told, what is run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.conformance import pages
from tests.support.conformance.lines import SETS, Line, Spec, match, plain, read, shares
from tests.support.conformance.run import Plan, broken, chosen, run
from tests.support.conformance.suite import Result, Suite, SuiteError

A, B, C = "[sig-apps] Job [Conformance] should run", "[sig-apps] Job should hang", "[sig-node] Pods [Serial] should go"


def test_the_list_is_whole() -> None:
    lines = read()
    assert [sum(line.set == name for line in lines) for name in SETS] == [88, 39, 119]
    assert len({line.name for line in lines}) == 246
    assert len(chosen(lines, sets=("core",), only="")) == 88
    assert {line.set for line in chosen(lines, sets=SETS, only="ResourceQuota should")} == {"wide"}


def test_a_list_that_lost_a_line_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("## core (2): text\n[sig-a] one\n")
    with pytest.raises(ValueError, match="1 lines under 'core', 2 announced"):
        read(path)


def test_tags_are_left_out_of_names() -> None:
    text = "[sig-scheduling] GangScheduling [Feature:GenericWorkload] [Beta] should bind  [Conformance]"
    assert plain(text) == "[sig-scheduling] GangScheduling should bind"


def test_a_name_that_two_tests_have_is_not_found() -> None:
    line = Line("[sig-apps] Job should run", "core")
    assert match([line], [Spec(A, "f")]) == {line: Spec(A, "f")}
    assert match([line], [Spec(A, "f"), Spec("[sig-apps] Job should run", "f")]) == {line: None}


def test_families_stay_together() -> None:
    specs = [Spec(f"{family}{n}", family) for family, count in (("x", 5), ("y", 3), ("z", 2)) for n in range(count)]
    found = shares(specs, 2)
    assert [sorted({spec.family for spec in share}) for share in found] == [["x"], ["y", "z"]]
    assert shares([], 3) == []


def fake(folder: Path, hangs: bool = False) -> Suite:
    """An e2e.test that reports what it was asked for; the hanging test takes the ones after it with it."""

    def spec(text: str, state: str) -> dict[str, Any]:
        first, _, rest = text.partition(" should ")
        failure = {"Message": "\n  it hung\nmore"} if state == "timedout" else {}
        return {
            "ContainerHierarchyTexts": [first],
            "LeafNodeText": f"should {rest}",
            "LeafNodeType": "It",
            "State": state,
            "RunTime": 2_000_000_000,
            "Failure": failure,
        }

    all_specs = [B, A, C] if hangs else [A, C]
    script = f"""#!/usr/bin/env python3
import json, sys
options = dict(one.split("=", 1) for one in sys.argv[1:] if "=" in one)
asked = [one.split("=", 1)[1][2:-3] for one in sys.argv if one.startswith("--ginkgo.focus=")]
specs = {json.dumps({text: [spec(text, state) for state in ("passed", "skipped", "timedout")] for text in all_specs})}
found, hung = [], False
for text, (good, left, bad) in specs.items():
    found.append(left if hung or text not in asked else bad if "hang" in text else good)
    hung = hung or (text in asked and "hang" in text)
open(options["--ginkgo.json-report"], "w").write(json.dumps([{{"SpecReports": found}}]))
"""
    binary = folder / "e2e.test"
    binary.write_text(script)
    binary.chmod(0o755)
    return Suite(binary, folder / "kubectl", folder / "kubeconfig", folder)


def test_every_line_gets_its_result(tmp_path: Path) -> None:
    lines = [Line(plain(A), "core"), Line(plain(C), "core"), Line("[sig-x] nobody", "core")]
    results = run(fake(tmp_path), lines, Plan(), lambda _: None)
    assert [result.state for result in results.values()] == ["passed", "passed", "not found"]
    assert broken(results) == [lines[2]]
    assert (tmp_path / "alone-0.log").exists()  # the serial one had the cluster for itself


def test_what_a_hanging_test_kept_from_running_is_run_again(tmp_path: Path) -> None:
    lines = [Line(plain(B), "core"), Line(plain(A), "core")]
    results = run(fake(tmp_path, hangs=True), lines, Plan(processes=1), lambda _: None)
    assert [result.state for result in results.values()] == ["timedout", "passed"]
    told = "\n".join(pages.table(results))
    assert told.endswith("it hung")
    assert "more" not in told
    assert pages.summary(results, 61.4) == "core: 1 of 2 pass; 61 s"


def test_an_e2e_test_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    suite = fake(tmp_path)
    suite.binary.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(SuiteError, match=r"ended with 3 and left no report; see .*list\.log"):
        suite.specs()


def test_the_page_keeps_what_people_wrote(tmp_path: Path) -> None:
    page = tmp_path / "conformance.md"
    page.write_text("# Title\n\nWords.\n\n<!-- written by make conformance -->\nold\n")
    results = {
        Line("[sig-a] one|two", "core"): Result("passed", 3.2),
        Line("[sig-a] Other", "wide"): Result("timedout", 60),
    }
    pages.write(results, 5.0, page)
    text = page.read_text()
    assert "| [sig-a] Other | timedout | 60 |" in text
    assert text.startswith("# Title\n\nWords.\n\n<!-- written by")
    assert "| [sig-a] one\\|two | passes | 3 |" in text
    assert "old" not in text
