"""The command e2e.test: which tests it has, and running some of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.conformance.lines import Spec

from kohort.testing.environment.guard import die_with_parent

# Ginkgo ends the test under way, cleans up and writes its report; after that much more it is killed.
_GRACE_SECONDS: Final = 60.0


class SuiteError(Exception):
    """e2e.test did not run at all."""


@dataclass(frozen=True, slots=True)
class Result:
    """`state`: passed, failed, timedout, skipped (by the test itself), or not run."""

    state: str
    seconds: float = 0.0
    message: str = ""

    @property
    def passed(self) -> bool:
        return self.state == "passed"


@dataclass(frozen=True, slots=True)
class Suite:
    """e2e.test against the cluster of a kubeconfig; logs and reports go to the folder."""

    binary: Path
    kubectl: Path
    kubeconfig: Path
    folder: Path

    def specs(self) -> list[Spec]:
        """All tests that it has."""
        reports = self._ginkgo("list", ["--ginkgo.dry-run"], 300.0)
        return [Spec(_text(one), one["ContainerHierarchyTexts"][0]) for one in reports]

    def run(self, name: str, specs: Sequence[Spec], seconds: float) -> dict[Spec, Result]:
        """Run these, one after the other, for so long at most."""
        focus = [f"--ginkgo.focus=\\Q{spec.text}\\E$" for spec in specs]
        reports = {_text(one): one for one in self._ginkgo(name, focus, seconds)}
        return {spec: _result(reports.get(spec.text)) for spec in specs}

    def _ginkgo(self, name: str, options: Iterable[str], seconds: float) -> list[dict[str, Any]]:
        report, log = self.folder / f"{name}.json", self.folder / f"{name}.log"
        argv = [
            str(self.binary),
            f"--kubeconfig={self.kubeconfig}",
            f"--kubectl-path={self.kubectl}",
            "--kube-api-content-type=application/json",
            "--provider=skeleton",
            "--allowed-not-ready-nodes=-1",
            "--minStartupPods=0",
            "--num-nodes=3",
            f"--ginkgo.json-report={report}",
            f"--ginkgo.timeout={seconds:.0f}s",
            "--ginkgo.grace-period=20s",
            "--ginkgo.no-color",
            "--ginkgo.v",
            *options,
        ]
        code = _run(argv, log, self.folder, seconds + _GRACE_SECONDS)
        try:
            whole = json.loads(report.read_text())
        except (OSError, ValueError):
            raise SuiteError(f"e2e.test ended with {code} and left no report; see {log}") from None
        return [one for suite in whole for one in suite["SpecReports"] or () if one["LeafNodeType"] == "It"]


def _run(argv: Sequence[str], log: Path, folder: Path, seconds: float) -> int | str:
    # kubectl keeps caches in the home folder; they are of this cluster only.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, loaded beforehand
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return "a kill"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _text(report: dict[str, Any]) -> str:
    return " ".join([*report["ContainerHierarchyTexts"], report["LeafNodeText"]])


def _result(report: dict[str, Any] | None) -> Result:
    if report is None or (report["State"] == "skipped" and not report.get("Failure")):
        return Result("not run")
    message = (report.get("Failure") or {}).get("Message") or ""
    return Result(report["State"], report["RunTime"] / 1e9, message)
