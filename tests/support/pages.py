"""The console blocks of README and docs, as commands with the output that the page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK: Final = re.compile(r"```console\n(.*?)```", re.DOTALL)

# Verbs that need no server, and run wherever the tests run.
ALONE: Final = ("kohort translate", "kohort validate", "kohort convert", "kohort --version")
# What needs kubectl and a cluster: tests/kubernetes/test_pages.py follows these pages from the first block to the last.
SESSIONS: Final = ("README.md", "companion.md")
# What no test of a page runs, and why.
ELSEWHERE: Final = {
    "make ": "is what runs the tests, or takes minutes; tests/test_names.py looks whether the target is there",
    "python3 -m venv": "installs packages; tests/test_packaging.py builds the wheel and runs from it",
    "python -m kohort.testing.environment": "starts real Kubernetes; tests/testing does",
    "hack/kubernetes/generate.py": "asks for new releases of Kubernetes",
    "python -m tests.support.record": "records answers of real Kubernetes anew",
    "KOHORT_SEED=": "runs a part of the tests for longer",
    "python -m kohort.scheduler": "runs until it is stopped; tests/kubernetes has it as a process",
    "kohort crds": "is for a real cluster; tests/kubernetes/test_run.py does it",
    "kohort run": "is for a real cluster; tests/kubernetes/test_run.py does it",
    "kohort simulate": "writes a report; tests/simulate does",
    "kohort plan": "asks a cluster; tests/plan does",
    "kohort envtest": "is for the tests of an operator in Go; tests/testing has them",
    "KUBEBUILDER_ASSETS=": "is for the tests of an operator in Go",
    "go test": "is for the tests of an operator in Go",
}
OTHER_PAGES: Final = {
    "run-on-kubernetes.md": "needs a real cluster; tests/kubernetes/test_run.py follows it",
    "install.md": "needs a real cluster and helm; tests/kubernetes/test_chart_page.py follows it",
    "security.md": "verifies a release; tests/test_release.py makes one and follows it",
    "dashboard.md": "serves people until it is stopped; tests/web asks it, and drives a browser through it",
}


@dataclass(frozen=True, slots=True)
class Step:
    page: str
    command: str
    output: str

    @property
    def reason(self) -> str:
        """Why no test of a page runs it; empty: one does."""
        if self.page in OTHER_PAGES:
            return OTHER_PAGES[self.page]
        if self._described:
            return ""
        return next((why for start, why in ELSEWHERE.items() if self.command.startswith(start)), "")

    @property
    def alone(self) -> bool:
        return not self.reason and (self.command.startswith(ALONE) or self._described)

    @property
    def _described(self) -> bool:
        """A plan for a cluster that a file describes."""
        return self.command.startswith("kohort plan ") and " --cluster " in self.command

    def shown_in(self, printed: str) -> bool:
        """Whether this is what the page shows. Ages, moments and the ends of generated names are another each time, and
        with them where a line of 80 columns breaks."""
        return re.search(_pattern(self.output), printed, re.DOTALL) is not None


def steps() -> list[Step]:
    found = []
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text()):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append(Step(page.name, command.strip(), output.strip()))
    return found


def _pattern(output: str) -> str:
    parts = (re.escape(part) for part in output.split("…\n"))
    text = ".*".join(parts)
    text = re.sub(r"\d{4}\\-\d\d\\-\d\dT\d\d:\d\d:\d\dZ", r"\\S+", text)
    text = re.sub(r"(?<![\w.])\d+(?:s|m\d+s)(?=\n|\\\n|$)", r"[0-9a-z]+", text)  # the column AGE
    text = re.sub(r"\d+\\ (?:s|min)\b", r"\\d+ (?:s|min)", text)
    text = re.sub(r"\\-[a-z0-9]{5}(?=\\ |\s)", r"\\-[a-z0-9]{5}", text)
    return re.sub(r"(?:\\ |\\\n)+", r"\\s+", text)
