"""Which operators, in which version, and where in their modules definitions, webhooks and samples are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kohort.testing.environment.assets import cache_folder
from kohort.testing.environment.build import BuildError, build, finished
from kohort.testing.environment.recipe import Recipe


@dataclass(frozen=True)
class Operator:
    """A Go module that is an operator. `webhooks`: its manifest of webhooks, for those who do not work without."""

    name: str
    module: str
    version: str
    package: str
    command: str  # as Go names it
    definitions: str
    samples: dict[str, str]  # name -> file
    webhooks: str = ""
    pods: str = ""  # label of the pods that its webhooks look at

    @property
    def folder(self) -> Path:
        """Of its module, in Go's cache of modules."""
        asked = ["go", "mod", "download", "-json", f"{self.module}@{self.version}"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd="/", env=_environment())
        told = json.loads(done.stdout or "{}")
        if "Dir" not in told:
            raise BuildError(f"{self.module} {self.version}: {told.get('Error') or done.stderr.strip()}")
        return Path(told["Dir"])

    def recipe(self, folder: Path) -> Recipe:
        return Recipe(
            name=self.name,
            version=self.version.removeprefix("v"),
            folder=folder,
            packages=(self.package,),
            commands=(self.command,),
            ldflags="-s -w",
        )

    def built(self) -> Path | None:
        """The command, if it is there."""
        folder = operators_cache() / f"{self.name}-{self.version.removeprefix('v')}"
        return folder / self.command if finished(folder) else None

    def build(self) -> Path:
        return build(self.recipe(self.folder), operators_cache()) / self.command


def operators_cache() -> Path:
    return cache_folder().parent / "operators"


def _environment() -> dict[str, str]:
    return {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}


OPERATORS = {
    one.name: one
    for one in (
        Operator(
            name="jobset",
            module="sigs.k8s.io/jobset",
            version="v0.12.0",
            package=".",
            command="jobset",
            definitions="config/components/crd/bases",
            samples={},
            webhooks="config/components/webhook/manifests.yaml",
            pods="jobset.sigs.k8s.io/jobset-name",
        ),
        Operator(
            name="lws",
            module="sigs.k8s.io/lws",
            version="v0.9.0",
            package="./cmd",
            command="cmd",
            definitions="config/crd/bases",
            samples={"leaderworkerset": "config/samples/leaderworkerset_v1_leaderworkerset.yaml"},
            webhooks="config/webhook/manifests.yaml",
            pods="leaderworkerset.sigs.k8s.io/name",
        ),
        Operator(
            name="kuberay",
            module="github.com/ray-project/kuberay/ray-operator",
            version="v1.6.0",
            package=".",
            command="ray-operator",
            definitions="config/crd/bases",
            samples={"raycluster": "config/samples/ray-cluster.sample.yaml"},
        ),
        Operator(
            name="training-operator",
            module="github.com/kubeflow/training-operator",
            version="v1.9.4",
            package="./cmd/training-operator.v1",
            command="training-operator.v1",
            definitions="manifests/base/crds",
            samples={"pytorchjob": "examples/pytorch/simple.yaml"},
        ),
    )
}


def missing(names: tuple[str, ...] = tuple(OPERATORS)) -> str:
    """What has to be done before they run; empty: nothing."""
    absent = [name for name in names if OPERATORS[name].built() is None]
    if not absent:
        return "" if shutil.which("go") else "Go is not here; it finds the operators' manifests"
    return f"{', '.join(absent)}: not built; `make companion` builds them (needs Go, some minutes each)"
