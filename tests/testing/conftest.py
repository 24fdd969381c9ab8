"""A world without Go or binaries, and one with a pretended Go: its own code is tested without the real thing."""

import os
import stat
from pathlib import Path

import pytest

FAKE_GO = """#!/bin/sh
# Pretends to be Go: lists two packages, "builds" by writing files, and counts how often it was asked to.
case "$1" in
env) echo go1.99 ;;
list)
  printf 'example.org/a stale dependency: b\\nexample.org/b build ID mismatch\\n\\n'
  printf 'example.org/c not installed but available in build cache\\n'
  ;;
test)
  echo test >> "$FAKE_GO_LOG"
  while [ "$1" != -o ]; do shift; done
  printf '#!/bin/sh\\n' > "$2"
  ;;
build)
  echo run >> "$FAKE_GO_LOG"
  while [ -n "$1" ] && [ "$1" != -o ]; do shift; done
  target=$2
  echo example.org/a >&2
  sleep "${FAKE_GO_SECONDS:-0}"
  echo example.org/b >&2
  if [ -n "$FAKE_GO_FAILS" ]; then echo "example.org/b: cannot compile this" >&2; exit 1; fi
  if [ -z "$target" ]; then exit 0; fi # only for its cache
  for name in $FAKE_GO_MAKES; do
    printf '#!/bin/sh\\necho Kubernetes v1.37.1\\n' > "$target$name"
    chmod +x "$target$name"
  done
  ;;
esac
"""


@pytest.fixture
def no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No Go, no assets, an empty cache; gives the cache's folder."""
    empty = tmp_path / "empty-bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache" / "kohort" / "kubernetes"


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pretended Go that makes every command; gives the file that has one line per build."""
    folder = tmp_path / "go-bin"
    folder.mkdir()
    write_executable(folder / "go", FAKE_GO)
    log = tmp_path / "go-runs"
    log.touch()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_GO_LOG", str(log))
    monkeypatch.setenv("FAKE_GO_MAKES", "etcd kube-apiserver kube-controller-manager kube-scheduler kubectl")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return log


def write_executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
