"""Every request of the recorded Job cases: the same verdict, and for refusals the same fields and reasons."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.batch.api.replay import Cluster, after, cases, every_case, gates, play


@pytest.mark.parametrize(("minor", "case"), every_case())
def test_same_answers(minor: str, case: str) -> None:
    for played in play(minor, case):
        label = f"{case}: {played.request['do']} {played.request.get('body')}"
        assert played.answer.code == played.code, f"{label}: {played.answer}"
        if played.causes:
            ours = {(error.field, str(error.kind)) for error in played.answer.causes}
            assert ours == played.causes, label


def whole_jobs() -> list[tuple[str, str, str, dict[str, Any]]]:
    """Jobs that a look showed with their spec, after all requests or before any change."""
    return [
        (minor, case, name, state)
        for minor, case in every_case()
        for look in cases(minor)[case].get("seen", [])
        for name, state in (look.get("jobs") or {}).items()
        if isinstance(state, dict) and "spec" in state and state["metadata"].get("generation") == 1
    ]


def test_there_are_whole_jobs() -> None:
    assert len(whole_jobs()) >= 5


@pytest.mark.parametrize(("minor", "case", "name", "state"), whole_jobs())
def test_same_stored_job(minor: str, case: str, name: str, state: dict[str, Any]) -> None:
    """Defaults, generated labels and selector: what the server kept is what we keep."""
    theirs = Cluster(gates(minor, case), cases(minor)[case]).real(state)
    if ("jobs", name) not in after(minor, case).objects:
        pytest.fail(f"{case} did not create {name} by a request")
    ours = after(minor, case).objects["jobs", name]
    assert ours["spec"] == theirs["spec"]
    assert ours["metadata"]["labels"] == theirs["metadata"]["labels"]


def test_j_01_defaults() -> None:
    """Six Jobs with little in them: defaults, labels, selector."""
    theirs = Cluster(gates("1.37", "J-01"), cases("1.37")["J-01"]).real(cases("1.37")["J-01"]["facts"])
    ours = after("1.37", "J-01").objects
    assert ours["jobs", "tiny"]["spec"]["template"]["spec"] == theirs.pop("template spec of tiny")
    for name, state in theirs.items():
        job = ours["jobs", name]
        template = job["spec"].pop("template")
        assert job["spec"] == state["spec"], name
        assert job["metadata"].get("labels") == state["labels"], name
        assert template["metadata"]["labels"] == state["template labels"], name
