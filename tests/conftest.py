"""Settings of all tests: a busy machine decides none of them, nor does the width of a terminal."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "kohort", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kohort")


@pytest.fixture(autouse=True)
def long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long enough for the sentences that tests look for; tests/cli/test_terminal.py asks for 80 columns."""
    monkeypatch.setenv("COLUMNS", "1000")


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """In CI nobody watches: dots of tests that passed would hide what is said of those that did not."""
    quiet = os.environ.get("CI", "").lower() in {"1", "true"}
    passed = report.passed and getattr(report, "when", "") == "call"
    return ("passed", "", "PASSED") if quiet and passed else None
