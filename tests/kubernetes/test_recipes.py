"""The committed Go modules are complete: nothing has to be resolved, or written into them, on a fresh machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kohort.testing.environment.recipe import Recipe, e2e_recipe, etcd_recipe, helm_recipe, kubernetes_recipe
from kohort.testing.environment.versions import MINORS

HACK = Path(__file__).parents[2] / "hack" / "kubernetes"
RECIPES = {
    **{minor: kubernetes_recipe(minor) for minor in MINORS},
    "e2e-1.37": e2e_recipe("1.37"),
    "etcd": etcd_recipe(),
    "helm": helm_recipe(),
}
UNREACHABLE = ("dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake timeout")


def go_list(folder: Path, *args: str) -> list[str]:
    environment = dict(os.environ) | {"GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0", "GOWORK": "off"}
    done = subprocess.run(
        ["go", "list", *args], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0 and any(one in done.stderr for one in UNREACHABLE):
        pytest.skip(f"Go's module cache lacks modules of {folder.name}, and its proxy cannot be reached")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_every_committed_module_has_a_recipe() -> None:
    assert {path.parent.name for path in HACK.glob("*/go.mod")} == {name for name, found in RECIPES.items() if found}


@pytest.mark.timeout(900)  # an empty cache is filled first
@pytest.mark.parametrize("name", RECIPES)
def test_a_module_needs_no_change_to_be_built(name: str) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not on the PATH; it builds the modules of hack/kubernetes")
    recipe = RECIPES[name]
    assert isinstance(recipe, Recipe)
    form = "{{if and (not .ForTest) (not .Standard)}}{{.ImportPath}}{{end}}"
    test = ["-test"] if recipe.test else []
    named = go_list(recipe.folder, "-deps", *test, "-f", form, *recipe.packages)
    packages = [one for one in named if not one.endswith(".test")]
    assert len(packages) > 100
    # As the build of tests does, to say how far it is: that needs the modules of what they depend on, too.
    assert go_list(recipe.folder, *packages) == packages
