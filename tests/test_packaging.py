"""What a user installs: the wheel has all that the commands read; the lock for running is a part of the whole one."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hack import run_lock

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as pip would into a target directory."""
    folder = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    target = folder / "target"
    with zipfile.ZipFile(folder / done.stdout.split()[-1]) as wheel:
        wheel.extractall(target)
    return target


def test_the_wheel_has_the_examples(installed: Path) -> None:
    shipped = {file.relative_to(ROOT / "examples") for file in (ROOT / "examples").rglob("*.yaml")}
    folder = installed / "kohort" / "examples"
    assert {file.relative_to(folder) for file in folder.rglob("*.yaml")} == shipped


def test_the_wheel_has_the_manifests(installed: Path) -> None:
    line = [sys.executable, "-m", "kohort.cli.main", "manifests", "--no-crds"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(line, env=environment, check=True, capture_output=True, text=True, timeout=60)
    assert "kind: Deployment" in done.stdout


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed), "HOME": str(tmp_path)}
    line = [sys.executable, "-m", "kohort.cli.demo", "--only", "together"]
    done = subprocess.run(line, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every promise kept" in done.stdout
    assert f"kubectl apply -f {installed}/kohort/examples/jobset-hello.yaml" in done.stdout


def test_the_lock_for_running_is_current() -> None:
    assert run_lock.RUN_LOCK.read_text() == run_lock.run_lock(), "stale: run python -m hack.run_lock"
    assert run_lock.BUILD_LOCK.read_text() == run_lock.build_lock(), "stale: run python -m hack.run_lock"


def test_the_lock_for_running_has_what_running_needs_and_no_more() -> None:
    text = run_lock.RUN_LOCK.read_text()
    for name in ("aiohttp", "msgspec", "numpy", "rich", "yarl"):
        assert f"\n{name}==" in text
    for name in ("pytest", "mypy", "hypothesis", "kubernetes", "hatchling"):
        assert f"\n{name}==" not in text
    assert text.count("--hash=sha256:") > text.count("==")
