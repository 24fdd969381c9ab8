"""An apply or a PUT of an object that is not there makes it, so it needs `create`, too."""

import asyncio
import json
from typing import Any

import pytest
from tests.server.talk import Talk

from kohort.kube.wire import Request, Response, User
from kohort.server.auth import escalation
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.auth.rbac import Authorizer, Granted
from kohort.server.status import ApiError

APPLY = "application/apply-patch+yaml"
SPACE = "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ANN = User("ann", groups=("system:authenticated",))
ROOT = User("root", groups=("system:masters",))


class Asked(Talk):
    """A server on which ann has one role."""

    def __init__(self, verbs: list[str]) -> None:
        super().__init__()
        self.api.authorizer = Authorizer(self.api.core.lister)
        rules = [{"apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "leases"], "verbs": verbs}]
        roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}}, user=ROOT)
        self.ask("POST", f"{roles}/roles", {"metadata": {"name": "r"}, "rules": rules}, user=ROOT)
        binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
        self.ask("POST", f"{roles}/rolebindings", binding, user=ROOT)

    def ask(self, method: str, path: str, body: Any = None, media: str = "", user: User = ANN) -> Response:
        where, _, query = path.partition("?")
        asked = {key: [value] for key, _, value in (part.partition("=") for part in query.split("&") if part)}
        headers = {"content-type": media or "application/json", "accept": "application/json"}
        raw = b"" if body is None else json.dumps(body).encode()
        request = Request(method, where, asked, headers, raw, user)
        return self.loop.run_until_complete(asyncio.wait_for(self.api.handle(request), 30))


def _message(response: Response) -> str:
    assert isinstance(response.body, bytes)
    return str(json.loads(response.body).get("message"))


@pytest.mark.parametrize(
    ("method", "path", "kind", "media"),
    [
        ("PATCH", f"{SPACE}/configmaps/a?fieldManager=m", ("v1", "ConfigMap"), APPLY),
        ("PUT", f"{LEASES}/a", ("coordination.k8s.io/v1", "Lease"), "application/json"),
    ],
)
def test_what_is_made_needs_create(method: str, path: str, kind: tuple[str, str], media: str) -> None:
    body = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "a"}}
    poor, rich = Asked(["get", "patch", "update"]), Asked(["get", "patch", "update", "create"])
    try:
        refused = poor.ask(method, path, body, media)
        assert refused.status == 403
        assert 'User "ann" cannot create resource' in _message(refused)
        assert poor.ask("GET", path.partition("?")[0]).status == 404
        assert rich.ask(method, path, body, media).status == 201
        poor.ask(method, path, body, media, user=ROOT)
        assert poor.ask(method, path, body, media).status != 403  # there is one: nothing is made
    finally:
        poor.close()
        rich.close()


def test_escalate_on_one_name_does_not_help_a_create() -> None:
    asked: list[AuthorizerAttributes] = []

    class Only:
        def allows(self, _user: User, attributes: AuthorizerAttributes) -> tuple[bool, str]:
            asked.append(attributes)
            return attributes.verb == "escalate" and attributes.name == "r", ""

        def granted(self, *_: object) -> Any:
            return Granted(())

    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    with pytest.raises(ApiError, match="not currently held"):
        escalation.check(Only(), ANN, "clusterroles", role)  # type: ignore[arg-type]
    escalation.check(Only(), ANN, "clusterroles", role, {"metadata": {"name": "r"}, "rules": []})  # type: ignore[arg-type]
    assert [(one.name, one.version) for one in asked] == [("", "*"), ("r", "*")]


@pytest.mark.parametrize("rest", ["a", "a/b"])
def test_more_of_a_path_is_still_about_the_resource(rest: str) -> None:
    talk = Asked(["get"])
    try:
        found = talk.ask("GET", f"{SPACE}/services/x/proxy/{rest}")
        assert found.status == 403
        assert 'cannot get resource "services/proxy"' in _message(found)
        assert talk.ask("GET", f"{SPACE}/configmaps/x/status/{rest}", user=ROOT).status == 404
    finally:
        talk.close()
