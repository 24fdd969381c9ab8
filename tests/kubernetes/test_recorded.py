"""Every recorded request, asked again: a real API server still answers as tests/recorded says."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.record import main
from tests.support.recorder import play

from kohort.testing.environment import MINORS, Environment, gates_exactly
from kohort.testing.pytest_plugin import require_binaries

RECORDED = Path(__file__).resolve().parents[1] / "recorded"


def cases_of(minor: str) -> list[dict[str, Any]]:
    document = json.loads((RECORDED / f"validation-{minor}.json").read_text())
    return list(document["cases"])


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.timeout(600)
def test_real_answers_are_as_recorded(minor: str) -> None:
    require_binaries(minor)
    cases = cases_of(minor)
    with Environment(minor, gates=gates_exactly(minor, cases[0]["gates"])) as env:
        answers = {case["id"]: answer for case, answer in play(env, cases)}
    assert len(answers) == len(cases)
    differ = {
        case["id"]: (case["answer"], answers[case["id"]]) for case in cases if answers[case["id"]] != case["answer"]
    }
    assert differ == {}


def test_record_fills_in_and_refreshes_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_binaries("1.37")
    known = {case["id"]: case for case in cases_of("1.37")}
    chosen = [known["s7-001"], known["s7-045"], known["name-14"]]
    stale = [{**case, "answer": {"code": 418}} for case in chosen[:2]]
    new = {key: value for key, value in chosen[2].items() if key != "answer"}
    file = tmp_path / "some.json"
    file.write_text(json.dumps({"about": {"kubernetes": "1.37.0"}, "cases": [*stale, new]}))

    with pytest.raises(SystemExit):
        main(["--check", str(file)])
    assert "3 answers differ from the file: s7-001, s7-045, name-14" in capsys.readouterr().out
    assert json.loads(file.read_text())["cases"][0]["answer"] == {"code": 418}

    main([str(file)])
    written = json.loads(file.read_text())
    assert [case["answer"] for case in written["cases"]] == [case["answer"] for case in chosen]
    assert written["about"]["kubernetes"].startswith("1.37.")
    main(["--check", str(file)])
