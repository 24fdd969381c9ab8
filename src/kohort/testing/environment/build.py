"""Building a recipe with Go: counted, estimated, and finished or not there at all.

Everything is built in a folder beside the final one; the manifest is written last and the folder renamed at the end,
so that an interrupted build can never look finished. A lock per version makes the second of two builders wait for,
and then use, what the first one made.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from kohort.testing.environment.guard import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kohort.testing.environment.recipe import Recipe

    Report = Callable[[str], None]

MANIFEST = "manifest.json"
_REPORT_SECONDS = 10.0
# Measured with nothing cached on two cores.
_PACKAGES_PER_SECOND = 5.0
_LINK_SECONDS_PER_COMMAND = 15.0
# Nobody debugs these, and without debug information a build takes a sixth less time and a fifth less disk.
_NO_DEBUG = ("-gcflags=all=-dwarf=false",)


class BuildError(Exception):
    """Go could not build it."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def finished(folder: Path, digest: str | None = None) -> dict[str, Any] | None:
    """The manifest of a finished build whose files are all there and, if asked, of this very recipe; else None."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        if digest is not None and manifest["recipe"] != digest:
            return None
        whole = all((folder / name).stat().st_size == size for name, size in manifest["files"].items())
    except (OSError, ValueError, KeyError):
        return None
    return manifest if whole else None


def build(recipe: Recipe, cache: Path, *, report: Report = say) -> Path:
    """The folder with the recipe's commands, building them first unless somebody has."""
    final = cache / recipe.label
    digest = recipe.digest()
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f".{recipe.label}.lock", f"{recipe.name} {recipe.version}", report):
        if finished(final, digest):
            return final
        for left in cache.glob(f".building-{recipe.label}-*"):  # of builders that died: we hold their lock
            shutil.rmtree(left, ignore_errors=True)
        workplace = cache / f".building-{recipe.label}-{os.getpid()}"
        workplace.mkdir()
        try:
            seconds = _go_build(recipe, workplace, report)
            _write_manifest(recipe, workplace, digest, seconds)
            if final.exists():
                final.rename(workplace.with_name(workplace.name + "-old"))
            workplace.rename(final)
        finally:
            for left in cache.glob(f".building-{recipe.label}-*"):
                shutil.rmtree(left, ignore_errors=True)
    report(f"{recipe.name} {recipe.version}: built in {_clock(seconds)}, in {final}")
    return final


@contextlib.contextmanager
def _locked(path: Path, what: str, report: Report) -> Iterator[None]:
    # The kernel drops the lock with its holder, so a killed build never blocks the next one.
    with path.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{what}: somebody else is building it; waiting for them")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go_environment() -> dict[str, str]:
    # GOFLAGS of the caller could change what is built; a cgo compiler must not be needed.
    return dict(os.environ) | {
        "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
        "CGO_ENABLED": "0",
        "GOWORK": "off",
    }


def _go_build(recipe: Recipe, target: Path, report: Report) -> float:
    began = time.monotonic()
    what = f"{recipe.name} {recipe.version}"
    report(f"{what}: fetching and counting modules")
    stale = _to_compile(recipe)
    linking = len(recipe.commands) * _LINK_SECONDS_PER_COMMAND
    estimate = len(stale) / _PACKAGES_PER_SECOND + linking
    count = f"{len(stale)} packages to compile, {len(recipe.commands)} commands to link"
    report(f"{what}: {count}, about {_clock(estimate)}")

    def go(*argv: str) -> None:
        _go(recipe, argv, lambda process: _follow(process, what, len(stale), linking, report))

    flags = [*_NO_DEBUG, "-ldflags", recipe.ldflags]
    if recipe.test:
        if stale:  # `go test -c` does not name what it compiles
            go("build", "-v", *flags, *stale)
        go("test", "-c", "-vet=off", *flags, "-o", str(target / recipe.commands[0]), *recipe.packages)
    else:
        go("build", "-v", *flags, "-o", f"{target}/", *recipe.packages)
    return time.monotonic() - began


def _go(recipe: Recipe, argv: tuple[str, ...], follow: Callable[[subprocess.Popen[str]], list[str]]) -> None:
    process = subprocess.Popen(
        ["go", *argv],
        cwd=recipe.folder,
        env=_go_environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, loaded beforehand
    )
    try:
        errors = follow(process)
        code = process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        if process.stderr is not None:
            process.stderr.close()
    if code != 0:
        what = f"{recipe.name} {recipe.version}: `go {argv[0]}` failed with exit code {code}"
        raise BuildError(what + ":\n" + "\n".join(errors[-30:]))


def _to_compile(recipe: Recipe) -> list[str]:
    """The packages that Go's build cache does not have yet (all of them, the first time)."""
    form = "{{if and .Stale (not .ForTest) (not .Standard)}}{{.ImportPath}} {{.StaleReason}}{{end}}"
    argv = ["go", "list", "-deps", *(["-test"] if recipe.test else []), *_NO_DEBUG, "-f", form, *recipe.packages]
    done = subprocess.run(argv, cwd=recipe.folder, env=_go_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{recipe.name} {recipe.version}: `go list` failed:\n{done.stderr.strip()}")
    stale = [line for line in done.stdout.splitlines() if line and "build cache" not in line]
    return [name for name in (line.split()[0] for line in stale) if not name.endswith(".test")]


def _follow(process: subprocess.Popen[str], what: str, total: int, linking: float, report: Report) -> list[str]:
    """Count the packages that `go build -v` names as it compiles them; everything else it says is an error text."""
    assert process.stderr is not None
    began = last = time.monotonic()
    compiled = 0
    errors: list[str] = []
    for line in process.stderr:
        text = line.rstrip()
        if " " in text or text.startswith("#"):
            errors.append(text)
        elif text:
            compiled += 1
        now = time.monotonic()
        if now - last >= _REPORT_SECONDS:
            last = now
            left = (total - compiled) * (now - began) / max(compiled, 1) + linking
            done = f"{compiled} of {max(total, compiled)} packages"
            report(f"{what}: {done}, {_clock(now - began)}, about {_clock(left)} left")
    return errors


def _write_manifest(recipe: Recipe, folder: Path, digest: str, seconds: float) -> None:
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout.strip()
    manifest = {
        "name": recipe.name,
        "version": recipe.version,
        "recipe": digest,
        "go": go,
        "seconds": round(seconds, 1),
        "files": {name: (folder / name).stat().st_size for name in recipe.commands},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
