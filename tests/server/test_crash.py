"""What was acknowledged survives kill -9; what was not is there whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(280)
def test_a_hundred_kills(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.server.crash_driver", str(tmp_path), "100", "7"],
        capture_output=True,
        text=True,
        timeout=270,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) > 100
