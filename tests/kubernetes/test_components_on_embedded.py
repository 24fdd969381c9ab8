"""Real kube-controller-manager and kube-scheduler 1.37 on the embedded server, as they come (binary bodies and all).

Each is who it is in a cluster: the scheduler and the manager by certificate, every controller by its service account.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kohort.server.auth import tls
from kohort.testing.client import Client
from kohort.testing.environment.assets import find
from kohort.testing.pytest_plugin import require_binaries

KOHORT = (sys.executable, "-m", "kohort.cli.main")
PODS = "/api/v1/namespaces/work/pods"
# They would act on nodes that exist only on paper.
OFF = "*,-node-lifecycle-controller,-taint-eviction-controller,-node-ipam-controller"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    require_binaries("1.37")
    assets = find("1.37")
    assert assets is not None
    data = tmp_path / "data"
    up = [*KOHORT, "up", "--bare", "--detach", "--port", "0", "--data-dir", str(data)]
    assert subprocess.run(up, capture_output=True, timeout=60, check=False).returncode == 0
    config = data / "kubeconfig"
    common = ["--leader-elect=false", "--secure-port=0"]
    manager = [
        "--use-service-account-credentials",
        f"--controllers={OFF}",
        f"--service-account-private-key-file={data / 'pki' / 'sa.key'}",
        f"--root-ca-file={data / 'pki' / 'ca.crt'}",
    ]
    processes = []
    with (tmp_path / "components.log").open("wb") as log:
        for name, more in (("kube-controller-manager", manager), ("kube-scheduler", list[str]())):
            command = [str(assets.path(name)), f"--kubeconfig={account(data, f'system:{name}')}", *common, *more]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))
        loaded = yaml.safe_load(config.read_text())
        url, token = loaded["clusters"][0]["cluster"]["server"], loaded["users"][0]["user"]["token"]
        with Client(url, ca_file=data / "pki" / "ca.crt", token=token) as made:
            yield made
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)
    subprocess.run([*KOHORT, "down", "--data-dir", str(data)], capture_output=True, timeout=30, check=True)


def account(data: Path, user: str) -> Path:
    """A kubeconfig for a user of that name, with a certificate of the server's authority; roles say what it may do."""
    pair = tls.ensure(data / "pki").client(user, now=datetime.now(UTC))
    loaded, path = yaml.safe_load((data / "kubeconfig").read_text()), data / f"{user}.kubeconfig"
    shown = {"client-certificate-data": pair.certificate_pem, "client-key-data": pair.key_pem}
    loaded["users"][0]["user"] = {name: base64.b64encode(pem).decode() for name, pem in shown.items()}
    path.write_text(yaml.safe_dump(loaded))
    return path


def until(look: Callable[[], Any], wanted: Callable[[Any], bool], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not wanted(found := look()):
        assert time.monotonic() < end, found
        time.sleep(0.2)
    return found


def _bound(pods: dict[str, Any]) -> int:
    return sum(1 for pod in pods["items"] if pod["spec"].get("nodeName"))


@pytest.mark.timeout(240)
def test_they_do_their_work(client: Client, tmp_path: Path) -> None:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    for number in range(3):
        ready = {"type": "Ready", "status": "True"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        client.create("/api/v1/nodes", {"metadata": {"name": f"n{number}"}, "status": status})
    client.create("/api/v1/namespaces", {"metadata": {"name": "work"}})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 5, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.create("/apis/apps/v1/namespaces/work/deployments", {"metadata": {"name": "web"}, "spec": spec})

    # A Deployment becomes a ReplicaSet becomes pods, and the scheduler finds them nodes.
    until(lambda: client.get(f"{PODS}?labelSelector=a=b"), lambda pods: _bound(pods) == 5)

    # A Job's selector follows from its uid; its pod is made and bound.
    once = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    client.create("/apis/batch/v1/namespaces/work/jobs", {"metadata": {"name": "j"}, "spec": {"template": once}})
    selector = "labelSelector=batch.kubernetes.io/job-name=j"
    until(lambda: client.get(f"{PODS}?{selector}"), lambda pods: _bound(pods) == 1)

    # What a Deployment owned is collected once it is gone (nobody runs the pods: they go when told to).
    client.request("DELETE", "/apis/apps/v1/namespaces/work/deployments/web?propagationPolicy=Background")
    until(lambda: client.get("/apis/apps/v1/namespaces/work/replicasets"), lambda found: found["items"] == [])

    def finish() -> Any:
        for pod in client.get(PODS)["items"]:
            if pod["metadata"].get("deletionTimestamp"):
                client.request("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
        return client.get(f"{PODS}?labelSelector=a=b")

    until(finish, lambda pods: pods["items"] == [])

    # A namespace is emptied, then it goes.
    client.request("DELETE", "/api/v1/namespaces/work")

    def gone() -> int:
        if client.request("GET", "/api/v1/namespaces/work").code == 200:
            finish()
        return client.request("GET", "/api/v1/namespaces/work").code

    until(gone, lambda code: code == 404, 90)

    # Whatever they asked for, their roles allow.
    told = (tmp_path / "components.log").read_text()
    assert [line for line in told.splitlines() if "is forbidden" in line or "Unauthorized" in line] == []
