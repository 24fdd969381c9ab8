"""What controller-runtime's envtest asks of the programs that it starts: flags, health, certificates, an end."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kohort.cli.envtest import apiserver, assets, etcd, flags
from kohort.cli.envtest.flags import FlagError
from kohort.cli.main import app
from kohort.server.auth import tls
from kohort.server.crd import shipped
from kohort.server.server import Server

MASTERS = "system:masters"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


# ---- the folder


def test_path_prints_a_folder_with_the_programs(tmp_path: Path) -> None:
    asked = ["envtest", "path", "--bin-dir", str(tmp_path), "--kubernetes", "1.36"]
    first, second = (CliRunner().invoke(app, asked) for _ in range(2))
    assert first.exit_code == 0, first.output
    assert first.output == second.output
    folder = Path(first.output.strip())
    assert folder.parent == tmp_path
    assert folder.name.startswith("1.36-")
    assert all((folder / name).stat().st_mode & 0o111 for name in ("kube-apiserver", "etcd"))


def test_kubectl_is_there_if_the_machine_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    folder = assets.installed(tmp_path, "1.37")
    assert not (folder / "kubectl").exists()
    (tmp_path / "bin" / "kubectl").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "kubectl").chmod(0o755)
    assert (assets.installed(tmp_path, "1.37") / "kubectl").samefile(tmp_path / "bin" / "kubectl")


def test_an_unknown_minor_is_refused(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["envtest", "path", "--bin-dir", str(tmp_path), "--kubernetes", "1.20"])
    assert found.exit_code == 1


@pytest.mark.parametrize(
    ("program", "flag", "there"),
    [
        ("kube-apiserver", "secure-port", True),
        ("kube-apiserver", "insecure-port", False),
        ("etcd", "unsafe-no-fsync", True),
    ],
)
def test_help_is_read_as_envtest_reads_it(tmp_path: Path, program: str, flag: str, there: bool) -> None:
    """By the shell alone: no Python is started for it."""
    script = assets.installed(tmp_path, "1.37") / program
    said = subprocess.run([script, "--help"], check=True, capture_output=True, text=True, env={"PATH": "/bin:/usr/bin"})
    assert bool(re.search(rf"(?m)^\s*--{flag}\b", said.stdout)) is there


# ---- flags


def test_flags_have_a_value_with_or_without_an_equals_sign() -> None:
    found = flags.parse(["--secure-port=1", "--bind-address", "::1", "--anonymous-auth", "--feature-gates=A=true"])
    assert found.values == {
        "secure-port": ["1"],
        "bind-address": ["::1"],
        "anonymous-auth": ["true"],
        "feature-gates": ["A=true"],
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up"], '"up": expected a flag'),
        (["--secure-port=x"], '--secure-port: the value is "x"; expected a number'),
        (["--anonymous-auth=maybe"], "accepted are true and false"),
        (["--feature-gates=GenericWorkload"], "--feature-gates: GenericWorkload"),
        (["--event-ttl=soon"], "expected a duration such as 1h0m0s"),
    ],
)
def test_a_flag_that_is_wrong_is_named(tmp_path: Path, arguments: list[str], said: str) -> None:
    with pytest.raises(FlagError, match=re.escape(said)):
        apiserver.settings(flags.parse([*arguments, f"--cert-dir={tmp_path}"]), "1.37")


def test_flags_without_effect_are_noted_and_those_of_every_test_are_not() -> None:
    given = flags.parse(["--etcd-servers=http://127.0.0.1:1", "--allow-privileged=true", "--audit-log-path=-"])
    assert flags.unused(given) == ["--audit-log-path=-: accepted, and without effect here"]


def test_versions_that_are_asked_for_and_not_served_are_noted() -> None:
    asked = "api/all=true,api/v1=true,scheduling.k8s.io/v1beta1=true,resource.k8s.io/v1alpha3=true,policy/v1beta1=false"
    found = flags.not_served(flags.parse([f"--runtime-config={asked}"]), {"v1", "scheduling.k8s.io/v1beta1"})
    assert found == ["--runtime-config=resource.k8s.io/v1alpha3=true: this version is not served here"]


def test_a_gate_that_is_off_takes_with_it_what_needs_it() -> None:
    given = flags.parse(["--feature-gates=GenericWorkload=false,SidecarContainers=true"])
    gates, notes = flags.gates(given, "1.36")
    assert gates == dict.fromkeys(
        (
            "GenericWorkload",
            "GangScheduling",
            "WorkloadAwarePreemption",
            "TopologyAwareWorkloadScheduling",
            "DRAWorkloadResourceClaims",
            "WorkloadWithJob",
        ),
        False,
    )
    assert notes == ["--feature-gates=SidecarContainers=true: not a gate that changes anything here"]


# ---- a control plane as envtest prepares one


@dataclass(frozen=True)
class Plane:
    """Folders as envtest fills them: the server's certificate of one authority, clients' of another."""

    folder: Path
    serving: tls.Pki
    clients: tls.Pki

    @classmethod
    def prepare(cls, folder: Path) -> Plane:
        serving, clients = tls.ensure(folder / "serving"), tls.ensure(folder / "clients")
        (folder / "apiserver.crt").write_bytes(serving.server.certificate_pem)
        (folder / "apiserver.key").write_bytes(serving.server.key_pem)
        (folder / "sa-signer.key").write_bytes(clients.server.key_pem)
        return cls(folder, serving, clients)

    def flags(self, port: int) -> list[str]:
        return [
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder}",
            f"--client-ca-file={self.clients.ca_file}",
            "--disable-admission-plugins=ServiceAccount",
            "--etcd-servers=http://127.0.0.1:1",
            f"--secure-port={port}",
            "--service-account-issuer=https://127.0.0.1/",
            f"--service-account-key-file={self.folder}/sa-signer.crt",
            f"--service-account-signing-key-file={self.folder}/sa-signer.key",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]

    def context(self, user: str = "", *groups: str) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(self.serving.ca_file))
        if user:
            pair = self.clients.client(user, groups, now=datetime.now(UTC))
            file = self.folder / f"{user}.pem"
            file.write_bytes(pair.certificate_pem + pair.key_pem)
            made.load_cert_chain(file)
        return made


@dataclass(frozen=True)
class Visit:
    plane: Plane
    url: str
    server: Server | None = None

    async def ask(
        self, method: str, path: str, body: Any = None, *, user: str = "", groups: tuple[str, ...] = (), token: str = ""
    ) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, self.url + path, json=body, ssl=self.plane.context(user, *groups)) as answer,
        ):
            text = await answer.text()
            return answer.status, json.loads(text) if text[:1] in "{[" else text

    async def admin(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await self.ask(method, path, body, user="default", groups=(MASTERS,))


@asynccontextmanager
async def serving(folder: Path, *more: str) -> AsyncIterator[Visit]:
    plane = Plane.prepare(folder)
    settings, _ = apiserver.settings(flags.parse([*plane.flags(0), *more]), "1.37")
    async with Server(settings) as server:
        yield Visit(plane, server.url, server)


async def test_certificates_of_the_clients_authority_are_users(tmp_path: Path) -> None:
    async with serving(tmp_path) as visit:
        assert (await visit.ask("GET", "/healthz")) == (200, "ok")
        assert (await visit.ask("GET", "/readyz")) == (200, "ok")
        code, found = await visit.admin("POST", REVIEW, {})
        assert (code, found["status"]["userInfo"]["username"]) == (201, "default")
        assert (await visit.admin("GET", "/api/v1/secrets"))[0] == 200
        assert (await visit.ask("GET", "/api/v1/secrets", user="ann", groups=("devs",)))[0] == 403
        assert (await visit.ask("GET", "/api/v1/secrets"))[0] == 403


async def test_nothing_runs_beside_the_server(tmp_path: Path) -> None:
    """No custom resources, no default service account, and who is deleted with dependents leaves them behind."""
    async with serving(tmp_path) as visit:
        code, found = await visit.admin("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        assert (code, found["items"]) == (200, [])
        assert (await visit.admin("GET", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"))[0] == 404
        await visit.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "one"}})
        maps = "/api/v1/namespaces/one/configmaps"
        _, owner = await visit.admin("POST", maps, {"metadata": {"name": "owner"}})
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        await visit.admin("POST", maps, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
        assert (await visit.admin("DELETE", f"{maps}/owner"))[0] == 200
        assert (await visit.admin("DELETE", "/api/v1/namespaces/one"))[0] == 200
        assert visit.server is not None
        assert visit.server.controllers.controllers == []
        assert (await visit.admin("GET", f"{maps}/owned"))[0] == 200
        _, space = await visit.admin("GET", "/api/v1/namespaces/one")
        assert space["status"]["phase"] == "Terminating"
        assert (await visit.admin("GET", "/api/v1/namespaces/default/serviceaccounts"))[1]["items"] == []


async def test_kinds_that_kohort_knows_are_judged_by_the_definition_alone(tmp_path: Path) -> None:
    """Defaults and rules of an operator's webhooks come from its webhooks, if they are installed."""
    jobset = shipped.shipped()["jobsets.jobset.x-k8s.io"]
    definition = {"metadata": {"name": jobset.name}, "spec": jobset.whole}
    async with serving(tmp_path) as visit:
        code, _ = await visit.admin("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert code == 201
        path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
        while (await visit.admin("GET", path))[0] == 404:
            await asyncio.sleep(0.01)
        made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "plain"}, "spec": {}}
        code, found = await visit.admin("POST", path, made)
        assert code == 201, found
        assert found["spec"].keys() & {"successPolicy", "network", "startupPolicy"} == set()


async def test_services_have_addresses_of_the_range_until_it_is_full(tmp_path: Path) -> None:
    async with serving(tmp_path, "--service-cluster-ip-range=10.9.0.0/29") as visit:
        services = "/api/v1/namespaces/default/services"
        _, own = await visit.admin("GET", f"{services}/kubernetes")
        assert own["spec"]["clusterIP"] == "10.9.0.1"
        found = [
            await visit.admin("POST", services, {"metadata": {"name": f"s{n}"}, "spec": {"ports": [{"port": 80}]}})
            for n in range(6)
        ]
        assert {one["spec"]["clusterIP"] for _, one in found[:5]} == {f"10.9.0.{n}" for n in range(2, 7)}
        assert found[5][0] == 500
        assert "range is full" in found[5][1]["message"]


async def test_tokens_of_service_accounts_name_the_issuer(tmp_path: Path) -> None:
    async with serving(tmp_path) as visit:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await visit.admin("POST", accounts, {"metadata": {"name": "robot"}})
        code, found = await visit.admin("POST", f"{accounts}/robot/token", {"spec": {}})
        assert (code, found["spec"]["audiences"]) == (201, ["https://127.0.0.1/"])
        code, found = await visit.ask("POST", REVIEW, {}, token=found["status"]["token"])
        assert found["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"


async def test_older_versions_of_envtest_bring_rsa_keys(tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    forms = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "rsa.key").write_bytes(key.private_bytes(*forms))
    async with serving(tmp_path, f"--service-account-signing-key-file={tmp_path}/rsa.key") as visit:
        assert (await visit.ask("GET", "/healthz"))[0] == 200


async def test_a_token_file_and_no_rbac(tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text('secret,ann,7,"devs,ops"\nother,bob,8\n')
    more = [f"--token-auth-file={tmp_path}/tokens.csv", "--authorization-mode=AlwaysAllow", "--anonymous-auth=false"]
    async with serving(tmp_path, *more) as visit:
        code, found = await visit.ask("POST", REVIEW, {}, token="secret")
        assert (code, found["status"]["userInfo"]["groups"]) == (201, ["devs", "ops", "system:authenticated"])
        assert (await visit.ask("GET", "/api/v1/secrets", token="other"))[0] == 200
        assert (await visit.ask("GET", "/api/v1/secrets"))[0] == 401


def test_who_brings_no_certificate_gets_one(tmp_path: Path) -> None:
    settings, _ = apiserver.settings(flags.parse([f"--cert-dir={tmp_path}"]), "1.37")
    assert settings.credentials is not None
    assert settings.credentials.load().context.get_ca_certs() == []
    assert (tmp_path / "apiserver.crt").read_bytes().count(b"BEGIN CERTIFICATE") == 2


# ---- etcd


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /health HTTP/1.1\r\n\r\n", b"200 OK", b'"health":"true"'),
        (b"GET /version HTTP/1.1\r\n\r\n", b"200 OK", b"etcdserver"),
        (b"POST /v3/kv/put HTTP/1.1\r\n\r\n", b"501 Not Implemented", b"keeps nothing"),
        (b"PRI * HTTP/2.0\r\n\r\n", b"501 Not Implemented", b"keeps nothing"),
        (b"", b"501 Not Implemented", b"keeps nothing"),
    ],
)
def test_etcd_is_healthy_and_says_what_it_is(request_: bytes, status: bytes, body: bytes) -> None:
    answer = etcd.response(request_)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert body in answer


# ---- the programs


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextmanager
def _started(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Ended as envtest ends it: by SIGTERM, and that is no failure."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(20) == 0


async def test_the_programs_start_answer_and_end(tmp_path: Path) -> None:
    folder = assets.installed(tmp_path, "1.37")
    (tmp_path / "plane").mkdir()
    plane, port, peer = Plane.prepare(tmp_path / "plane"), _free_port(), _free_port()
    url = f"http://127.0.0.1:{peer}"
    with (
        _started(folder / "etcd", f"--listen-client-urls={url}", "--data-dir=/nowhere") as store,
        _started(folder / "kube-apiserver", *plane.flags(port), "--audit-log-path=-") as server,
    ):
        assert server.stdout is not None
        assert server.stderr is not None
        assert store.stderr is not None
        assert f"https://127.0.0.1:{port}" in await asyncio.to_thread(server.stdout.readline)
        assert "--audit-log-path=-: accepted" in await asyncio.to_thread(server.stderr.readline)
        assert "stub" in await asyncio.to_thread(store.stderr.readline)
        assert (await Visit(plane, f"https://127.0.0.1:{port}").admin("GET", "/api/v1/namespaces/default"))[0] == 200
        async with aiohttp.ClientSession() as session, session.get(f"{url}/health") as answer:
            assert (answer.status, await answer.json()) == (200, {"health": "true", "reason": ""})
