"""Settings of all tests: a busy machine decides none of them, nor does the width of a terminal."""

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
