"""`kohort manifests`: what is printed can be applied as it is, and holds what was asked for."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kohort.api.crd import crds
from kohort.cli.main import app
from kohort.run.options import parse


def printed(*args: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["manifests", *args])
    assert done.exit_code == 0, done.output
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(done.output, loader))


def named(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def test_all_of_it() -> None:
    objects = printed()
    assert set(named(objects, "CustomResourceDefinition")) == {one["metadata"]["name"] for one in crds()}
    assert named(objects, "Deployment")["kohort"]["spec"]["replicas"] == 2
    assert "kohort-system" in named(objects, "Namespace")


def test_another_namespace_is_one_everywhere() -> None:
    objects = printed("--no-crds", "-n", "batch", "--image", "registry.example/k:1", "--replicas", "1")
    assert "kohort-system" not in yaml.safe_dump(objects)
    subjects = [one["subjects"][0] for one in objects if one["kind"].endswith("Binding")]
    assert {one["namespace"] for one in subjects} == {"batch"}
    deployment = named(objects, "Deployment")["kohort"]
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example/k:1"
    config = parse(yaml.safe_load(named(objects, "ConfigMap")["kohort"]["data"]["config.yaml"]))
    assert config.election.namespace == "batch"


def test_only_some_controllers() -> None:
    objects = printed("--controllers", "jobset,trainjob")
    roles = set(named(objects, "ClusterRole"))
    assert {"kohort-jobset", "kohort-trainjob"} <= roles
    assert roles.isdisjoint({"kohort-grove", "kohort-leaderworkerset"})
    assert not [name for name in named(objects, "CustomResourceDefinition") if "grove" in name]
    config = parse(yaml.safe_load(named(objects, "ConfigMap")["kohort"]["data"]["config.yaml"]))
    assert config.controllers == ("*", "-grove", "-leaderworkerset")


def test_no_controllers() -> None:
    objects = printed("--controllers", "none")
    assert set(named(objects, "ClusterRole")) == {"kohort-look", "kohort-scheduler", "kohort-events"}
    assert set(named(objects, "CustomResourceDefinition")) == {"groupingrules.kohort.dev"}, "the scheduler's own"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--controllers", "jobsets"), "--controllers: found jobsets; accepted are jobset, trainjob"),
        (("-n", "A_B"), "--namespace: 'A_B' is not a name of a namespace"),
    ],
)
def test_what_is_wrong_is_said(args: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(app, ["manifests", *args])
    assert done.exit_code == 1
    assert says in done.output
