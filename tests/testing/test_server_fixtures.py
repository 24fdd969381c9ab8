"""The fixtures that others use: the example of the page runs, options are heard, two tests do not share a namespace."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.kube.client import Client
from kohort.testing.server import ServerThread

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def run(folder: Path, text: str, *options: str) -> str:
    (folder / "pytest.ini").write_text(
        "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"
    )
    (folder / "conftest.py").write_text('pytest_plugins = ["kohort.testing.pytest_plugin"]\n')
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_the_example_of_the_page(tmp_path: Path) -> None:
    example = next(
        one for one in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "kohort_client" in one
    )
    assert "3 passed" in (said := run(tmp_path, example)), said


OPTIONS = """
def version(server):
    async def ask(client):
        return await client.calls.call("GET", "/version")
    return server.run(ask)

def test_it(kohort_server, kohort_namespace):
    assert b'"minor":"36"' in version(kohort_server)
    assert kohort_namespace.startswith("test-it-")
"""


def test_options_choose_the_release_and_its_gates(tmp_path: Path) -> None:
    assert "1 passed" in (said := run(tmp_path, OPTIONS, "--kohort-kubernetes", "1.36")), said
    said = run(tmp_path, OPTIONS, "--kohort-kubernetes=1.36", "--kohort-feature-gates=Nonsense=true")
    assert "Nonsense" in said
    assert "1 error" in said


def test_each_test_has_a_namespace_of_its_own_in_one_server(tmp_path: Path) -> None:
    text = (
        "seen = set()\n"
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1, 2, 3])\n"
        "def test_a(kohort_namespace, kohort_server, n):\n"
        "    seen.add((kohort_namespace, kohort_server.url))\n"
        "    assert len(seen) == n and len({url for _, url in seen}) == 1\n"
    )
    assert "3 passed" in (said := run(tmp_path, text)), said


async def test_a_server_thread_leaves_nothing() -> None:
    with ServerThread() as server:
        folder = server.kubeconfig.parent
        assert folder.stat().st_mode & 0o077 == 0
        async with Client.connect(server.kubeconfig) as client:
            assert (await client.resource("namespaces").get("default"))["metadata"]["name"] == "default"
    assert not folder.exists()


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(ValueError, match="Nonsense"), ServerThread(gates={"Nonsense": True}):
        pass
