"""Finding the binaries: KUBEBUILDER_ASSETS, then our cache, else a build from published Go modules."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kohort.testing.environment import build as building
from kohort.testing.environment.recipe import (
    KUBERNETES_COMMANDS,
    Recipe,
    e2e_recipe,
    etcd_recipe,
    helm_recipe,
    kubernetes_recipe,
)
from kohort.testing.environment.versions import minor_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BINARIES = ("etcd", *KUBERNETES_COMMANDS)
MINIMUM = ("etcd", "kube-apiserver")


class AssetsMissingError(Exception):
    """No binaries, and no way to make them; its text is one sentence on what is missing and how to get it."""


@dataclass(frozen=True)
class Assets:
    """Binaries of one Kubernetes version, ready to run."""

    version: str  # 1.37.1
    source: str  # where they were found, for people
    paths: Mapping[str, Path]

    def path(self, name: str) -> Path:
        if name not in self.paths:
            raise AssetsMissingError(f"{name} is not among the binaries in {self.source}: {', '.join(self.paths)}")
        return self.paths[name]


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kohort" / "kubernetes"


def find(kubernetes: str, need: Iterable[str] = MINIMUM) -> Assets | None:
    """What is there already, without building anything."""
    minor = minor_of(kubernetes)
    wanted = tuple(need)
    return _in_kubebuilder_assets(minor, wanted) or _in_cache(minor)


def ensure(kubernetes: str, need: Iterable[str] = MINIMUM, *, report: building.Report = building.say) -> Assets:
    """What is there, else built now; raises AssetsMissingError with one clear sentence where neither is possible."""
    found = find(kubernetes, need)
    if found is not None:
        return found
    minor = minor_of(kubernetes)
    recipe, etcd = kubernetes_recipe(minor), etcd_recipe()
    if recipe is None or etcd is None or shutil.which("go") is None:
        raise AssetsMissingError(missing_sentence(minor))
    building.build(etcd, cache_folder(), report=report)
    building.build(recipe, cache_folder(), report=report)
    built = _in_cache(minor)
    if built is None:
        raise AssetsMissingError(f"the build of Kubernetes {minor} vanished from {cache_folder()} while it was made")
    return built


def ensure_e2e(kubernetes: str, *, report: building.Report = building.say) -> Path:
    """Upstream's end-to-end tests of that minor as one command, built if need be."""
    minor = minor_of(kubernetes)
    recipe = e2e_recipe(minor)
    if recipe is None:
        raise AssetsMissingError(f"there is no recipe for the end-to-end tests of Kubernetes {minor}")
    return _ensure_command(recipe, f"the end-to-end tests of Kubernetes {minor} are", report)


def find_helm() -> Path | None:
    """The helm that was built, without building anything."""
    recipe = helm_recipe()
    if recipe is None or not building.finished(cache_folder() / recipe.label, recipe.digest()):
        return None
    return cache_folder() / recipe.label / "helm"


def ensure_helm(*, report: building.Report = building.say) -> Path:
    """The helm command, built if need be."""
    recipe = helm_recipe()
    if recipe is None:
        raise AssetsMissingError("the recipe to build helm is in Kohort's repository, and this is not one")
    return _ensure_command(recipe, f"helm {recipe.version} is", report)


def _ensure_command(recipe: Recipe, what: str, report: building.Report) -> Path:
    folder = cache_folder() / recipe.label
    if not building.finished(folder, recipe.digest()):
        if shutil.which("go") is None:
            raise AssetsMissingError(f"{what} not built, and Go is not here")
        building.build(recipe, cache_folder(), report=report)
    return folder / recipe.commands[0]


def can_build() -> bool:
    return shutil.which("go") is not None and etcd_recipe() is not None


def missing_sentence(kubernetes: str) -> str:
    """The one sentence of a skip or an error."""
    minor = minor_of(kubernetes)
    if kubernetes_recipe(minor) is None:
        how = "set KUBEBUILDER_ASSETS to a folder that has them (the recipes to build them are in Kohort's repository)"
    elif shutil.which("go") is None:
        how = f"install Go and run `make kubernetes K8S={minor}`, or set KUBEBUILDER_ASSETS to a folder that has them"
    else:
        how = f"run `make kubernetes K8S={minor}` (about ten minutes, once)"
    return (
        f"real Kubernetes {minor} is not on this machine (no binaries in KUBEBUILDER_ASSETS or {cache_folder()}): {how}"
    )


def _in_kubebuilder_assets(minor: str, need: tuple[str, ...]) -> Assets | None:
    """That folder is some other project's choice of version, so it counts only where its API server is of our minor."""
    value = os.environ.get("KUBEBUILDER_ASSETS")
    if not value:
        return None
    folder = Path(value).absolute()
    paths = {name: folder / name for name in BINARIES if os.access(folder / name, os.X_OK)}
    if not set(need) | set(MINIMUM) <= set(paths):
        return None
    version = _reported_version(paths["kube-apiserver"])
    if version is None or not version.startswith(minor + "."):
        return None
    return Assets(version=version, source=str(folder), paths=paths)


def _reported_version(apiserver: Path) -> str | None:
    try:
        done = subprocess.run([apiserver, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"v(\d+\.\d+\.\d+)", done.stdout)
    return found.group(1) if found else None


def _in_cache(minor: str) -> Assets | None:
    recipe, etcd = kubernetes_recipe(minor), etcd_recipe()
    cache = cache_folder()
    if recipe is not None and etcd is not None:
        folders = [cache / recipe.label] if building.finished(cache / recipe.label, recipe.digest()) else []
        etcds = [cache / etcd.label] if building.finished(cache / etcd.label, etcd.digest()) else []
    else:  # an installed wheel has no recipes, but may use what a clone has built
        folders = _finished_under(cache, f"{minor}.*")
        etcds = _finished_under(cache, "etcd-*")
    if not folders or not etcds:
        return None
    paths = {name: folders[-1] / name for name in KUBERNETES_COMMANDS} | {"etcd": etcds[-1] / "etcd"}
    return Assets(version=folders[-1].name, source=str(folders[-1]), paths=paths)


def _finished_under(cache: Path, pattern: str) -> list[Path]:
    def by_number(folder: Path) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", folder.name)]

    return sorted((folder for folder in cache.glob(pattern) if building.finished(folder)), key=by_number)
