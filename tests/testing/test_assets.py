"""Where binaries come from, and that a build is made once, whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kohort.testing.environment import assets
from kohort.testing.environment.build import MANIFEST, BuildError, build, finished
from kohort.testing.environment.recipe import KUBERNETES_COMMANDS, etcd_recipe, kubernetes_recipe

ENSURE = "from kohort.testing.environment import ensure; print(ensure('1.37').source)"


def write_executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def silent(text: str) -> None:
    pass


def kubebuilder(folder: Path, version: str, names: tuple[str, ...] = ("etcd", "kube-apiserver", "kubectl")) -> Path:
    folder.mkdir()
    for name in names:
        write_executable(folder / name, f"#!/bin/sh\necho Kubernetes v{version}\n")
    return folder


def test_without_go_and_assets_one_sentence_says_what_to_do(no_go: Path) -> None:
    assert assets.find("1.37") is None
    with pytest.raises(assets.AssetsMissingError) as raised:
        assets.ensure("1.37")
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert "real Kubernetes 1.37 is not on this machine" in sentence
    assert "install Go and run `make kubernetes K8S=1.37`, or set KUBEBUILDER_ASSETS" in sentence


def test_with_go_the_sentence_names_the_command(fake_go: Path) -> None:
    assert "run `make kubernetes K8S=1.36`" in assets.missing_sentence("1.36")


def test_an_unknown_minor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"found '1\.20', accepted are 1\.37, 1\.36, 1\.35"):
        assets.find("1.20")


def test_kubebuilder_assets_of_the_asked_minor_come_first(
    no_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = kubebuilder(tmp_path / "assets", "1.37.9")
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    found = assets.find("1.37")
    assert found is not None
    assert (found.version, found.source) == ("1.37.9", str(folder))
    assert found.path("etcd") == folder / "etcd"
    with pytest.raises(assets.AssetsMissingError, match="kube-scheduler is not among the binaries"):
        found.path("kube-scheduler")


@pytest.mark.parametrize(
    ("version", "need"),
    [("1.36.3", ("etcd", "kube-apiserver")), ("1.37.1", ("etcd", "kube-apiserver", "kube-scheduler"))],
    ids=["another minor", "a binary is missing"],
)
def test_kubebuilder_assets_that_do_not_fit_are_passed_over(
    no_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, need: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(kubebuilder(tmp_path / "assets", version)))
    assert assets.find("1.37", need) is None


def test_ensure_builds_once_and_finds_it_afterwards(fake_go: Path) -> None:
    texts: list[str] = []
    first = assets.ensure("1.37", report=texts.append)
    again = assets.ensure("1.37", report=texts.append)
    assert first == again
    assert fake_go.read_text() == "run\nrun\n"  # etcd and Kubernetes, once each
    assert set(first.paths) == {"etcd", *KUBERNETES_COMMANDS}
    assert any("2 packages to compile, 4 commands to link, about 1 min" in text for text in texts)
    manifest = json.loads((Path(first.source) / MANIFEST).read_text())
    assert manifest["version"] == first.version
    assert manifest["go"] == "go1.99"
    assert set(manifest["files"]) == set(KUBERNETES_COMMANDS)


def test_end_to_end_tests_are_one_command_built_once(fake_go: Path) -> None:
    texts: list[str] = []
    path = assets.ensure_e2e("1.37", report=texts.append)
    assert path.name == "e2e.test"
    assert path.parent.name.startswith("e2e-1.37.")
    assert assets.ensure_e2e("1.37", report=texts.append) == path
    assert fake_go.read_text() == "run\ntest\n"  # packages with progress, then the command
    assert any("2 packages to compile, 1 commands to link" in text for text in texts)


def test_end_to_end_tests_without_go_or_a_recipe(no_go: Path) -> None:
    with pytest.raises(assets.AssetsMissingError, match=r"1\.37 are not built, and Go is not here"):
        assets.ensure_e2e("1.37")
    with pytest.raises(assets.AssetsMissingError, match=r"no recipe for the end-to-end tests of Kubernetes 1\.35"):
        assets.ensure_e2e("1.35")


def test_another_recipe_is_built_again(fake_go: Path, tmp_path: Path) -> None:
    recipe = etcd_recipe()
    assert recipe is not None
    cache = tmp_path / "own"
    folder = build(recipe, cache, report=silent)
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"recipe": "of yesterday"}))
    assert build(recipe, cache, report=silent) == folder
    assert fake_go.read_text() == "run\nrun\n"
    assert [path.name for path in sorted(cache.iterdir())] == [f".{recipe.label}.lock", recipe.label]


@pytest.mark.parametrize("damage", ["manifest", "binary", "size"])
def test_a_partial_folder_does_not_look_finished(fake_go: Path, tmp_path: Path, damage: str) -> None:
    recipe = etcd_recipe()
    assert recipe is not None
    folder = build(recipe, tmp_path / "own", report=silent)
    assert finished(folder, recipe.digest())
    if damage == "manifest":
        (folder / MANIFEST).unlink()
    elif damage == "binary":
        (folder / "etcd").unlink()
    else:
        (folder / "etcd").write_text("cut off")
    assert finished(folder) is None


def test_a_failed_build_says_why_and_leaves_nothing(
    fake_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GO_FAILS", "yes")
    recipe = kubernetes_recipe("1.37")
    assert recipe is not None
    with pytest.raises(BuildError, match=r"(?s)exit code 1.*cannot compile this"):
        build(recipe, tmp_path / "own", report=silent)
    assert [path.name for path in (tmp_path / "own").iterdir()] == [f".{recipe.label}.lock"]


def test_two_at_once_build_once(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GO_SECONDS", "0.5")
    both = [
        subprocess.Popen([sys.executable, "-c", ENSURE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [one.communicate(timeout=60) for one in both]
    assert [one.returncode for one in both] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert fake_go.read_text() == "run\nrun\n"  # etcd and Kubernetes, once each
    assert sum("somebody else is building it" in errors for _, errors in outputs) >= 1


def test_a_killed_build_is_not_finished_and_the_next_one_takes_over(
    fake_go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GO_SECONDS", "30")
    killed = subprocess.Popen([sys.executable, "-c", ENSURE], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while not fake_go.read_text() and time.monotonic() < end:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert assets.find("1.37") is None
    monkeypatch.setenv("FAKE_GO_SECONDS", "0")
    found = assets.ensure("1.37", report=silent)
    left = [path.name for path in (tmp_path / "cache" / "kohort" / "kubernetes").iterdir() if "building" in path.name]
    assert left == []
    assert found.path("kube-apiserver").is_file()


def test_a_wheel_without_recipes_uses_the_newest_build_of_a_clone(
    fake_go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = assets.ensure("1.37", report=silent)
    older = Path(built.source).with_name("1.37.0")
    older.mkdir()  # no manifest: not a build
    monkeypatch.setattr(assets, "kubernetes_recipe", lambda minor: None)
    assert assets.find("1.37") == built
    assert assets.find("1.36") is None
    assert "Kohort's repository" in assets.missing_sentence("1.36")
