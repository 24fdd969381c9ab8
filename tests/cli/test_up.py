"""`kohort up` and `kohort down`, as processes."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

KOHORT = (sys.executable, "-m", "kohort.cli.main")


def kohort(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KOHORT, *words], capture_output=True, text=True, timeout=60, check=False)


def ask(folder: Path, path: str, body: object = None) -> dict[str, object]:
    config = yaml.safe_load((folder / "kubeconfig").read_text())
    url, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
    context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data=data, headers=headers)
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def test_what_a_failed_start_says_is_not_taken_for_a_ready_server(tmp_path: Path) -> None:
    folder = tmp_path / "kubectl get"  # as in the text of a server that is ready
    up = ("up", "--bare", "--detach", "--in-memory", "--port", "0", "--data-dir", str(folder))
    assert kohort(*up).returncode == 0
    try:
        second = kohort(*up)
        assert second.returncode == 1
        assert "a server is running on this folder" in second.stderr
    finally:
        assert kohort("down", "--data-dir", str(folder)).returncode == 0


def test_up_down_and_up_again_keeps_objects(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    up = ("up", "--bare", "--detach", "--port", "0", "--data-dir", str(folder))
    started = kohort(*up)
    assert started.returncode == 0, started.stderr
    assert f"export KUBECONFIG={folder}/kubeconfig" in started.stdout
    ask(folder, "/api/v1/namespaces", {"metadata": {"name": "kept"}})

    second = kohort("up", "--bare", "--port", "0", "--data-dir", str(folder))
    assert second.returncode == 1
    assert "a server is running on this folder" in second.stderr

    assert kohort("down", "--data-dir", str(folder)).returncode == 0
    assert not (folder / "server.pid").exists()
    none = kohort("down", "--data-dir", str(folder))
    assert none.returncode == 1
    assert "no server is running" in none.stderr

    assert kohort(*up).returncode == 0
    found = ask(folder, "/api/v1/namespaces/kept")
    assert found["kind"] == "Namespace"
    assert kohort("down", "--data-dir", str(folder)).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    command = [*KOHORT, "up", "--bare", "--port", "0", "--data-dir", str(tmp_path), "--kubernetes", "1.36"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "Kubernetes 1.36 API at https://127.0.0.1:" in process.stdout.readline()
    process.send_signal(number)
    assert process.wait(20) == 0
    process.stdout.close()
    db = sqlite3.connect(tmp_path / "store.db")
    assert db.execute("SELECT count(*) FROM log").fetchone()[0] > 0
    db.close()


def test_in_memory_leaves_nothing(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    command = [*KOHORT, "up", "--bare", "--port", "0", "--in-memory", "--kubeconfig", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Kubernetes 1.37 API at https://127.0.0.1:")
    assert "in memory" in process.stdout.readline()
    assert config.stat().st_mode & 0o777 == 0o600
    process.terminate()
    assert process.wait(20) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kubernetes", "1.12"), "accepted are 1.35, 1.36, 1.37"),
        (("--feature-gates", "Nonsense=true"), "does not know it"),
        (("--feature-gates", "GenericWorkload=maybe"), "accepted are true and false"),
        (("--gates", "GenericWorkload=maybe"), "accepted are true and false"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = kohort("up", "--bare", "--port", "0", "--data-dir", str(tmp_path), *words)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    first = tmp_path / "first"
    started = kohort("up", "--bare", "--detach", "--port", "0", "--data-dir", str(first))
    port = started.stdout.split("127.0.0.1:")[1].split(",")[0]
    done = kohort("up", "--bare", "--port", port, "--data-dir", str(tmp_path / "second"))
    assert done.returncode == 1
    assert f"127.0.0.1:{port} is in use" in done.stderr
    assert kohort("down", "--data-dir", str(first)).returncode == 0


def names(found: dict[str, object]) -> list[str]:
    items = found["items"]
    assert isinstance(items, list)
    return sorted(str(item["metadata"]["name"]) for item in items)


RACKS = """
pools:
- {name: gpu, count: 4, capacity: {nvidia.com/gpu: 8}, topology: [{key: example.com/rack, count: 2}]}
- {name: cpu, count: 1}
"""


def test_a_whole_cluster_with_the_nodes_of_a_file(tmp_path: Path) -> None:
    folder, file = tmp_path / "data", tmp_path / "racks.yaml"
    file.write_text(RACKS)
    up = ("up", "--detach", "--in-memory", "--port", "0", "--data-dir", str(folder), "--cluster", str(file))
    started = kohort(*up)
    try:
        assert started.returncode == 0, started.stderr
        for said in ("5 virtual nodes", f"export KUBECONFIG={folder}/kubeconfig", "kubectl get nodes,"):
            assert said in started.stdout
        assert f"kohort down --data-dir {folder}" in started.stdout
        assert names(ask(folder, "/api/v1/nodes")) == ["cpu-0", "gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    finally:
        assert kohort("down", "--data-dir", str(folder)).returncode == 0


def test_own_nodes_work_as_those_that_were_asked_for(tmp_path: Path) -> None:
    """With --nodes 0 people bring their own Node objects; pods run on them."""
    folder = tmp_path / "data"
    started = kohort("up", "--detach", "--in-memory", "--port", "0", "--data-dir", str(folder), "--nodes", "0")
    try:
        assert started.returncode == 0, started.stderr
        assert "0 virtual nodes" in started.stdout
        assert "my-nodes.yaml" in started.stdout
        assert names(ask(folder, "/api/v1/nodes")) == []
        room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        ask(folder, "/api/v1/nodes", {"metadata": {"name": "mine"}, "status": {"capacity": room, "allocatable": room}})
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}
        ask(folder, "/api/v1/namespaces/default/pods", pod)
        end = time.monotonic() + 30
        while (found := phase(ask(folder, "/api/v1/namespaces/default/pods/p"))) != "Running":
            assert time.monotonic() < end, found
            time.sleep(0.1)
    finally:
        assert kohort("down", "--data-dir", str(folder)).returncode == 0


def phase(pod: dict[str, object]) -> object:
    status = pod["status"]
    assert isinstance(status, dict)
    return status.get("phase")


def test_a_cluster_file_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("pools: [{name: A_B, count: -1}]")
    done = kohort("up", "--in-memory", "--port", "0", "--cluster", str(file))
    assert done.returncode == 1
    assert "pools[0].name" in done.stderr
    assert "pools[0].count" in done.stderr
    missing = kohort("up", "--in-memory", "--port", "0", "--cluster", str(tmp_path / "none.yaml"))
    assert missing.returncode == 1
    assert "cannot be read" in missing.stderr


@pytest.mark.parametrize("blocks", [0, 8, 64])
def test_a_disk_without_room_at_the_start_is_told_as_such(tmp_path: Path, blocks: int) -> None:
    """A limit on the size of files: writes fail as on a full disk, for one file sooner, for another later."""
    words = (*KOHORT, "up", "--bare", "--port", "0", "--data-dir", str(tmp_path / "data"))
    line = f"ulimit -f {blocks}; exec {' '.join(words)}"
    found = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 1, found.stderr
    assert str(tmp_path / "data") in found.stderr
    assert "a fault of Kohort" not in found.stderr


@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_a_port_in_use_is_said_in_words(tmp_path: Path, detach: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = kohort("up", "--bare", "--port", str(port), "--data-dir", str(tmp_path), *detach)
    assert refused.returncode == 1
    assert f"error: kohort up: 127.0.0.1:{port} is in use: another program listens there" in refused.stderr
    assert "--port 0" in refused.stderr
    assert "Errno" not in refused.stderr


def test_fewer_nodes_than_before_are_fewer(tmp_path: Path) -> None:
    up = ("up", "--detach", "--port", "0", "--data-dir", str(tmp_path), "--nodes")
    for nodes, told in (
        ("4", ""),
        ("2", "2 virtual nodes were there from an earlier start, without pods, and removed"),
    ):
        started = kohort(*up, nodes)
        try:
            assert started.returncode == 0, started.stderr
            assert names(ask(tmp_path, "/api/v1/nodes")) == [f"node-{number}" for number in range(int(nodes))]
            assert told in started.stdout
        finally:
            assert kohort("down", "--data-dir", str(tmp_path)).returncode == 0
