"""The image: its file system is put together and run in a chroot; with KOHORT_IMAGE=1 also by a container tool."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.hostnode import sandbox_problem

from kohort import __version__

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file system of the image, put together as the Containerfile does, from the packages of this environment."""
    folder = tmp_path_factory.mktemp("image")
    packages = folder / "packages"
    packages.mkdir()
    site = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for name in _names(ROOT / "requirements-run.lock"):
        _copy_package(site, name, packages)
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    wheel = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    shutil.unpack_archive(folder / wheel.stdout.split()[-1], packages, "zip")
    target = folder / "root"
    script = ROOT / "deploy" / "image" / "assemble.py"
    base = Path(getattr(sys, "_base_executable", sys.executable))
    subprocess.run([base, script, "--packages", packages, "--target", target], check=True)
    return target


def _names(lock: Path) -> list[str]:
    return re.findall(r"^([a-z0-9-]+)==", lock.read_text(), re.MULTILINE)


def _copy_package(site: Path, name: str, target: Path) -> None:
    """The files that pip's record of an installed package lists."""
    pattern = re.sub(r"[-_.]", "[-_.]", name)
    info = next(
        one for one in site.glob("*.dist-info") if re.fullmatch(rf"{pattern}-[^-]+\.dist-info", one.name, re.IGNORECASE)
    )
    for line in (info / "RECORD").read_text().splitlines():
        path = line.split(",")[0]
        if not path.startswith("..") and "__pycache__" not in path:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(site / path, target / path)


def in_image(root: Path, *argv: str, check: bool = True) -> str:
    """As another user, with nothing but the image, which cannot be written to."""
    why = sandbox_problem()
    if why:
        pytest.skip(f"no chroot here: {why}")
    script = 'mount --rbind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec chroot "$@"'
    isolated = ("unshare", "--user", "--map-root-user", "--mount", "--net")
    line = [*isolated, "sh", "-c", script, "sh", str(root), str(root), *argv]
    done = subprocess.run(line, env={"HOME": "/tmp"}, capture_output=True, text=True, timeout=120, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_runs(root: Path) -> None:
    """Said with the result: by what it was run. A build by a container tool fetches packages, and is asked for."""
    if os.environ.get("KOHORT_IMAGE"):
        done = subprocess.run([ROOT / "hack" / "image.sh"], check=True, timeout=800, capture_output=True, text=True)
        print(done.stdout)
    else:
        print("run in a chroot; KOHORT_IMAGE=1 or `make image`: by podman or buildah")
    assert in_image(root, "/usr/local/bin/kohort", "--version") == f"kohort {__version__}\n"


def test_all_that_kohort_run_needs_is_there(root: Path) -> None:
    """Every module and every library that a process loads; then it says that it finds no cluster."""
    said = in_image(root, "/usr/local/bin/kohort", "run", check=False)
    assert "no cluster is configured" in said
    code = "import highspy, numpy, re2, uvloop, cryptography.x509, aiohttp, ssl, sqlite3; print(ssl.OPENSSL_VERSION)"
    assert in_image(root, "/usr/local/bin/python3", "-c", code).startswith("OpenSSL")
    assert "JobSet" in in_image(root, "/usr/local/bin/kohort", "crds", "jobset")


def test_there_is_no_shell_and_nothing_that_installs(root: Path) -> None:
    programs = {
        path.name for folder in ("bin", "usr/bin", "sbin", "usr/local/bin") for path in (root / folder).glob("*")
    }
    assert programs == {"python3", "kohort"}
    assert not list(root.rglob("pip"))
    assert [path for path in root.rglob("*") if path.is_file() and path.stat().st_mode & 0o6000] == []  # setuid


def test_the_bill_of_materials_is_the_lock(root: Path) -> None:
    bill = json.loads((root / "usr" / "share" / "sbom" / "kohort.spdx.json").read_text())
    found = {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["versionInfo"] for one in bill["packages"]}
    lock = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements-run.lock").read_text(), re.MULTILINE))
    assert {name: found.get(name) for name in lock} == lock
    assert set(found) - set(lock) == {"kohort", "python"}


def test_the_containerfile_is_what_the_chart_expects() -> None:
    text = CONTAINERFILE.read_text()
    assert "USER 65532:65532" in text
    assert f'org.opencontainers.image.version="{__version__}"' in text
    assert text.count("--require-hashes") == 2
    assert text.rstrip().splitlines()[-2] == 'ENTRYPOINT ["/usr/local/bin/kohort"]'


def test_nothing_is_compiled_at_a_start(root: Path) -> None:
    """Who runs on a read-only root would do it each time."""
    code = (
        "import sys, kohort.cli.run; "
        "print([name for name, one in sys.modules.items() if (at := getattr(one, '__cached__', None)) "
        "and not __import__('os').path.exists(at)])"
    )
    assert in_image(root, "/usr/local/bin/python3", "-c", code) == "[]\n"
