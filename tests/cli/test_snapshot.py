"""`kohort snapshot`: what is asked of the file gets the cluster's answers, also without names; no secret is in it."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kohort.kube.client import Client
from kohort.plan.anonymise import anonymised
from kohort.testing.server import ServerThread

SECRET = "hunter2-is-the-password"
OWN = ("acme", "orion", "rack-of-bob")  # words that only this cluster has


def node(name: str, rack: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "10"}
    labels = {"kubernetes.io/hostname": name, "acme.corp/rack": rack}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, on: str = "") -> dict[str, Any]:
    container = {
        "name": "c", "image": "registry.acme.corp/orion:1", "env": [{"name": "PASSWORD", "value": SECRET}],
        "args": [f"--password={SECRET}"], "resources": {"requests": {"cpu": "3"}},
    }  # fmt: skip
    spec = {"containers": [container], "schedulerName": "kohort", **({"nodeName": on} if on else {})}
    meta = {"name": name, "namespace": "orion", "annotations": {"acme.corp/key": SECRET}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as found:

        async def fill(client: Client) -> None:
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "orion"}}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": SECRET}}
            await client.of(space).create(space)
            await client.of(secret).create(secret, "orion")
            for one in (node("acme-1", "rack-of-bob"), node("acme-2", "rack-of-bob"), pod("orion-0", "acme-1")):
                await client.of(one).create(one, one["metadata"].get("namespace", ""))
            waits = pod("orion-1")
            waits["spec"]["nodeSelector"] = {"acme.corp/rack": "rack-of-eve"}
            await client.of(waits).create(waits, "orion")

        found.run(fill)
        yield found


def kohort(*args: str) -> tuple[int, str]:
    from kohort.cli.main import app

    done = CliRunner().invoke(app, list(args))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def saved(server: ServerThread, path: Path, *more: str) -> dict[str, Any]:
    code, said = kohort("snapshot", "--kubeconfig", str(server.kubeconfig), "-o", str(path), *more)
    assert code == 0, said
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def gang(pods: int) -> str:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "schedulerName": "kohort", "containers": [container]}}
    job = {"spec": {"parallelism": pods, "completions": pods, "template": template}}
    spec = {"gangConfig": {"gangMode": "Gang"}, "replicatedJobs": [{"name": "w", "template": job}]}
    return json.dumps(
        {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "new"}, "spec": spec}
    )


def test_nothing_secret_is_in_it(server: ServerThread, tmp_path: Path) -> None:
    document = saved(server, tmp_path / "a.json.gz")
    assert SECRET not in json.dumps(document)
    assert {one["metadata"]["name"] for one in document["objects"]["nodes"]} == {"acme-1", "acme-2"}


def test_without_names(server: ServerThread, tmp_path: Path) -> None:
    text = json.dumps(saved(server, tmp_path / "b.json.gz", "--anonymise"))
    assert [word for word in OWN if word in text] == []


def test_what_nodes_are_says_nothing_of_whose_they_are() -> None:
    """A manifest that selects it finds its nodes in a snapshot without names, too."""
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64", "team": "acme"}
    made = anonymised({"objects": {"nodes": [{"metadata": {"name": "acme-1", "labels": labels}}]}})
    (node,) = made["objects"]["nodes"]
    found = node["metadata"]["labels"]
    assert (found["kubernetes.io/os"], found["kubernetes.io/arch"]) == ("linux", "arm64")
    assert "acme" not in json.dumps(made)


@pytest.mark.parametrize(("pods", "fits"), [(5, True), (6, False)])
@pytest.mark.parametrize("how", [(), ("--anonymise",)], ids=["named", "anonymous"])
def test_plan_answers_as_for_the_cluster(
    server: ServerThread, tmp_path: Path, how: tuple[str, ...], pods: int, fits: bool
) -> None:
    saved(server, tmp_path / "c.json.gz", *how)
    (tmp_path / "new.json").write_text(gang(pods))
    asked = ("plan", "-f", str(tmp_path / "new.json"), "-o", "json")
    there, _ = kohort(*asked, "--kubeconfig", str(server.kubeconfig))
    here, said = kohort(*asked, "--state", str(tmp_path / "c.json.gz"))
    assert (here, there) == ((0, 0) if fits else (1, 1)), said


def test_explain_reads_it(server: ServerThread, tmp_path: Path) -> None:
    saved(server, tmp_path / "d.json.gz")
    code, said = kohort("explain", "-n", "orion", "orion-1", "--state", str(tmp_path / "d.json.gz"))
    assert code == 0
    assert "2 nodes" in said


def test_a_support_bundle(server: ServerThread, tmp_path: Path) -> None:
    file = tmp_path / "support.tar.gz"
    code, said = kohort("snapshot", "--support", "--kubeconfig", str(server.kubeconfig), "-o", str(file))
    assert code == 0, said
    with tarfile.open(file) as archive:
        found = {one.name: archive.extractfile(one) for one in archive.getmembers()}
        texts = {name: body.read().decode() for name, body in found.items() if body is not None}
    assert {f"kohort-support/{name}.json" for name in ("snapshot", "doctor", "versions", "leases", "events")} <= set(
        texts
    )
    assert [name for name, text in texts.items() if SECRET in text] == []


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--support", "--anonymise", "-o", "x"), "a support bundle has logs"),
        (("--support",), "name a file with -o"),
        (("-o", "/nonexistent/x.json"), "-o /nonexistent/x.json: cannot be written"),
    ],
)
def test_what_is_wrong_is_said(server: ServerThread, args: tuple[str, ...], says: str) -> None:
    code, said = kohort("snapshot", "--kubeconfig", str(server.kubeconfig), *args)
    assert code == 1
    assert says in said
