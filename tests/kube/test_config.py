"""Kubeconfig files as kubectl reads them, in-cluster configuration, and errors that say what to do."""

import asyncio
import base64
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kohort.kube.clock import VirtualClock
from kohort.kube.config import Config, from_files, in_cluster, load
from kohort.kube.credentials import Credential, TokenFile
from kohort.kube.errors import ConfigError

PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
DATA = base64.b64encode(PEM.encode()).decode()


def write(
    path: Path, *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **over: Any
) -> Path:
    """A kubeconfig with one of each, named `main`."""
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "main", "cluster": {"server": "https://10.0.0.1:6443"} | (cluster or {})}],
        "users": [{"name": "main", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "main", "user": "main"}}],
    }
    path.write_text(yaml.safe_dump(body | over))
    return path


def credential(config: Config) -> Credential:
    return asyncio.run(_get(config))


async def _get(config: Config) -> Credential:
    return await config.credentials.get()


def headers(path: Path) -> dict[str, str]:
    return dict(credential(load(path)).headers)


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, **options)
    return str(caught.value).replace(str(path), "FILE").replace(str(path.parent), "FOLDER")


def test_a_token_and_an_authority_inside(tmp_path: Path) -> None:
    config = load(
        write(
            tmp_path / "c",
            user={"token": "secret"},
            cluster={
                "server": "https://10.0.0.1:6443/",
                "certificate-authority-data": DATA,
                "tls-server-name": "api",
                "disable-compression": True,
            },
            contexts=[{"name": "main", "context": {"cluster": "main", "user": "main", "namespace": "team"}}],
        )
    )
    assert (config.server, config.ca, config.namespace) == ("https://10.0.0.1:6443", PEM.encode(), "team")
    assert (config.tls_server_name, config.compress, config.context) == ("api", False, "main")
    assert credential(config).headers == {"authorization": "Bearer secret"}


def test_files_are_found_from_the_folder_of_the_kubeconfig(tmp_path: Path) -> None:
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / name).write_text(PEM + name)
    (tmp_path / "token").write_text("from a file\n")
    user = {"client-certificate": "me.crt", "client-key": str(tmp_path / "me.key"), "tokenFile": "token", "token": "no"}
    config = load(write(tmp_path / "c", user=user, cluster={"certificate-authority": "ca.crt"}))
    assert config.ca == (PEM + "ca.crt").encode()
    found = credential(config)
    assert found.certificate.endswith(b"me.crt")
    assert found.key.endswith(b"me.key")
    assert found.headers == {"authorization": "Bearer from a file"}


def test_passwords_and_impersonation(tmp_path: Path) -> None:
    user = {"username": "u", "password": "p", "as": "other", "as-uid": "7"}
    assert headers(write(tmp_path / "c", user=user)) == {
        "authorization": "Basic " + base64.b64encode(b"u:p").decode(),
        "impersonate-user": "other",
        "impersonate-uid": "7",
    }


def test_no_user_is_anonymous(tmp_path: Path) -> None:
    path = write(tmp_path / "c", contexts=[{"name": "main", "context": {"cluster": "main"}}])
    assert headers(path) == {}


def test_of_several_files_the_first_to_name_something_counts(tmp_path: Path) -> None:
    one = write(tmp_path / "one", user={"token": "first"}, **dict[str, Any]({"current-context": ""}))
    two = write(tmp_path / "two", user={"token": "second"}, cluster={"tls-server-name": "not merged"})
    extra = yaml.safe_load(two.read_text())
    extra["contexts"].append({"name": "other", "context": {"cluster": "main", "user": "other", "namespace": "two"}})
    extra["users"].append({"name": "other", "user": {"token": "other"}})
    two.write_text(yaml.safe_dump(extra))
    environment = {"KUBECONFIG": os.pathsep.join([str(tmp_path / "missing"), str(one), "", str(two)])}
    config = load(environment=environment)
    assert config.context == "main"
    assert config.tls_server_name == ""
    assert credential(config).headers == {"authorization": "Bearer first"}
    other = load(environment=environment, context="other")
    assert (other.namespace, credential(other).headers) == ("two", {"authorization": "Bearer other"})


def test_the_file_in_the_home_folder_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", user={"token": "home"})
    assert credential(load(environment={"HOME": str(tmp_path)})).headers == {"authorization": "Bearer home"}


def test_nothing_configured_says_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"looked for .*/\.kube/config and for KUBERNETES_SERVICE_HOST"):
        load(environment={"HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"looked for /no/where \(from KUBECONFIG\)"):
        load(environment={"KUBECONFIG": "/no/where"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"current-context": "gone"}, "FILE: current-context: found 'gone', accepted are main"),
        ({"current-context": ""}, "FILE: current-context: empty, accepted are main"),
        (
            {"cluster": {"server": "10.0.0.1:6443"}},
            "clusters[0].cluster.server: found '10.0.0.1:6443', accepted is",
        ),
        ({"cluster": {"server": 5}}, "FILE: clusters[0].cluster.server: found 5, accepted is a string"),
        ({"cluster": {"insecure-skip-tls-verify": "yes"}}, '.insecure-skip-tls-verify: found "yes", accepted is true'),
        (
            {"cluster": {"insecure-skip-tls-verify": True, "certificate-authority-data": DATA}},
            "FILE: clusters[0].cluster.insecure-skip-tls-verify: true, but a certificate-authority is given",
        ),
        ({"cluster": {"certificate-authority-data": "%%"}}, "certificate-authority-data: not base64"),
        ({"cluster": {"certificate-authority-data": "YWJj"}}, "certificate-authority: no certificate in it"),
        (
            {"cluster": {"certificate-authority": "none.crt"}},
            "clusters[0].cluster.certificate-authority: cannot read FOLDER/none.crt: No such file",
        ),
        ({"user": {"client-certificate-data": DATA}}, "users[0].user.client-key: missing"),
        ({"user": {"tokenFile": "none"}}, "users[0].user.tokenFile: found FOLDER/none, which is not a file"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "users[0].user.auth-provider: no longer part of Kubernetes"),
        ({"user": {"as-groups": ["g"]}}, "users[0].user.as-groups: not supported; accepted are as and as-uid"),
        ({"users": [5]}, "FILE: users[0]: found 5, accepted is a mapping"),
        ({"users": {"name": "x"}}, 'FILE: users: found {"name": "x"}, accepted is a list of mappings'),
        ({"users": []}, "FILE: contexts[0].context.user: found 'main', accepted are (there are none)"),
        ({"kind": "Pod"}, "FILE: kind: found 'Pod', accepted is Config"),
        (
            {"user": {"exec": {"command": "x"}}},
            "exec.apiVersion: found '', accepted are client.authentication",
        ),
        (
            {"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Maybe"}}},
            "exec.interactiveMode: found 'Maybe', accepted are Never, IfAvailable, Always",
        ),
        ({"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1"}}}, "exec.command: missing"),
        (
            {"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "c"}}},
            "exec.interactiveMode: missing; with client.authentication.k8s.io/v1 one of",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    assert words in refusal(write(tmp_path / "c", **options))


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c", cluster={"server": "ftp://x", "certificate-authority-data": "%"}, user={"tokenFile": "n"}
    )
    assert len(refusal(path).splitlines()) == 3


def test_a_context_that_was_asked_for(tmp_path: Path) -> None:
    assert refusal(write(tmp_path / "c"), context="x") == "FILE: context: found 'x', accepted are main"


@pytest.mark.parametrize("text", ["[1, 2", "- a\n- b\n", "kind: {", "\x00"])
def test_files_that_are_no_kubeconfig(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c"
    path.write_text(text)
    assert refusal(path).startswith("FILE: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none").startswith("FILE: cannot read: No such file")
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xff")
    assert "not UTF-8" in refusal(tmp_path / "latin")


def test_an_empty_file_has_no_contexts(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    assert refusal(tmp_path / "c") == "FILE: current-context: empty, accepted are (the files have no contexts)"


# ---- inside a pod


def service_account(folder: Path) -> Path:
    (folder / "token").write_text("t1\n")
    (folder / "ca.crt").write_text(PEM)
    (folder / "namespace").write_text("team\n")
    return folder


async def test_inside_a_pod_the_token_is_read_again(tmp_path: Path) -> None:
    clock = VirtualClock()
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "8443", "HOME": "/nowhere"}
    config = load(environment=environment, service_account=service_account(tmp_path), clock=clock)
    assert (config.server, config.namespace, config.ca) == ("https://10.0.0.1:8443", "team", PEM.encode())
    assert (await config.credentials.get()).headers == {"authorization": "Bearer t1"}
    (tmp_path / "token").write_text("t2\n")
    await clock.advance(59)
    assert (await config.credentials.get()).headers == {"authorization": "Bearer t1"}
    await clock.advance(1)
    assert (await config.credentials.get()).headers == {"authorization": "Bearer t2"}
    for state in ("", None):
        (tmp_path / "token").unlink() if state is None else (tmp_path / "token").write_text(state)
        await clock.advance(60)
        assert (await config.credentials.get()).headers == {"authorization": "Bearer t2"}, "while it is being replaced"


def test_inside_a_pod_with_ipv6(tmp_path: Path) -> None:
    config = in_cluster(environment={"KUBERNETES_SERVICE_HOST": "fd00::1"}, service_account=service_account(tmp_path))
    assert config.server == "https://[fd00::1]:443"


def test_inside_a_pod_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        in_cluster(environment={}, service_account=tmp_path)
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "KUBERNETES_SERVICE_HOST",
        str(tmp_path / "token"),
    ]


async def test_an_empty_token_file_is_an_error_at_first(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("")
    with pytest.raises(ConfigError, match="the file is empty"):
        await TokenFile(tmp_path / "t").get()
    with pytest.raises(ConfigError, match="cannot read the token"):
        await TokenFile(tmp_path / "none").get()


# ---- helper programs

PROGRAM = """#!{python}
import json, os, pathlib, sys
count = pathlib.Path(__file__).with_suffix(".count")
number = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(number))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
count.with_suffix(".info").write_text(json.dumps([info, sys.argv[1:], os.environ.get("EXTRA")]))
status = {{"token": "token-%d" % number}}
{more}
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


def program(folder: Path, more: str = "") -> Path:
    path = folder / "helper"
    path.write_text(PROGRAM.format(python=sys.executable, more=more))
    path.chmod(0o755)
    return path


def with_program(folder: Path, more: str = "", version: str = "v1", **fields: Any) -> Path:
    program(folder, more)
    body = {"apiVersion": f"client.authentication.k8s.io/{version}", "command": "./helper", "interactiveMode": "Never"}
    return write(folder / "c", user={"exec": body | fields})


def runs(folder: Path) -> int:
    return int((folder / "helper.count").read_text())


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_program_is_asked_once_and_told_what_it_needs(tmp_path: Path, version: str) -> None:
    path = with_program(
        tmp_path, version=version, args=["a", "b"], env=[{"name": "EXTRA", "value": "e"}], provideClusterInfo=True
    )
    config = load(path)
    found = await asyncio.gather(*(config.credentials.get() for _ in range(5)))
    assert {one.headers["authorization"] for one in found} == {"Bearer token-1"}
    info, args, extra = json.loads((tmp_path / "helper.info").read_text())
    assert (args, extra, runs(tmp_path)) == (["a", "b"], "e", 1)
    assert info == {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://10.0.0.1:6443"}},
    }


async def test_a_program_is_asked_again_when_its_answer_ends_or_is_refused(tmp_path: Path) -> None:
    clock = VirtualClock()
    end = (clock.now() + timedelta(minutes=10)).isoformat()
    config = from_files([with_program(tmp_path, f'status["expirationTimestamp"] = "{end}"')], clock=clock)
    first = await config.credentials.get()
    await clock.advance(580)
    assert await config.credentials.get() == first
    await clock.advance(10)
    second = await config.credentials.get()
    assert (second.headers["authorization"], runs(tmp_path)) == ("Bearer token-2", 2)
    assert await config.credentials.refused(first), "somebody else has renewed it already"
    assert runs(tmp_path) == 2
    assert await config.credentials.refused(second)
    assert runs(tmp_path) == 3


async def test_a_program_may_give_a_certificate(tmp_path: Path) -> None:
    more = 'status = {"clientCertificateData": "C", "clientKeyData": "K"}'
    found = await load(with_program(tmp_path, more)).credentials.get()
    assert (found.certificate, found.key, found.headers) == (b"C", b"K", {})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("sys.exit('no network')", "users[0].user.exec: FOLDER/helper ended with code 1: no network"),
        ("print('{')", "output of FOLDER/helper: "),
        ("status = {}", "neither a token nor a certificate"),
        ('status = {"clientKeyData": "K"}', "a certificate and its key go together"),
        ('info["apiVersion"] = "v2"', "found ExecCredential of v2; accepted is an ExecCredential of client"),
    ],
)
async def test_what_a_program_does_wrong_is_said(tmp_path: Path, more: str, words: str) -> None:
    config = load(with_program(tmp_path, more))
    with pytest.raises(ConfigError) as caught:
        await config.credentials.get()
    said = str(caught.value).replace(str(tmp_path), "FOLDER")
    assert words in said
    assert "token-1" not in said


async def test_a_program_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    config = load(with_program(tmp_path, command="no-such-helper", installHint="Get it at example.org"))
    with pytest.raises(ConfigError, match=r"command: no-such-helper is not a program(.|\n)*Get it at example\.org"):
        await config.credentials.get()


async def test_a_program_that_needs_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", (tmp_path / "x").open("w+"))
    config = load(with_program(tmp_path, interactiveMode="Always"))
    with pytest.raises(ConfigError, match="Always, but standard input is not a terminal"):
        await config.credentials.get()
    sys.stdin.close()


def test_secrets_do_not_show() -> None:
    shown = repr(Credential({"authorization": "Bearer secret"}, b"c", b"private"))
    assert "private" not in shown
    assert "secret" not in shown
