"""`kohort envtest path`: a folder with programs named kube-apiserver, etcd and kubectl, as KUBEBUILDER_ASSETS wants it.

The programs are scripts of a few lines that start this installation of Kohort, so the folder is written anew whenever
they would be others. What envtest asks of --help is answered by the shell: it asks at every start.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import kohort
from kohort.api.releases import RELEASES
from kohort.cli.common import UsageError, choice, friendly, write
from kohort.cli.envtest import apiserver, etcd

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPT: Final = """#!/bin/sh
# Written by kohort envtest path.
for one in "$@"; do
  case "$one" in -h|--help) cat <<'HELP'
{help}HELP
  exit 0;; esac
done
exec {command} "$@"
"""
_SERVER: Final = """import sys
sys.path.insert(0, {place!r})
from kohort.cli.envtest.apiserver import main
sys.exit(main({minor!r}, sys.argv[1:]))"""


@friendly
def path(kubernetes: str, bin_dir: str) -> int:
    choice("--kubernetes", kubernetes, tuple(RELEASES))
    base = Path(bin_dir).absolute() if bin_dir else _cache()
    try:
        write(str(installed(base, kubernetes)))
    except OSError as error:
        raise UsageError(f"kohort envtest path: {error}; --bin-dir names another folder") from None
    return 0


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kohort" / "envtest"


def installed(base: Path, minor: str) -> Path:
    """The folder of a minor below `base`; its name says which installation the programs start."""
    programs = scripts(minor)
    digest = hashlib.sha256("\0".join(programs.values()).encode()).hexdigest()[:8]
    folder = base / f"{minor}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in programs.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            _place(folder, name, text)
    _link_kubectl(folder / "kubectl")
    return folder


def scripts(minor: str) -> Mapping[str, str]:
    server = _SERVER.format(place=str(Path(kohort.__file__).parent.parent), minor=minor)
    start = shlex.join([sys.executable, "-P", "-c", server])
    stub = shlex.join([sys.executable, "-I", "-S", str(Path(etcd.__file__))])
    return {
        "kube-apiserver": _SCRIPT.format(help=apiserver.help_text(), command=start),
        "etcd": _SCRIPT.format(help=etcd.HELP, command=stub),
    }


def _place(folder: Path, name: str, text: str) -> None:
    """Whole or not at all: a test may be starting it just now."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    made = Path(draft)
    made.chmod(0o755)
    made.replace(folder / name)


def _link_kubectl(link: Path) -> None:
    found = shutil.which("kubectl")
    if found is None or Path(found).absolute() == link or (link.exists() and link.samefile(found)):
        return
    link.unlink(missing_ok=True)
    link.symlink_to(Path(found).absolute())
