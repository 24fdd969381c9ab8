"""The committed Go modules: what they require, what they build, when they count as changed."""

import shutil
from pathlib import Path

import pytest

from kohort.testing.environment.recipe import KUBERNETES_COMMANDS, etcd_recipe, kubernetes_recipe
from kohort.testing.environment.versions import MINORS

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "hack" / "kubernetes"


@pytest.mark.parametrize("minor", MINORS)
def test_every_minor_has_a_module_of_its_own_version(minor: str) -> None:
    recipe = kubernetes_recipe(minor)
    assert recipe is not None
    assert recipe.version.startswith(f"{minor}.")
    assert recipe.label == recipe.version
    assert recipe.commands == KUBERNETES_COMMANDS
    assert f"gitVersion=v{recipe.version}" in recipe.ldflags
    assert (recipe.folder / "go.sum").stat().st_size > 10_000


@pytest.mark.parametrize("minor", MINORS)
def test_staging_modules_are_replaced_by_the_published_ones_of_the_same_patch(minor: str) -> None:
    recipe = kubernetes_recipe(minor)
    assert recipe is not None
    text = (recipe.folder / "go.mod").read_text()
    staging = f"v0.{recipe.version.split('.', 1)[1]}"
    assert "./staging" not in text
    for module in ("k8s.io/api", "k8s.io/apiserver", "k8s.io/component-base", "k8s.io/kube-scheduler"):
        assert f"\t{module} => {module} {staging}\n" in text


def test_etcd_has_a_module() -> None:
    recipe = etcd_recipe()
    assert recipe is not None
    assert recipe.label == f"etcd-{recipe.version}"
    assert recipe.commands == ("etcd",)


def test_without_the_repository_there_is_no_recipe(tmp_path: Path) -> None:
    assert kubernetes_recipe("1.37", tmp_path) is None
    assert etcd_recipe(tmp_path) is None


def test_digest_follows_the_module_files_and_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(MODULES / "etcd", tmp_path / "etcd")
    recipe = etcd_recipe(tmp_path)
    assert recipe is not None
    before = recipe.digest()
    (tmp_path / "etcd" / "notes.txt").write_text("nothing")
    assert recipe.digest() == before
    with (tmp_path / "etcd" / "go.sum").open("a") as file:
        file.write("example.org/x v1.0.0 h1:x=\n")
    assert recipe.digest() != before
