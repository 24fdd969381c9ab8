"""The committed Go modules (hack/kubernetes) that say how to build each version, read as data."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

_MODULES = Path(__file__).resolve().parents[4] / "hack" / "kubernetes"
_VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Recipe:
    """How to build the commands of one Go module, at one version."""

    name: str  # what people call it: Kubernetes, etcd
    version: str  # 1.37.1
    folder: Path
    packages: tuple[str, ...]
    commands: tuple[str, ...]
    ldflags: str
    test: bool = False  # the tests of its one package, as a command

    @property
    def label(self) -> str:
        """The name of its folder in the cache."""
        return self.version if self.name == "Kubernetes" else f"{self.name}-{self.version}"

    def digest(self) -> str:
        """Changes whenever what would be built changes."""
        total = hashlib.sha256(self.ldflags.encode())
        for file in sorted(self.folder.iterdir()):
            if file.suffix in {".mod", ".sum", ".go"}:
                total.update(file.name.encode() + b"\0" + file.read_bytes())
        return total.hexdigest()


def kubernetes_recipe(minor: str, modules: Path = _MODULES) -> Recipe | None:
    """None where the repository's hack/kubernetes is not there (an installed wheel) or lacks this minor."""
    version = _required(modules / minor / "go.mod", "k8s.io/kubernetes")
    if version is None:
        return None
    return Recipe(
        name="Kubernetes",
        version=version,
        folder=modules / minor,
        packages=tuple(f"k8s.io/kubernetes/cmd/{command}" for command in KUBERNETES_COMMANDS),
        commands=KUBERNETES_COMMANDS,
        ldflags=_ldflags(version),
    )


def e2e_recipe(minor: str, modules: Path = _MODULES) -> Recipe | None:
    """Upstream's end-to-end tests; None as above."""
    folder = modules / f"e2e-{minor}"
    version = _required(folder / "go.mod", "k8s.io/kubernetes")
    if version is None:
        return None
    return Recipe(
        name="e2e",
        version=version,
        folder=folder,
        packages=("k8s.io/kubernetes/test/e2e",),
        commands=("e2e.test",),
        ldflags=_ldflags(version),
        test=True,
    )


def _ldflags(version: str) -> str:
    """The version that the commands say they have; no symbol tables."""
    major, minor, _ = version.split(".", 2)
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {_VERSION_PACKAGE}.{key}={value}" for key, value in values.items())


def etcd_recipe(modules: Path = _MODULES) -> Recipe | None:
    version = _required(modules / "etcd" / "go.mod", "go.etcd.io/etcd/server/v3")
    if version is None:
        return None
    return Recipe(
        name="etcd",
        version=version,
        folder=modules / "etcd",
        packages=(".",),
        commands=("etcd",),
        ldflags="-s -w",
    )


def helm_recipe(modules: Path = _MODULES) -> Recipe | None:
    """Of the same modules as Kubernetes 1.37: after a build of that, most of it is in Go's cache."""
    version = _required(modules / "helm" / "go.mod", "helm.sh/helm/v4")
    if version is None:
        return None
    package = "helm.sh/helm/v4/internal/version"
    return Recipe(
        name="helm",
        version=version,
        folder=modules / "helm",
        packages=("helm.sh/helm/v4/cmd/helm",),
        commands=("helm",),
        ldflags=f"-s -w -X {package}.version=v{version}",
    )


def _required(go_mod: Path, module: str) -> str | None:
    if not go_mod.is_file():
        return None
    found = re.search(rf"^(?:require )?\s*{re.escape(module)} v(\S+)$", go_mod.read_text(), re.MULTILINE)
    return found.group(1) if found else None
