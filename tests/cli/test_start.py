"""What `kohort up --bare` loads before it is ready, and what it does not: the time of a start is mostly imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Each of them costs more than a hundredth of a second, or is the work of somebody else.
HEAVY = (
    "aiohttp.client",
    "aiohttp.web_app",
    "importlib.metadata",
    "kohort.api.crd",
    "kohort.kinds.grove.api",
    "kohort.kinds.jobset.api",
    "kohort.kinds.leaderworkerset.api",
    "kohort.kinds.trainer.api",
    "kohort.controllers",
    "kohort.embedded",
    "kohort.gang",
    "kohort.library",
    "kohort.place",
    "kohort.scheduler",
    "kohort.cel",
    "kohort.server.crd.custom_kind",
    "kohort.server.crd.structural",
    "kohort.sim",
    "numpy",
    "prometheus_client",
    "pydantic",
    "rich",
    "yaml",
)


def _loaded(*arguments: str, until: str) -> set[str]:
    """Modules that a command imported until it said something."""
    command = [sys.executable, "-X", "importtime", "-m", "kohort.cli.main", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        listed = process.stdout.readline()
        process.terminate()
        errors = process.stderr.read()
    assert until in listed, errors
    return {line.rpartition("|")[2].strip() for line in errors.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("memory", [True, False])
def test_a_bare_server_loads_nothing_heavy(tmp_path: Path, memory: bool) -> None:
    arguments = ["up", "--bare", "--port", "0", "--data-dir", str(tmp_path), *(["--in-memory"] if memory else [])]
    loaded = _loaded(*arguments, until="ready after")
    assert "kohort.server.http" in loaded
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))


def test_help_loads_nothing_of_the_work() -> None:
    loaded = _loaded("translate", "--help", until="Usage")
    ours = {name for name in loaded if name.partition(".")[0] == "kohort"}
    assert ours <= {"kohort", "kohort.cli", "kohort.cli.main"}
    assert loaded.isdisjoint(HEAVY), sorted(loaded & set(HEAVY))


LATER = """
import sys
from kohort.cli import lean

lean.serving()
from aiohttp.web_protocol import RequestHandler
assert "aiohttp.client" not in sys.modules, "the client is loaded"

import aiohttp
assert aiohttp.web_protocol.RequestHandler is RequestHandler
assert aiohttp.ClientSession.__module__ == "aiohttp.client"
from aiohttp import ClientTimeout, web
assert web.RequestHandler is RequestHandler if hasattr(web, "RequestHandler") else True
assert set(aiohttp.__all__) <= set(dir(aiohttp))
assert not hasattr(aiohttp, "no_such_thing")
lean.serving()
"""


def test_the_rest_of_aiohttp_is_there_for_whoever_asks() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
