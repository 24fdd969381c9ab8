"""How each operator is started outside a cluster: its configuration, its certificate, its webhooks by address."""

from __future__ import annotations

import base64
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import yaml
from tests.support.operators.recipes import OPERATORS, Operator

from kohort.testing.environment.environment import Environment
from kohort.testing.environment.guard import die_with_parent
from kohort.testing.environment.probe import free_ports

Json = dict[str, Any]
_TRAINING_CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")  # it looks nowhere else
_MOST_RESTARTS = 20
_TRAINING_WEBHOOKS = "validator.training-operator.kubeflow.org"


class Manager:
    """One operator, running."""

    def __init__(self, operator: Operator, env: Environment, folder: Path, certificates: Path) -> None:
        self.operator = operator
        self.env = env
        self.folder = folder / operator.name
        self.folder.mkdir()
        self.certificates = certificates
        self.webhook_port, self.health_port = free_ports(2)
        self.log = self.folder / "log"
        self.log.touch()
        self.process: subprocess.Popen[bytes] | None = None
        self.restarts = 0
        self._command: list[str] = []

    def start(self) -> None:
        module = self.operator.folder
        self._define(module)
        binary = self.operator.built()
        assert binary is not None, f"{self.operator.name} is not built"
        self._command = [str(binary), *self._arguments()]
        self._begin()
        if self.operator.webhooks:
            self._register(module)

    def _begin(self) -> None:
        environment = {**os.environ, "KUBECONFIG": str(self.env.kubeconfig), "MY_POD_NAMESPACE": "kubeflow"}
        with self.log.open("ab") as output:
            self.process = started(self._command, output, environment)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def check(self) -> None:
        """One that has ended is started again, as a Deployment would: on a starved machine it loses its lease."""
        if self.process is None or self.process.poll() is None:
            return
        self.restarts += 1
        assert self.restarts <= _MOST_RESTARTS, f"{self.operator.name} ended:\n{self.tail()}"
        self._begin()

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    # ---- inside

    def _define(self, module: Path) -> None:
        for file in sorted((module / self.operator.definitions).glob("*_*.yaml")):
            self.env.kubectl("apply", "--server-side", "-f", str(file))
        wait = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        while self.env.kubectl(*wait, check=False).returncode != 0:  # of one without any status it is an error
            time.sleep(0.2)

    def _arguments(self) -> list[str]:
        if self.operator.name in {"jobset", "lws"}:
            return [f"--config={self._configuration()}"]
        if self.operator.name == "kuberay":
            return ["--enable-leader-election=false", "--metrics-addr=0", f"--health-probe-bind-address={self._health}"]
        self._for_training_operator()
        return [
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={self._health}",
            f"--webhook-server-port={self.webhook_port}",
        ]

    @property
    def _health(self) -> str:
        return f"127.0.0.1:{self.health_port}"

    def _configuration(self) -> Path:
        """Leader election stays on: by its lease `kohort run` knows that the operator is there."""
        space = f"{self.operator.name}-system"
        self.env.kubectl("create", "namespace", space)
        body = {
            "apiVersion": f"config.{self.operator.name}.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {
                "leaderElect": True,
                "resourceNamespace": space,
                "leaseDuration": "120s",
                "renewDeadline": "100s",
                "retryPeriod": "5s",
            },
            "internalCertManagement": {"enable": False},
            "webhook": {"port": self.webhook_port, "host": "127.0.0.1", "certDir": str(self.certificates)},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": self._health},
        }
        file = self.folder / "configuration.yaml"
        file.write_text(yaml.safe_dump(body))
        return file

    def _register(self, module: Path) -> None:
        """Its webhooks, by address instead of by Service."""
        ca = base64.b64encode((self.certificates / "tls.crt").read_bytes()).decode()
        for body in yaml.safe_load_all((module / self.operator.webhooks).read_text()):
            body["metadata"]["name"] = f"{self.operator.name}-{body['metadata']['name']}"
            for one in body["webhooks"]:
                path = one["clientConfig"]["service"]["path"]
                one["clientConfig"] = {"url": f"https://127.0.0.1:{self.webhook_port}{path}", "caBundle": ca}
                if any("pods" in rule["resources"] for rule in one["rules"]):
                    has = {"key": self.operator.pods, "operator": "Exists"}
                    one["objectSelector"] = {"matchExpressions": [has]}
            self.env.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(body))

    def _for_training_operator(self) -> None:
        """It makes certificates for a webhook that need not be called, and waits until somebody mounts them."""
        self.env.kubectl("create", "namespace", "kubeflow")
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": _TRAINING_WEBHOOKS},
            "webhooks": [],
        }
        self.env.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(body))
        meta = {"name": "training-operator-webhook-cert", "namespace": "kubeflow"}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
        self.env.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(secret))
        _TRAINING_CERTIFICATES.mkdir(parents=True, exist_ok=True)
        for file in self.certificates.iterdir():
            (_TRAINING_CERTIFICATES / file.name).write_bytes(file.read_bytes())
        (_TRAINING_CERTIFICATES / "ca.crt").write_bytes((self.certificates / "tls.crt").read_bytes())


def started(argv: list[str], output: IO[bytes], environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A process that ends with this one."""
    return subprocess.Popen(
        argv,
        stdout=output,
        stderr=output,
        stdin=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, loaded beforehand
    )


def certificate(folder: Path) -> Path:
    """tls.crt and tls.key for 127.0.0.1."""
    folder.mkdir()
    done = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def managers(names: tuple[str, ...], env: Environment, folder: Path) -> Iterator[Manager]:
    certificates = certificate(folder / "certificates")
    for name in names:
        yield Manager(OPERATORS[name], env, folder, certificates)
