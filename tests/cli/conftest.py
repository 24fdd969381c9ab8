"""Where tests look for sentences, lines are long enough for them; test_terminal.py asks for 80 columns."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
