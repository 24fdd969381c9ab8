"""A real Kubernetes with unmodified operators, virtual nodes and `kohort run`, for the time of a `with` block."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from tests.support.operators.managers import Manager, managers, started
from tests.support.operators.recipes import OPERATORS

from kohort.testing.environment.environment import Environment

Json = dict[str, Any]
WITHOUT_GROUPS = {  # an older cluster: none of the Workload API
    "GenericWorkload": False,
    "TopologyAwareWorkloadScheduling": False,
    "CompositePodGroup": False,
    "WorkloadWithJob": False,
    "DRAWorkloadResourceClaims": False,
}
SAMPLES = Path(__file__).parents[2] / "grouping" / "samples"


class Bed:
    """`operators`: names of those that run. `gates`: of Kubernetes."""

    def __init__(self, *operators: str, gates: Mapping[str, bool] | None = None, kubernetes: str = "1.37") -> None:
        self.env = Environment(kubernetes, with_=("kcm",), gates=gates)
        self._names = operators
        self._managers: list[Manager] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._scratch = tempfile.TemporaryDirectory(prefix="kohort-operators-")
        self.folder = Path(self._scratch.name)

    def __enter__(self) -> Bed:
        self.env.start()
        try:
            for manager in managers(self._names, self.env, self.folder):
                self._managers.append(manager)
                manager.start()
        except BaseException:
            self.close(failed=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(failed=error is not None)

    def close(self, *, failed: bool = False) -> None:
        for name in list(self._processes):
            self.end(name)
        for manager in self._managers:
            if failed:
                print(f"---- {manager.operator.name}\n{manager.tail()}", file=sys.stderr)
            manager.stop()
        self.env.stop(failed=failed)
        self._scratch.cleanup()

    # ---- our own commands

    def kohort(self, *args: str) -> str:
        """A command that ends; what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "kohort.cli.main", *args],
            capture_output=True, text=True, timeout=120, check=False, env=self._environment(),
        )  # fmt: skip
        assert done.returncode == 0, f"kohort {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout

    def begin(self, name: str, *args: str) -> None:
        """A command that runs on."""
        log = (self.folder / f"{name}.log").open("wb")
        with log:
            argv = [sys.executable, "-m", "kohort.cli.main", *args]
            self._processes[name] = started(argv, log, self._environment())

    def end(self, name: str) -> None:
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def run(self) -> None:
        """`kohort run`, working when this returns."""
        self.begin("run", "run", "--listen", "127.0.0.1:0")
        self.until(lambda: "working" in self.log("run"), "kohort run works", 90)

    def nodes(self, count: int, cpu: str = "4", name: str = "virtual") -> None:
        self.begin(name, "nodes", "--count", str(count), "--cpu", cpu, "--name", name)
        self.until(lambda: len(self.items("nodes")) >= count, f"{count} nodes", 60)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.env.kubeconfig)}

    # ---- objects

    def apply(self, *documents: Json) -> None:
        text = yaml.safe_dump_all([for_kohort(one) for one in documents])
        errors: list[str] = []

        def done() -> bool:  # an operator's webhook takes a moment to serve
            answer = self.env.kubectl("apply", "-f", "-", stdin=text, check=False)
            errors.append(answer.stderr)
            assert "webhook" in answer.stderr or not answer.returncode, answer.stderr
            return not answer.returncode

        self.until(done, f"applied: {errors[-1:]}", 60)

    def delete(self, kind: str, name: str) -> None:
        self.env.kubectl("delete", kind, name, "--wait=false")

    def items(self, kind: str) -> list[Json]:
        found = self.env.kubectl("get", kind, "-o", "json", check=False)
        return list(json.loads(found.stdout)["items"]) if found.returncode == 0 else []

    def pods(self, label: str = "") -> list[Json]:
        return [one for one in self.items("pods") if not label or label_of(one, label)]

    def check(self) -> None:
        for manager in self._managers:
            manager.check()

    @property
    def restarts(self) -> int:
        """Of operators, since they were started."""
        return sum(manager.restarts for manager in self._managers)

    def until(self, wanted: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
        end = time.monotonic() + seconds
        while not (found := wanted()):
            self.check()
            assert time.monotonic() < end, f"not after {seconds:.0f} s: {what}"
            time.sleep(0.5)
        return found


def label_of(pod: Json, key: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(key, ""))


def told(pod: Json) -> str:
    """Why a pod has no node."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")


def for_kohort(body: Any) -> Any:
    """The same with `schedulerName: kohort` in every template of pods."""
    return _each_pod(body, lambda spec: {**spec, "schedulerName": "kohort"})


def asking(body: Any, cpu: str = "1") -> Any:
    """The same with containers that ask for so much."""
    resources = {"requests": {"cpu": cpu}}
    return _each_pod(
        body, lambda spec: {**spec, "containers": [{**one, "resources": resources} for one in spec["containers"]]}
    )


def _each_pod(body: Any, change: Callable[[Json], Json]) -> Any:
    if isinstance(body, list):
        return [_each_pod(one, change) for one in body]
    if not isinstance(body, dict):
        return body
    made = {key: _each_pod(value, change) for key, value in body.items()}
    return change(made) if isinstance(made.get("containers"), list) else made


def sample(operator: str, name: str) -> list[Json]:
    """A manifest that the project publishes."""
    found = OPERATORS[operator]
    file = found.folder / found.samples[name] if name in found.samples else SAMPLES / f"{name}.yaml"
    documents = [one for one in yaml.safe_load_all(file.read_text()) if one]
    for one in documents:
        one["metadata"].pop("namespace", None)
        for part in one["spec"].get("replicatedJobs") or ():  # our copies have no pods, which no rule looks at
            part["template"]["spec"].setdefault("template", {"spec": pod_spec()})
    return documents


def pod_spec(cpu: str = "1") -> Json:
    container = {
        "name": "main",
        "image": "registry.example/main:1",
        "command": ["sleep", "3600"],
        "resources": {"requests": {"cpu": cpu}},
    }
    return {"restartPolicy": "Never", "containers": [container]}
