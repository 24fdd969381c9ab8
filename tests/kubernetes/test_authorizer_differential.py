"""The questions that an API server asks its authorizer, request by request: those of a real one and ours.

A real kube-apiserver asks a webhook; ours asks an authorizer that writes down. Both allow everything, or everything
but one verb. Requests: every verb of every resource and subresource that discovery lists, and those that ask twice.
"""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from tests.server.crd.server import Running

from kohort.kube.wire import Request, User
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.testing.client import Client, Response
from kohort.testing.environment import Environment

WHO = "ann"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
JOBS, ROLES = "/apis/batch/v1/namespaces/default/jobs", "/apis/rbac.authorization.k8s.io/v1"
ROLE = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
REVIEW = {"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}}
BINDING = {"metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n"}}
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}}
# Where a role is not there or not valid, a real server asks for `escalate` before it finds out.
KNOWN = {
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/none"),
    ("PATCH", "/apis/rbac.authorization.k8s.io/v1/namespaces/no-such/roles/none"),
}
MAPS = "/api/v1/namespaces/default/configmaps"
Question = tuple[str, ...]
Call = tuple[str, str, Any, str]


def _map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def _bound(kind: str) -> dict[str, Any]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
    return {"metadata": {"name": "b"}, "roleRef": role}


CALLS: list[Call] = [
    ("PATCH", f"{MAPS}/applied?fieldManager=m", _map("applied"), APPLY),  # not there: create, too
    ("PATCH", f"{MAPS}/applied?fieldManager=m", _map("applied"), APPLY),  # there
    ("PATCH", f"{MAPS}/absent", {}, MERGE),
    ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/put", {"metadata": {"name": "put"}}, ""),
    ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/put", {"metadata": {"name": "put"}}, ""),
    ("PUT", f"{MAPS}/put", _map("put"), ""),
    ("PUT", "/api/v1/nodes/put", {"metadata": {"name": "put"}}, ""),
    ("PATCH", "/api/v1/namespaces/made?fieldManager=m", SPACE, APPLY),
    ("PATCH", f"{JOBS}/none/status?fieldManager=m", {"apiVersion": "batch/v1", "kind": "Job"}, APPLY),
    ("GET", f"{MAPS}?fieldSelector=metadata.name%3Da", None, ""),
    ("GET", f"{MAPS}?fieldSelector=metadata.name%3Da&watch=1&timeoutSeconds=1", None, ""),
    ("GET", f"{MAPS}?fieldSelector=metadata.name%3Da,metadata.namespace%3Ddefault", None, ""),
    ("GET", f"{MAPS}?fieldSelector=metadata.name!%3Da", None, ""),
    ("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Dnone", None, ""),
    ("GET", f"{MAPS}?watch=false&timeoutSeconds=1", None, ""),
    ("GET", f"{MAPS}?watch=0&timeoutSeconds=1", None, ""),
    ("GET", f"{MAPS}?watch=true&timeoutSeconds=1", None, ""),
    ("GET", f"{MAPS}/applied?watch=true&timeoutSeconds=1", None, ""),
    ("GET", "/api/v1/watch/namespaces/default/configmaps/applied?timeoutSeconds=1", None, ""),
    ("GET", "/api/v1/watch/configmaps?timeoutSeconds=1", None, ""),
    ("GET", "/api/v1/configmaps", None, ""),
    ("HEAD", f"{MAPS}/applied", None, ""),
    ("HEAD", MAPS, None, ""),
    ("OPTIONS", MAPS, None, ""),
    ("TRACE", f"{MAPS}/applied", None, ""),
    ("POST", f"{MAPS}/named", _map("named"), ""),
    ("PUT", MAPS, _map("x"), ""),
    ("PATCH", MAPS, {}, MERGE),
    ("GET", "/api/v1/namespaces/default", None, ""),
    ("GET", "/api/v1/namespaces/default/status", None, ""),
    ("PUT", "/api/v1/namespaces/default/finalize", {"metadata": {"name": "default"}}, ""),
    ("GET", "/api/v1/namespaces/default/unknown/x", None, ""),
    ("GET", "/api/v1/namespaces/default/pods/x/unknown", None, ""),
    ("GET", "/api/v1/namespaces/default/pods/x/log", None, ""),
    ("GET", "/api/v1/namespaces/default/pods/x/exec", None, ""),
    ("POST", "/api/v1/namespaces/default/pods/x/exec", None, ""),
    ("GET", "/api/v1/namespaces/default/services/x/proxy/a/b", None, ""),
    ("GET", "/apis/none.example.org/v1/things", None, ""),
    ("GET", "/apis/none.example.org/v1/namespaces/default/things/x", None, ""),
    ("GET", "/api", None, ""),
    ("GET", "/api/v1", None, ""),
    ("GET", "/apis", None, ""),
    ("GET", "/apis/batch", None, ""),
    ("GET", "/apis/batch/v1", None, ""),
    ("GET", "/apis/batch/v1/", None, ""),
    ("GET", "/healthz", None, ""),
    ("GET", "/readyz/ping", None, ""),
    ("POST", "/healthz", None, ""),
    ("HEAD", "/version", None, ""),
    ("GET", "/metrics", None, ""),
    ("GET", "/nothing/here", None, ""),
    ("GET", "/openapi/v3/apis/batch/v1", None, ""),
    ("POST", f"{ROLES}/clusterroles", ROLE, ""),
    ("POST", f"{ROLES}/namespaces/default/roles", ROLE, ""),
    ("POST", f"{ROLES}/clusterrolebindings", _bound("ClusterRole"), ""),
    ("POST", f"{ROLES}/namespaces/default/rolebindings", _bound("Role"), ""),
    ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", REVIEW, ""),
    ("POST", "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews", {}, ""),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/none/token", {"spec": {"audiences": []}}, ""),
    ("POST", "/api/v1/namespaces/default/bindings", BINDING, ""),
    ("POST", "/api/v1/namespaces/default/pods/x/binding", BINDING, ""),
    ("POST", "/api/v1/namespaces/default/pods/x/eviction", {"metadata": {"name": "x"}}, ""),
]  # fmt: skip


class Judge:
    """Lets everything but `denied` be done; remembers who asked for what."""

    def __init__(self) -> None:
        self.denied = ""
        self.asked: list[Question] = []

    def decide(self, question: Question) -> bool:
        self.asked.append(question)
        return question[0] != self.denied

    def take(self) -> list[Question]:
        asked, self.asked = self.asked, []
        return asked


def _question(spec: dict[str, Any]) -> Question:
    """As upstream's SubjectAccessReview says it. Selectors are left out: rules cannot speak about them."""
    plain = spec.get("nonResourceAttributes")
    if plain is not None:
        return (plain.get("verb", ""), plain.get("path", ""))
    given = spec["resourceAttributes"]
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return tuple(given.get(field, "") for field in fields)


class Webhook(http.server.ThreadingHTTPServer):
    def __init__(self, judge: Judge) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.judge = judge


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Webhook)
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        allowed = True
        if review["spec"].get("user") == WHO:
            allowed = self.server.judge.decide(_question(review["spec"]))
        body = json.dumps({**review, "status": {"allowed": allowed}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


class Real:
    def __init__(self, folder: Path) -> None:
        self.judge = Judge()
        self.webhook = Webhook(self.judge)
        threading.Thread(target=self.webhook.serve_forever, daemon=True).start()
        cluster = {"name": "a", "cluster": {"server": f"http://127.0.0.1:{self.webhook.server_port}"}}
        context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
        config = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context]}
        file = folder / "webhook.yaml"
        file.write_text(yaml.safe_dump(config | {"users": [{"name": "a", "user": {}}], "current-context": "a"}))
        flags = [
            "--authorization-mode=Webhook",
            f"--authorization-webhook-config-file={file}",
            "--authorization-webhook-version=v1",
            "--authorization-webhook-cache-authorized-ttl=1ns",
            "--authorization-webhook-cache-unauthorized-ttl=1ns",
        ]
        self.env = Environment("1.37", users={WHO: ["team"]}, apiserver_flags=flags)

    def __enter__(self) -> "Real":
        self.env.start()
        self.client: Client = self.env.client(WHO)
        return self

    def __exit__(self, *_: object) -> None:
        self.env.stop()
        self.webhook.shutdown()
        self.webhook.server_close()

    def ask(self, call: Call) -> tuple[Response, list[Question]]:
        method, path, body, media = call
        text = None if body is None else json.dumps(body)
        answer = self.client.request(method, path, text=text, content_type=media or "application/json")
        return answer, self.judge.take()


class Ours(Running):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.judge = Judge()
        self.server = Server(Settings(folder, "1.37", port=0, in_memory=True, custom_kinds=False))

    async def _start(self) -> None:
        await self.server.start()
        self.api = self.server.api
        assert self.api.authorizer is not None
        self._rules = self.api.authorizer.allows
        self.api.authorizer.allows = self._allows

    async def _stop(self) -> None:
        await self.server.close()

    def _allows(self, user: User, given: AuthorizerAttributes) -> tuple[bool, str]:
        if user.name != WHO or self._rules(user, given)[0]:  # a real server, too, asks the roles first
            return True, ""
        question: Question = (given.verb, given.path)
        if not given.path:
            given_all = (given.verb, given.group, given.version, given.resource, given.subresource)
            question = (*given_all, given.namespace, given.name)
        return self.judge.decide(question), ""

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> Response:
        return self.ask((method, path, body, ""), User("root", groups=("system:masters",)))[0]

    def ask(self, call: Call, user: User | None = None) -> tuple[Response, list[Question]]:
        method, path, body, media = call
        parts = urlsplit(path)
        headers = {"content-type": media or "application/json", "accept": "application/json", "user-agent": "a/1"}
        raw = b"" if body is None else json.dumps(body).encode()
        query = parse_qs(parts.query, keep_blank_values=True)
        user = user or User(WHO, groups=("team", "system:authenticated"))
        found = self.wait(self.api.handle(Request(method, parts.path, query, headers, raw, user)))
        body_bytes = found.body if isinstance(found.body, bytes) else self.wait(_all(found.body))
        return Response(found.status, body_bytes, list(found.headers.items())), self.judge.take()


async def _all(chunks: Any) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with Real(tmp_path_factory.mktemp("real")) as found:
        yield found


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with Ours(tmp_path_factory.mktemp("ours")) as found:
        yield found


def _compare(real: Real, ours: Ours, call: Call) -> list[str]:
    (first, theirs), (second, own) = real.ask(call), ours.ask(call)
    if call[:2] in KNOWN and theirs[:-1] == own and theirs[-1][0] == "escalate":
        return []
    if theirs == own:
        return []
    return [f"{call[0]} {call[1]}\n  real {first.code} {theirs}\n  ours {second.code} {own}"]


def test_requests_ask_the_same(real: Real, ours: Ours) -> None:
    different = []
    for call in CALLS:
        different += _compare(real, ours, call)
    assert not different, "\n".join(different)


@pytest.mark.parametrize("verb", ["create", "escalate", "bind", "deletecollection", "patch", "update"])
def test_refusals_are_the_same(real: Real, ours: Ours, verb: str) -> None:
    different = []
    real.judge.denied = ours.judge.denied = verb
    try:
        for number, (method, path, body, media) in enumerate(CALLS):
            if method not in ("PUT", "PATCH", "POST", "DELETE"):
                continue
            fresh = f"fresh-{verb}-{number}"
            renamed = json.loads(json.dumps(body).replace('"applied"', f'"{fresh}"').replace('"put"', f'"{fresh}"'))
            call = (method, path.replace("/applied", f"/{fresh}").replace("/put", f"/{fresh}"), renamed, media)
            (first, theirs), (second, own) = real.ask(call), ours.ask(call)
            said = [
                (one.code, one.json().get("message")) for one in (first, second) if 403 in (first.code, second.code)
            ]
            if theirs != own or len(set(said)) > 1:
                different.append(f"{method} {call[1]}\n  real {theirs} {said[:1]}\n  ours {own} {said[1:]}")
    finally:
        real.judge.denied = ours.judge.denied = ""
    assert not different, "\n".join(different)


_METHODS = {
    "get": "GET", "list": "GET", "create": "POST", "update": "PUT", "patch": "PATCH",
    "delete": "DELETE", "deletecollection": "DELETE", "watch": "GET",
}  # fmt: skip


def _sweep(client: Client) -> Iterator[Call]:
    """Every verb of every resource and subresource, of an object that is not there."""
    groups = [("/api/v1", client.get("/api/v1"))]
    for group in client.get("/apis")["groups"]:
        groups += [
            (f"/apis/{one['groupVersion']}", client.get(f"/apis/{one['groupVersion']}")) for one in group["versions"]
        ]
    for root, found in groups:
        for one in found["resources"]:
            plural, _, sub = one["name"].partition("/")
            where = f"{root}/namespaces/no-such" if one["namespaced"] else root
            for verb in one["verbs"]:
                path = f"{where}/{plural}"
                if verb in ("get", "update", "patch", "delete") or sub:
                    path += "/none"
                path += f"/{sub}" if sub else ""
                if verb == "watch":
                    path += "?watch=1&timeoutSeconds=1"
                if verb == "deletecollection":
                    path += "?dryRun=All"
                media = MERGE if verb == "patch" else ""
                yield _METHODS[verb], path, {} if verb in ("create", "update", "patch") else None, media


def test_every_verb_of_every_resource_asks_the_same(real: Real, ours: Ours) -> None:
    different = []
    for call in _sweep(real.env.client()):
        if "watch=1" in call[1]:
            continue  # a second each; CALLS has some
        different += _compare(real, ours, call)
    assert not different, "\n".join(different)
