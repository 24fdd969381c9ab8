"""Make a release: the files that people download, their checksums, and one signature over those.

make release KEY=~/.ssh/kohort-release            # into dist/kohort-VERSION; KEY is an SSH key, also one on a token
make release KEY=… PGP_KEY='Kohort releases'      # the chart has a provenance file for `helm verify`, too

What is there: wheel, source, chart, the manifests for people without Helm, the bill of materials (SPDX), SHA256SUMS and
its signature. The same commit gives the same bytes. Who may sign is in deploy/allowed_signers: a key that is not there
is refused, since nobody could verify what it signed. docs/security.md says how.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SIGNERS: Final = ROOT / "deploy" / "allowed_signers"
IDENTITY: Final = "releases@kohort.dev"
NAMESPACE: Final = "kohort-release"  # a signature for something else is none for a release
SUMS: Final = "SHA256SUMS"


class ReleaseError(Exception):
    """Said to whoever makes it."""


def moment() -> str:
    """Of the commit, so that everybody builds the same bytes."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told:
        return told
    argv = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def packages(target: Path, epoch: str) -> tuple[Path, Path]:
    """Wheel and source."""
    code = (
        "import sys; from hatchling.build import build_sdist, build_wheel; "
        "print(build_wheel(sys.argv[1])); print(build_sdist(sys.argv[1]))"
    )
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    argv = [sys.executable, "-c", code, str(target)]
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    wheel, source = done.stdout.split()[-2:]
    return target / wheel, target / source


def chart(target: Path, epoch: str) -> Path:
    """As `helm package` does it, with the same bytes each time."""
    folder = ROOT / "deploy" / "chart"
    version = _field(folder / "Chart.yaml", "version")
    made = target / f"kohort-{version}.tgz"
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            entry = tarfile.TarInfo(f"kohort/{path.relative_to(folder)}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, int(epoch), 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    made.write_bytes(gzip.compress(raw.getvalue(), mtime=int(epoch)))
    return made


def _field(file: Path, name: str) -> str:
    found = re.search(rf"^{name}: (\S+)$", file.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def bill(target: Path, wheel: Path, epoch: str) -> Path:
    """What the image holds, by the metadata of exactly the locked releases."""
    os.environ["SOURCE_DATE_EPOCH"] = epoch
    from deploy.image.assemble import sbom

    with tempfile.TemporaryDirectory() as folder:
        for name, metadata in _metadata(wheel):
            place = Path(folder) / f"{name}.dist-info"
            place.mkdir()
            (place / "METADATA").write_text(metadata)
        made = target / "kohort.spdx.json"
        made.write_text(json.dumps(sbom(Path(folder)), indent=1) + "\n")
        return made


def _metadata(wheel: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        yield "kohort", archive.read(name).decode()
    for name, version in re.findall(
        r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements-run.lock").read_text(), re.MULTILINE
    ):
        found = importlib.metadata.distribution(name)
        if found.version != version:
            raise ReleaseError(f"{name}: {found.version} is installed, {version} is locked; run `make setup`")
        yield name, found.read_text("METADATA") or ""


def provenance(package: Path, who: str) -> Path:
    """What `helm verify` reads: the chart's own description and the checksum of the package, signed with OpenPGP."""
    described = (ROOT / "deploy" / "chart" / "Chart.yaml").read_text()
    text = f"{described}\n...\nfiles:\n  {package.name}: sha256:{_digest(package)}\n"
    made = package.with_name(f"{package.name}.prov")
    argv = ["gpg", "--batch", "--yes", "--digest-algo", "SHA512", "--local-user", who, "--output", str(made)]
    subprocess.run([*argv, "--clear-sign"], input=text, text=True, check=True)
    return made


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def sign(folder: Path, key: Path, signers: Path) -> None:
    """Checksums of all that is in the folder, and their signature."""
    public = subprocess.run(["ssh-keygen", "-y", "-f", str(key)], capture_output=True, text=True, check=False)
    words = public.stdout.split()[:2]
    if not words:
        raise ReleaseError(f"{key}: {public.stderr.strip()}")
    known = [line.split() for line in signers.read_text().splitlines() if line and not line.startswith("#")]
    if not any(words == line[-len(words) :] or words == line[-3:-1] for line in known):
        raise ReleaseError(f"{key}: its public key is not in {signers}: nobody could verify what it signs")
    lines = [f"{_digest(file)}  {file.name}\n" for file in sorted(folder.iterdir()) if not file.name.startswith(SUMS)]
    sums = folder / SUMS
    sums.write_text("".join(lines))
    sums.with_suffix(".sig").unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(sums)], check=True)


def release(target: Path, key: Path, signers: Path = SIGNERS, pgp: str = "") -> list[str]:
    """The names of what was made."""
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    epoch = moment()
    wheel, _ = packages(target, epoch)
    package = chart(target, epoch)
    if pgp:
        provenance(package, pgp)
    shutil.copy(ROOT / "deploy" / "kustomize" / "kohort.yaml", target / "kohort.yaml")
    bill(target, wheel, epoch)
    sign(target, key, signers)
    return sorted(one.name for one in target.iterdir())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--key", type=Path, required=True, help="the SSH key that signs")
    parser.add_argument("--pgp-key", default="", help="an OpenPGP key, for the chart's provenance")
    parser.add_argument("--signers", type=Path, default=SIGNERS, help="who may")
    parser.add_argument("--target", type=Path)
    asked = parser.parse_args()
    version = _field(ROOT / "deploy" / "chart" / "Chart.yaml", "version")
    target = asked.target or ROOT / "dist" / f"kohort-{version}"
    try:
        names = release(target, asked.key.expanduser(), asked.signers, asked.pgp_key)
    except (ReleaseError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"error: {error}\n{getattr(error, 'stderr', None) or ''}")
        return 1
    sys.stdout.write("".join(f"{target / name}\n" for name in names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
