"""Put together the file system of Kohort's image: Python, the packages, the libraries that they are linked with.

    python deploy/image/assemble.py --packages DIR --target DIR

Nothing else is in it: no shell, no package manager, no compiler. The Containerfile runs this in its first stage and
takes the result as the whole of the second; tests run it on a machine without container tools and start Kohort in a
chroot. Plain Python, no dependencies. The interpreter that runs this is the one that goes into the image.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

USER = 65532
_PYTHON = "usr/local"  # in the image
_LEFT_OUT = (
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "site-packages",
    "dist-packages",
    "__pycache__",
)
_FILES = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\nkohort:x:{USER}:{USER}:kohort:/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nkohort:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_NEVER_LOADED = re.compile(r"/(tests|testing|f2py|distutils|pydoc_data|_pyrepl)/")
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
# Loaded by name at run time, so that nothing is linked with them.
_BY_NAME = ("libnss_files.so.2", "libnss_dns.so.2", "libgcc_s.so.1")
_TIME = os.environ.get("SOURCE_DATE_EPOCH", "0")


def assemble(packages: Path, target: Path) -> None:
    """Fill an empty folder."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = target / _PYTHON / "lib" / version
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=False)
    installed = library / Path(sysconfig.get_path("purelib")).name  # Debian's own Python looks in dist-packages
    shutil.copytree(packages, installed, ignore=shutil.ignore_patterns("__pycache__", "bin"))
    _compile(library, target)
    program = target / _PYTHON / "bin" / "python3"
    program.parent.mkdir()
    shutil.copy(Path(sys.executable).resolve(), program)
    entry = target / _PYTHON / "bin" / "kohort"
    entry.write_text(f"#!/{_PYTHON}/bin/python3\nfrom kohort.cli.main import main\n\nmain()\n")
    entry.chmod(0o755)
    _libraries(target, program)
    for name, text in _FILES.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    if _AUTHORITIES.is_file():
        place = target / _AUTHORITIES.relative_to("/")
        place.parent.mkdir(parents=True)
        shutil.copy(_AUTHORITIES, place)
    for name in ("tmp", "proc", "dev", "run", "var", "etc/kohort"):
        (target / name).mkdir(parents=True, exist_ok=True)
    (target / "tmp").chmod(0o1777)
    (target / "var" / "run").symlink_to("/run")
    bill = target / "usr" / "share" / "sbom" / "kohort.spdx.json"
    bill.parent.mkdir(parents=True)
    bill.write_text(json.dumps(sbom(installed), indent=1) + "\n")


def _compile(library: Path, target: Path) -> None:
    """To bytecode, which nobody could write later: else each start compiles all that it loads, for more than a second.
    It is never compared with its source, whose times are the builder's."""
    compileall.compile_dir(
        library,
        quiet=2,
        stripdir=str(target),
        prependdir="/",
        rx=_NEVER_LOADED,
        workers=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def _libraries(target: Path, program: Path) -> None:
    """All that the interpreter and the packages are linked with, where the loader looks for it."""
    linked = [program, *target.rglob("*.so"), *target.rglob("*.so.*")]
    found = {path for file in linked for path in _linked_with(file)}
    folders = {path.parent for path in found}
    found |= {folder / name for folder in folders for name in _BY_NAME if (folder / name).is_file()}
    for path in sorted(found):
        if path.is_relative_to(target):  # comes with a package
            continue
        place = target / path.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copy(path.resolve(), place)


def _linked_with(file: Path) -> Iterator[Path]:
    done = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
    for name in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.MULTILINE):
        yield Path(name)


# ---- what is in it


def sbom(packages: Path) -> dict[str, Any]:
    """A software bill of materials (SPDX 2.3): Kohort, the packages, Python."""
    found = [_package(folder / "METADATA") for folder in sorted(packages.glob("*.dist-info"))]
    found.append(_entry("python", sys.version.split()[0], "PSF-2.0", "pkg:generic/python@" + sys.version.split()[0]))
    digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "kohort",
        "documentNamespace": f"https://kohort.dev/sbom/{digest}",
        "creationInfo": {"created": _created(), "creators": ["Tool: kohort-assemble"]},
        "packages": found,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": one["SPDXID"],
            }
            for one in found
        ],
    }


def _created() -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(int(_TIME), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _package(file: Path) -> dict[str, Any]:
    head = HeaderParser().parsestr(file.read_text(errors="replace"))
    name, version = str(head["Name"]), str(head["Version"])
    declared = str(head["License-Expression"] or "NOASSERTION")
    return _entry(name, version, declared, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}")


def _entry(name: str, version: str, declared: str, locator: str) -> dict[str, Any]:
    return {
        "SPDXID": f"SPDXRef-Package-{re.sub('[^A-Za-z0-9.-]', '-', name)}",
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "licenseDeclared": declared,
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, required=True, help="where pip installed Kohort and what it needs")
    parser.add_argument("--target", type=Path, required=True, help="an empty folder")
    asked = parser.parse_args()
    asked.target.mkdir(parents=True, exist_ok=True)
    assemble(asked.packages.absolute(), asked.target.absolute())


if __name__ == "__main__":
    main()
