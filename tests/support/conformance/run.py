"""One run: a fresh cluster, the tests in a few processes side by side, the result of every line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.conformance.lines import Line, Spec, match, shares
from tests.support.conformance.suite import Result, Suite, SuiteError

from kohort.testing.environment.guard import die_with_parent

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0
# Ginkgo limits a run, not a test: a run that holds one up is ended, and what it did not come to is run again.
_SLOWEST_TEST: Final = 150.0
_USUAL_TEST: Final = 20.0
# Some tests wait up to a minute for these on every node before they begin.
_AGENTS: Final = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """`processes`: how many e2e.test side by side; `seconds`: for everything."""

    processes: int = 5
    seconds: float = 1800.0


@contextmanager
def cluster(folder: Path, nodes: int = 3) -> Iterator[Path]:
    """`kohort up` in a process of its own, as people start it; gives its kubeconfig."""
    kubeconfig, log = folder / "kubeconfig", folder / "server.log"
    argv = [sys.executable, "-m", "kohort.cli.main", "up", "--nodes", str(nodes), "--port", "0"]
    argv += ["--data-dir", str(folder / "data"), "--kubeconfig", str(kubeconfig)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, loaded beforehand
        )
    try:
        end = time.monotonic() + _START_SECONDS
        while "kubectl get" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > end:
                raise SuiteError(f"kohort up did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.05)
        yield kubeconfig
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        process.kill()
        process.wait()


def agents(kubectl: Path, kubeconfig: Path) -> None:
    """Put the pods that upstream's clusters have on every node there."""

    def ask(*argv: str, text: str = "") -> str:
        command = [str(kubectl), f"--kubeconfig={kubeconfig}", *argv]
        for left in reversed(range(20)):
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
            if done.returncode == 0:
                break
            if not left:
                raise SuiteError(f"kubectl {argv[0]}: {done.stderr}")
            time.sleep(0.5)  # namespaces may not have their service account yet
        return done.stdout

    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{agent}-{node}", "namespace": "kube-system"},
            "spec": {"nodeName": node, "containers": [{"name": "agent", "image": agent}]},
        }
        for node in ask("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()
        for agent in _AGENTS
    ]
    ask("apply", "-f", "-", text="\n---\n".join(map(json.dumps, pods)))


def run(suite: Suite, lines: Sequence[Line], plan: Plan, say: Say) -> dict[Line, Result]:
    """All lines; those that may disturb others come last, one after the other."""
    end = time.monotonic() + plan.seconds
    found = match(lines, suite.specs())
    specs = [spec for spec in found.values() if spec is not None]
    together = shares([spec for spec in specs if not spec.alone], plan.processes)
    alone = [spec for spec in specs if spec.alone]
    say(f"{len(specs)} tests in {len(together)} processes" + (f", then {len(alone)} alone" if alone else ""))
    results: dict[Spec, Result] = {}
    with ThreadPoolExecutor(len(together) or 1) as pool:
        for share in pool.map(lambda one: _share(suite, f"share-{one[0]}", one[1], end), enumerate(together)):
            results |= share
    results |= _share(suite, "alone", alone, end)
    missing = Result("not found", message="e2e.test has no test of this name, or several")
    return {line: missing if spec is None else results[spec] for line, spec in found.items()}


def _share(suite: Suite, name: str, specs: Sequence[Spec], end: float) -> dict[Spec, Result]:
    """These in one process, and what a test that never ended kept from running in another one."""
    results: dict[Spec, Result] = {}
    left = list(specs)
    for attempt in range(len(left)):
        seconds = min(_SLOWEST_TEST + _USUAL_TEST * len(left), end - time.monotonic())
        if not left or seconds <= 0:
            break
        now = suite.run(f"{name}-{attempt}", left, seconds)
        results |= now
        waiting = [spec for spec in left if now[spec].state == "not run"]
        if len(waiting) == len(left):
            break
        left = waiting
    return {spec: results.get(spec, Result("not run", message="no time left")) for spec in specs}


def chosen(lines: Sequence[Line], *, sets: Collection[str], only: str) -> list[Line]:
    pattern = re.compile(only)
    return [line for line in lines if line.set in sets and pattern.search(line.name)]


def broken(results: Mapping[Line, Result]) -> list[Line]:
    """Lines that do not hold."""
    return [line for line, result in results.items() if not result.passed]
