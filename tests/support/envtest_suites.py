"""Other people's integration tests on Kohort, through envtest: how many pass, package by package.

    make envtest-suites SUITES="../jobset ../lws"       # checkouts of operators in Go
    python -m tests.support.envtest_suites --nice 15 ../jobset

Every package whose tests use controller-runtime's envtest is built and run alone, one after the other. Needs Go.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kohort.api.releases import NEWEST
from kohort.cli.envtest import assets

_USES = '"sigs.k8s.io/controller-runtime/pkg/envtest"'
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SPECS = re.compile(r"(\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped")
_SPEC = re.compile(r"^\s*\[(?:FAIL|PANICKED!|TIMEDOUT)\] (.+)$")
_TEST = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)")


@dataclass(slots=True)
class Outcome:
    """Of one package: specs where Ginkgo counts them, else Go's own tests. `why`: it did not come so far."""

    package: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    names: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def ran(self) -> int:
        return self.passed + self.failed


def packages(folder: Path) -> list[Path]:
    """Folders below this one whose tests start an envtest environment; not those of modules that it carries along."""
    found = {
        file.parent
        for file in folder.rglob("*_test.go")
        if "vendor" not in file.relative_to(folder).parts and _USES in file.read_text(errors="replace")
    }
    return sorted(found)


def read(package: str, lines: Iterable[str]) -> Outcome:
    """What `go test -v` printed."""
    found, last = Outcome(package), ""
    specs = False
    go: dict[str, list[str]] = {"PASS": [], "FAIL": [], "SKIP": []}
    for line in (_COLOURS.sub("", one).rstrip() for one in lines):
        last = line or last
        if counted := _SPECS.search(line):
            specs = True
            found.passed += int(counted[1])
            found.failed += int(counted[2])
            found.skipped += int(counted[4])
        elif named := _SPEC.match(line):
            if named[1] not in found.names:
                found.names.append(named[1])
        elif tested := _TEST.match(line):
            go[tested[1]].append(tested[2])
    if not specs:
        found.passed, found.failed, found.skipped = (len(go[sort]) for sort in ("PASS", "FAIL", "SKIP"))
        found.names = go["FAIL"]
    if not found.ran and not found.skipped:
        found.why = last or "nothing was printed"
    return found


def run(folder: Path, package: Path, programs: Path, nice: int, log: Path) -> Outcome:
    environment = {
        **os.environ,
        "KUBEBUILDER_ASSETS": str(programs),
        "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": "2m",
        "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT": "false",
    }
    name = f"./{package.relative_to(folder)}"
    command = ["nice", "-n", str(nice), "go", "test", "-count=1", "-v", "-timeout=60m", name]
    with log.open("w") as output:
        subprocess.run(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    return read(f"{folder.name}/{package.relative_to(folder)}", log.read_text(errors="replace").splitlines())


def table(found: Iterable[Outcome]) -> Iterator[str]:
    rows = list(found)
    yield f"{'package':<56}{'passed':>8}{'failed':>8}{'skipped':>9}"
    for one in rows:
        yield f"{one.package:<56}{one.passed:>8}{one.failed:>8}{one.skipped:>9}{'  ' + one.why if one.why else ''}"
        yield from (f"  failed: {name}" for name in one.names)
    passed, ran = sum(one.passed for one in rows), sum(one.ran for one in rows)
    yield f"{passed} of {ran} pass" + (f" ({passed / ran:.1%})" if ran else "")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folders", metavar="DIR", nargs="+", type=Path, help="a checkout with a go.mod")
    asked.add_argument("--nice", type=int, default=0)
    asked.add_argument("--kubernetes", default=NEWEST)
    asked.add_argument("--only", default="", help="packages whose path has this in it")
    given = asked.parse_args()
    logs = Path(tempfile.mkdtemp(prefix="kohort-envtest-"))
    programs, found = assets.installed(logs / "programs", given.kubernetes), []
    for folder in (one.resolve() for one in given.folders):
        for package in packages(folder):
            if given.only in str(package.relative_to(folder)):
                log = logs / f"{folder.name}-{'-'.join(package.relative_to(folder).parts)}.log"
                print(f"{folder.name}/{package.relative_to(folder)}: {log}", flush=True)
                found.append(run(folder, package, programs, given.nice, log))
    print("\n".join(table(found)))
    return 1 if any(one.failed or one.why for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
