"""A release is signed, verified by the commands of docs/security.md, and refused where anything in it was changed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hack.release import IDENTITY, SIGNERS, SUMS, ReleaseError, release, sign

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is not here (apt install openssh-client)"
)


def new_key(folder: Path) -> Path:
    folder.mkdir()
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    (folder / "allowed_signers").write_text(f"{IDENTITY} {key.with_suffix('.pub').read_text().strip()}\n")
    return key


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "theirs"):
        new_key(folder / name)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    target = tmp_path_factory.mktemp("release") / "kohort"
    release(target, keys / "ours" / "key", keys / "ours" / "allowed_signers")
    return target


@pytest.fixture
def files(built: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return Path(shutil.copytree(built, tmp_path / "files"))


def commands() -> list[str]:
    """Those of the page, in order."""
    page = (ROOT / "docs" / "security.md").read_text()
    block = page.split("### Verify a release", 1)[1].split("```console\n", 1)[1].split("```", 1)[0]
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def verified(files: Path, signers: Path) -> bool:
    """As a user does it, who has deploy/allowed_signers from the repository beside the files."""
    shutil.copy(signers, files / "allowed_signers")
    return all(
        subprocess.run(one, shell=True, cwd=files, capture_output=True, check=False).returncode == 0
        for one in commands()[:2]
    )


def test_what_is_in_it(built: Path) -> None:
    names = sorted(one.name for one in built.iterdir())
    assert [name for name in names if not name.startswith((SUMS, "kohort-0"))] == ["kohort.spdx.json", "kohort.yaml"]
    assert sorted(name.rpartition(".")[2] for name in names if name.startswith("kohort-0")) == ["gz", "tgz", "whl"]


def test_who_has_the_files_and_the_key_can_verify_them(files: Path, keys: Path) -> None:
    assert verified(files, keys / "ours" / "allowed_signers")


@pytest.mark.parametrize("ending", ["whl", "tar.gz", "tgz", "spdx.json", "yaml", SUMS])
def test_what_was_changed_is_refused(files: Path, keys: Path, ending: str) -> None:
    (changed,) = [one for one in files.iterdir() if one.name.endswith(ending)]
    changed.write_bytes(changed.read_bytes() + b"\n")
    assert not verified(files, keys / "ours" / "allowed_signers")


def test_a_file_that_was_put_in_with_a_checksum_of_its_own_is_refused(files: Path, keys: Path) -> None:
    sign(files, keys / "theirs" / "key", keys / "theirs" / "allowed_signers")
    assert verified(files, keys / "theirs" / "allowed_signers")
    assert not verified(files, keys / "ours" / "allowed_signers")


def test_a_key_that_nobody_knows_signs_nothing(files: Path, keys: Path) -> None:
    with pytest.raises(ReleaseError, match="nobody could verify"):
        sign(files, keys / "theirs" / "key", keys / "ours" / "allowed_signers")
    with pytest.raises(ReleaseError, match="is not in"):
        sign(files, keys / "ours" / "key", SIGNERS)


def test_the_same_commit_gives_the_same_bytes(built: Path, keys: Path, tmp_path: Path) -> None:
    release(tmp_path / "again", keys / "ours" / "key", keys / "ours" / "allowed_signers")
    assert (tmp_path / "again" / SUMS).read_text() == (built / SUMS).read_text()
