"""The whole way in: TLS, who asks, what they may do, admission, and what background jobs add."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kohort.server.server import Server
from kohort.server.settings import Settings

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Visit:
    """A server, and requests to it with the credentials that a test chooses."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.tokens = {name: one["token"] for name, one in json.loads((folder / "tokens.json").read_text()).items()}

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        certificate: Path | None = None,
    ) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=str(self.folder / "pki" / "ca.crt"))
        if certificate is not None:
            context.load_cert_chain(certificate)
        sent = [*headers, *([("authorization", f"Bearer {token}")] if token else [])]
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.server.url + path, json=body, headers=sent, ssl=context) as answer,
        ):
            text = await answer.text()
            return answer.status, json.loads(text) if text[:1] in "{[" else text

    async def admin(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        return await self.ask(method, path, body, token=self.tokens["admin"], **more)

    async def who(self, **more: Any) -> Any:
        code, found = await self.ask("POST", REVIEW, {}, **more)
        return found["status"]["userInfo"] if code == 201 else (code, found["message"])


@pytest.fixture
async def visit(tmp_path: Path) -> AsyncIterator[Visit]:
    async with Server(Settings(tmp_path, port=0, in_memory=True)) as server:
        yield Visit(server, tmp_path)


async def eventually(visit: Visit, path: str) -> Any:
    for _ in range(1500):
        code, found = await visit.admin("GET", path)
        if code == 200:
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"{path}: {code} {found}")


async def test_tokens(visit: Visit) -> None:
    assert (await visit.who(token=visit.tokens["admin"]))["username"] == "kohort:admin"
    assert (await visit.who(token=visit.tokens["viewer"]))["username"] == "kohort:viewer"
    assert await visit.who(token="wrong") == (401, "Unauthorized")
    assert (await visit.who())[0] == 403, "anonymous"
    assert (await visit.ask("GET", "/healthz")) == (200, "ok")
    assert (await visit.ask("GET", "/api/v1/nodes"))[1]["message"] == (
        'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope'
    )


async def test_the_read_only_token_reads(visit: Visit) -> None:
    viewer = visit.tokens["viewer"]
    path = "/api/v1/namespaces/default/configmaps"
    assert (await visit.ask("GET", path, token=viewer))[0] == 200
    assert (await visit.ask("GET", "/apis/scheduling.k8s.io/v1beta1/podgroups", token=viewer))[0] == 200
    assert (await visit.ask("GET", "/api/v1/nodes", token=viewer))[0] == 200
    assert (await visit.ask("GET", "/metrics", token=viewer))[0] == 200
    assert (await visit.ask("POST", path, {"metadata": {"name": "c"}}, token=viewer))[0] == 403
    assert (await visit.ask("GET", "/api/v1/secrets", token=viewer))[0] == 403
    account = "/api/v1/namespaces/default/serviceaccounts/default/token"
    assert (await visit.ask("POST", account, {"spec": {}}, token=viewer))[0] == 403


async def test_client_certificates(visit: Visit, tmp_path: Path) -> None:
    assert visit.server.pki is not None
    pair = visit.server.pki.client("alice", ["devs"], now=datetime.now(UTC))
    pem = tmp_path / "alice.pem"
    pem.write_bytes(pair.certificate_pem + pair.key_pem)
    found = await visit.who(certificate=pem)
    assert (found["username"], found["groups"]) == ("alice", ["devs", "system:authenticated"])


async def test_impersonation_with_several_groups(visit: Visit) -> None:
    headers = [
        ("Impersonate-User", "x"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h, i"),
        ("Impersonate-Extra-Foo%2Fbar", "v1"),
        ("Impersonate-Extra-Foo%2Fbar", "v2"),
    ]
    assert await visit.who(token=visit.tokens["admin"], headers=headers) == {
        "username": "x",
        "groups": ["g", "h, i", "system:authenticated"],
        "extra": {"foo/bar": ["v1", "v2"]},
    }
    assert (await visit.who(token=visit.tokens["viewer"], headers=headers))[0] == 403
    alone = [("Impersonate-Group", "g")]
    assert (await visit.who(token=visit.tokens["admin"], headers=alone))[0] == 400


async def test_a_service_account_works_with_what_it_was_given(visit: Visit) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    assert (await visit.admin("POST", path, {"metadata": {"name": "bot"}}))[0] == 201
    code, request = await visit.admin("POST", f"{path}/bot/token", {"spec": {"expirationSeconds": 600}})
    assert (code, request["kind"]) == (201, "TokenRequest")
    token = request["status"]["token"]
    secrets = "/api/v1/namespaces/default/secrets"
    assert (await visit.ask("GET", secrets, token=token))[0] == 403
    rules = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["get", "list", "watch"]}]
    roles = f"{RBAC}/namespaces/default"
    assert (await visit.admin("POST", f"{roles}/roles", {"metadata": {"name": "r"}, "rules": rules}))[0] == 201
    binding = {
        "metadata": {"name": "b"},
        "subjects": [{"kind": "ServiceAccount", "name": "bot"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
    }
    code, made = await visit.admin("POST", f"{roles}/rolebindings", binding)
    assert code == 201, made
    assert (await visit.ask("GET", f"{secrets}/one", token=token))[0] == 404
    assert (await visit.ask("GET", f"{secrets}/two", token=token))[0] == 403
    assert (await visit.ask("GET", secrets, token=token))[0] == 403
    assert (await visit.ask("GET", f"{secrets}?fieldSelector=metadata.name%3Done", token=token))[0] == 200
    await visit.admin("DELETE", f"{path}/bot")
    assert (await visit.ask("GET", f"{secrets}/one", token=token))[0] == 401


MALFORMED: list[tuple[str, Any]] = [
    ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": "x"}),
    ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": []}}),
    ("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": 5, "resourceAttributes": {}}}),
    ("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "x", "groups": "g", "extra": {"a": 1}}}),
    ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": ["a"]}}),
    ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "a", "audiences": "b"}}),
    ("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {"expirationSeconds": "soon"}}),
    ("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {"boundObjectRef": "p"}}),
    ("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": []}),
    ("/api/v1/namespaces/default/serviceaccounts/default/token", []),
]


@pytest.mark.parametrize(("path", "body"), MALFORMED)
async def test_malformed_questions_are_the_askers_fault(visit: Visit, path: str, body: Any) -> None:
    await eventually(visit, "/api/v1/namespaces/default/serviceaccounts/default")
    code, found = await visit.admin("POST", path, body)
    assert code in (400, 422), found


async def test_public_keys(visit: Visit) -> None:
    code, keys = await visit.admin("GET", "/openid/v1/jwks")
    assert (code, keys["keys"][0]["alg"]) == (200, "ES256")
    code, found = await visit.admin("GET", "/.well-known/openid-configuration")
    assert (code, found["jwks_uri"]) == (200, f"{visit.server.url}/openid/v1/jwks")


async def test_every_namespace_is_furnished(visit: Visit) -> None:
    await visit.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
    await eventually(visit, "/api/v1/namespaces/new/serviceaccounts/default")
    found = await eventually(visit, "/api/v1/namespaces/new/configmaps/kube-root-ca.crt")
    assert found["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    await visit.admin("DELETE", "/api/v1/namespaces/new/serviceaccounts/default")
    await eventually(visit, "/api/v1/namespaces/new/serviceaccounts/default")


async def test_the_authority_of_a_namespace_is_written_again(visit: Visit) -> None:
    path = "/api/v1/namespaces/new/configmaps/kube-root-ca.crt"
    await visit.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
    found = await eventually(visit, path)
    await visit.admin("DELETE", path)
    await eventually(visit, path)
    code, _ = await visit.admin("PUT", path, {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}})
    assert code == 200
    for _ in range(1500):
        _, now = await visit.admin("GET", path)
        if now["data"] == found["data"]:
            break
        await asyncio.sleep(0.02)
    assert now["data"] == found["data"]


async def test_aggregated_roles_show_their_rules(visit: Visit) -> None:
    rule = {"apiGroups": ["example.org"], "resources": ["widgets"], "verbs": ["get"]}
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    body = {"metadata": {"name": "widgets", "labels": labels}, "rules": [rule]}
    assert (await visit.admin("POST", f"{RBAC}/clusterroles", body))[0] == 201
    for name in ("view", "edit", "admin", "kohort:viewer"):
        for _ in range(1500):
            _, found = await visit.admin("GET", f"{RBAC}/clusterroles/{name}")
            if rule in found["rules"]:
                break
            await asyncio.sleep(0.02)
        assert rule in found["rules"], name


async def test_private_files(visit: Visit, tmp_path: Path) -> None:
    secret = [tmp_path / "kubeconfig", tmp_path / "tokens.json", *(tmp_path / "pki").iterdir()]
    assert {file.stat().st_mode & 0o777 for file in secret} == {0o600}


async def test_a_restart_keeps_certificates_and_tokens(tmp_path: Path) -> None:
    async with Server(Settings(tmp_path, port=0)) as server:
        first = Visit(server, tmp_path)
        path = "/api/v1/namespaces/default/serviceaccounts"
        await first.admin("POST", path, {"metadata": {"name": "bot"}})
        token = (await first.admin("POST", f"{path}/bot/token", {"spec": {}}))[1]["status"]["token"]
        authority = (tmp_path / "pki" / "ca.crt").read_bytes()
    async with Server(Settings(tmp_path, port=0)) as server:
        second = Visit(server, tmp_path)
        assert second.tokens == first.tokens
        assert (tmp_path / "pki" / "ca.crt").read_bytes() == authority
        assert (await second.who(token=token))["username"] == "system:serviceaccount:default:bot"
