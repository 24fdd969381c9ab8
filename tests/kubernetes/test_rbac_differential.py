"""RBAC beside real Kubernetes: random roles and bindings, random questions, the same answers.

KOHORT_RBAC_SEED repeats a run; the seed is in the output of a failure.
"""

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import random
import secrets
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.server.auth.objects import Memory, Object

from kohort.kube.wire import User
from kohort.server.auth import aggregation, bootstrap, escalation
from kohort.server.auth.attributes import AuthorizerAttributes
from kohort.server.auth.rbac import GROUP, Authorizer
from kohort.server.server import Server
from kohort.server.settings import Settings
from kohort.server.status import ApiError
from kohort.testing.client import Client
from kohort.testing.environment import Environment

QUESTIONS, WRITES = 500, 60
ROOT = f"/apis/{GROUP}/v1"
PLURALS = {"ClusterRole": "clusterroles", "Role": "roles"} | {
    "ClusterRoleBinding": "clusterrolebindings",
    "RoleBinding": "rolebindings",
}
VERBS = ["get", "list", "watch", "create", "update", "delete", "*", "use"]
GROUPS = ["", "apps", "example.org", "*"]
RESOURCES = ["pods", "pods/log", "pods/exec", "deployments", "deployments/scale", "*/scale", "*/log", "*", "widgets"]
NAMES = ["a", "b", "c"]
PATHS = ["/x", "/x/*", "/x/y", "/x/y/z", "/*", "*", "/metrics", "/x*"]
NAMESPACES = ["rbac-1", "rbac-2"]
USERS, TEAMS, ACCOUNTS = ["ann", "ben", "cat"], ["team-a", "team-b"], ["bot", "job"]


class Dice:
    """Random objects and questions from small vocabularies, so that they meet."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def some(self, values: list[str], most: int = 3) -> list[str]:
        return self.random.sample(values, self.random.randint(1, min(most, len(values))))

    def rule(self, *, cluster: bool) -> dict[str, Any]:
        if cluster and self.random.random() < 0.3:
            return {"verbs": self.some(VERBS), "nonResourceURLs": self.some(PATHS)}
        rule = {"verbs": self.some(VERBS), "apiGroups": self.some(GROUPS, 2), "resources": self.some(RESOURCES)}
        if self.random.random() < 0.3:
            rule["resourceNames"] = self.some(NAMES, 2)
        return rule

    def rules(self, *, cluster: bool) -> list[dict[str, Any]]:
        return [self.rule(cluster=cluster) for _ in range(self.random.randint(0, 3))]

    def subject(self) -> dict[str, Any]:
        kind = self.random.choice(["User", "Group", "ServiceAccount"])
        if kind == "ServiceAccount":
            return {
                "kind": kind,
                "name": self.random.choice(ACCOUNTS),
                "namespace": self.random.choice(NAMESPACES),
            }
        names = USERS if kind == "User" else [*TEAMS, "system:serviceaccounts:rbac-1"]
        return {"kind": kind, "apiGroup": GROUP, "name": self.random.choice(names)}

    def binding(self, name: str, namespace: str, roles: list[Object]) -> Object:
        fitting = [one for one in roles if one["metadata"].get("namespace", namespace) == namespace]
        fitting = fitting if namespace else [one for one in fitting if one["kind"] == "ClusterRole"]
        role = self.random.choice(fitting)
        target = role["metadata"]["name"] if self.random.random() < 0.9 else "rbac-missing"
        return made(
            "RoleBinding" if namespace else "ClusterRoleBinding",
            name,
            namespace,
            subjects=[self.subject() for _ in range(self.random.randint(0, 5))],
            roleRef={"apiGroup": GROUP, "kind": role["kind"], "name": target},
        )

    def objects(self) -> list[Object]:
        roles = [made("ClusterRole", f"rbac-c{n}", "", rules=self.rules(cluster=True)) for n in range(8)]
        for one in roles[:4]:
            one["metadata"]["labels"] = {"rbac-test": self.random.choice(["x", "y"])}
        for n in range(2):
            selector = {"matchLabels": {"rbac-test": self.random.choice(["x", "y"])}}
            gathers = {"clusterRoleSelectors": [selector]}
            roles.append(made("ClusterRole", f"rbac-sum{n}", "", rules=[], aggregationRule=gathers))
        for namespace in NAMESPACES:
            roles += [made("Role", f"rbac-r{n}", namespace, rules=self.rules(cluster=False)) for n in range(4)]
        places = ["", "", *NAMESPACES]
        return [*roles, *(self.binding(f"rbac-b{n}", self.random.choice(places), roles) for n in range(14))]

    def user(self) -> User:
        if self.random.random() < 0.3:
            namespace = self.random.choice(NAMESPACES)
            name = f"system:serviceaccount:{namespace}:{self.random.choice(ACCOUNTS)}"
            return User(name, groups=("system:serviceaccounts", f"system:serviceaccounts:{namespace}"))
        groups = [team for team in TEAMS if self.random.random() < 0.3]
        if self.random.random() < 0.02:
            groups.append("system:masters")
        return User(self.random.choice(USERS), groups=(*groups, "system:authenticated"))

    def wish(self) -> AuthorizerAttributes:
        verb = self.random.choice([*VERBS, "proxy"])
        if self.random.random() < 0.25:
            path = self.random.choice([*PATHS, "/x/yy", "/healthz", "/apis/apps", "/apisx"])
            return AuthorizerAttributes(verb, path=path)
        resource, _, subresource = self.random.choice([*RESOURCES, "pods/scale", "widgets/log", "secrets"]).partition(
            "/"
        )
        return AuthorizerAttributes(
            verb,
            self.random.choice([*GROUPS, "batch"]),
            resource,
            subresource,
            self.random.choice(["", *NAMESPACES, "rbac-3"]),
            self.random.choice(["", *NAMES, "d"]),
        )


def made(kind: str, name: str, namespace: str, **body: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, **body}


def place(obj: Object) -> str:
    namespace = obj["metadata"].get("namespace")
    plural = PLURALS[obj["kind"]]
    return f"{ROOT}/namespaces/{namespace}/{plural}" if namespace else f"{ROOT}/{plural}"


def stored(client: Client) -> Memory:
    """All roles and bindings of the server."""
    found = [
        {"apiVersion": f"{GROUP}/v1", "kind": kind, **item}
        for kind, plural in PLURALS.items()
        for item in client.get(f"{ROOT}/{plural}")["items"]
    ]
    return Memory(found)


def settled(client: Client) -> Memory:
    """What is stored once the controller has put the aggregated roles together: as we would, or it never ends."""
    end = time.monotonic() + 30
    while True:
        memory = stored(client)
        wrong = aggregation.outdated(memory.list(GROUP, "clusterroles"))
        if not wrong:
            return memory
        assert time.monotonic() < end, f"aggregated differently: {[one['metadata']['name'] for one in wrong]}"
        time.sleep(0.2)


def read_by_the_authorizer(client: Client, mark: str) -> None:
    """Returns once the authorizer has seen what is stored: it reads its four kinds from watches.

    A role and a binding of each scope, written last, are the mark: whoever sees them has seen what came before.
    """
    user, rules = User(f"seen-{mark}"), [{"verbs": ["use"], "apiGroups": ["example.org"], "resources": ["marks"]}]
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": user.name}]
    for kind, namespace in (("Role", NAMESPACES[0]), ("ClusterRole", "")):
        reference = {"apiGroup": GROUP, "kind": kind, "name": user.name}
        binding = made(f"{kind}Binding", user.name, namespace, subjects=subjects, roleRef=reference)
        for obj in (made(kind, user.name, namespace, rules=rules), binding):
            client.create(place(obj), obj)
        wish = AuthorizerAttributes("use", "example.org", "marks", namespace=namespace)
        end = time.monotonic() + 30
        while not asked(client, user, wish)["allowed"]:
            assert time.monotonic() < end, f"the authorizer has not seen {binding}"
            time.sleep(0.05)


def asked(client: Client, user: User, wish: AuthorizerAttributes) -> dict[str, Any]:
    spec: dict[str, Any] = {"user": user.name, "groups": list(user.groups)}
    if wish.path:
        spec["nonResourceAttributes"] = {"path": wish.path, "verb": wish.verb}
    else:
        spec["resourceAttributes"] = {key: value for key, value in wish._asdict().items() if value and key != "path"}
    answer: dict[str, Any] = client.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return answer["status"]


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get("KOHORT_RBAC_SEED") or secrets.randbelow(10**9))


@pytest.fixture(scope="module")
def world(kubernetes_environments: Callable[..., Environment], seed: int) -> tuple[Environment, Client, Memory, Dice]:
    env = kubernetes_environments("1.37", ("kcm",))
    client, dice = env.client(), Dice(seed)
    print(f"KOHORT_RBAC_SEED={seed}")
    for namespace in (*NAMESPACES, "rbac-3"):
        client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    for obj in dice.objects():
        client.create(place(obj), obj)
    memory = settled(client)
    read_by_the_authorizer(client, "questions")
    return env, client, memory, dice


def test_random_questions_get_the_same_answers(world: tuple[Environment, Client, Memory, Dice], seed: int) -> None:
    _, client, memory, dice = world
    authorizer = Authorizer(memory)
    wrong, allowed = [], 0
    for _ in range(QUESTIONS):
        user, wish = dice.user(), dice.wish()
        theirs, ours = asked(client, user, wish), authorizer.allows(user, wish)
        allowed += theirs["allowed"]
        if theirs["allowed"] != ours[0]:
            wrong.append((user, wish, theirs, ours))
    assert not wrong, f"KOHORT_RBAC_SEED={seed}: {len(wrong)} of {QUESTIONS} differ: {wrong[:5]}"
    assert QUESTIONS // 100 < allowed < QUESTIONS, f"KOHORT_RBAC_SEED={seed}: {allowed} allowed says little"


def test_random_grants_are_refused_alike(world: tuple[Environment, Client, Memory, Dice], seed: int) -> None:
    """A user who may write roles and bindings, and little else, tries to give things away."""
    env, client, _, dice = world
    power = {"verbs": ["create", "bogus"], "apiGroups": [GROUP], "resources": ["*"]}
    drawn = (dice.rule(cluster=True) for _ in iter(int, 1))
    held = [power, *itertools.islice((one for one in drawn if not _gives_all_away(one)), 6)]
    client.create(f"{ROOT}/clusterroles", made("ClusterRole", "rbac-writer", "", rules=held))
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "rbac-writer"}
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": "rbac-ann"}]
    client.create(
        f"{ROOT}/clusterrolebindings",
        made("ClusterRoleBinding", "rbac-writer", "", subjects=subjects, roleRef=reference),
    )
    memory = settled(client)
    read_by_the_authorizer(client, "grants")
    authorizer, user = Authorizer(memory), User("rbac-ann", groups=("system:authenticated",))
    roles = [dict(one, kind="ClusterRole") for one in memory.list(GROUP, "clusterroles")]
    wrong, refused = [], 0
    for n in range(WRITES):
        obj = (
            made("ClusterRole", f"rbac-w{n}", "", rules=dice.rules(cluster=True))
            if dice.random.random() < 0.6
            else dice.binding(f"rbac-w{n}", "", [one for one in roles if one["metadata"]["name"].startswith("rbac-")])
        )
        code, message = _write_as(env, user.name, obj)
        try:
            escalation.check(authorizer, user, PLURALS[obj["kind"]], obj)
            ours = (201, "")
        except ApiError as error:
            ours = (error.code, error.status["message"])
        refused += code == 403
        if (code, message) != ours:
            wrong.append((obj, (code, message), ours))
    assert not wrong, f"KOHORT_RBAC_SEED={seed}: {len(wrong)} of {WRITES} differ: {wrong[:3]}"
    assert 0 < refused < WRITES, f"KOHORT_RBAC_SEED={seed}: {refused} refused says little"


def _gives_all_away(rule: dict[str, Any]) -> bool:
    """Whether whoever has it may write every role: with escalate or bind nothing is refused."""
    verbs, groups, resources = (set(rule.get(key, ())) for key in ("verbs", "apiGroups", "resources"))
    return "*" in verbs and bool(groups & {"*", GROUP}) and "*" in resources


def _write_as(env: Environment, user: str, obj: Object) -> tuple[int, str]:
    """The code and message of a dry-run creation as somebody else."""
    context = ssl.create_default_context(cafile=str(env.ca_file))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    parts = urlsplit(env.url)
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=30)
    headers = {
        "Authorization": f"Bearer {env.token}",
        "Impersonate-User": user,
        "Content-Type": "application/json",
    }
    try:
        connection.request("POST", place(obj) + "?dryRun=All", json.dumps(obj), headers)
        answer = connection.getresponse()
        body = json.loads(answer.read())
    finally:
        connection.close()
    return answer.status, "" if answer.status == 201 else body["message"]


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_shipped_roles_are_those_of_the_real_server(
    kubernetes_environments: Callable[..., Environment], minor: str
) -> None:
    client = kubernetes_environments(minor).client()
    end = time.monotonic() + 20
    while not client.get(f"{ROOT}/namespaces/kube-system/rolebindings")["items"]:
        assert time.monotonic() < end
        time.sleep(0.2)
    real = {
        (kind, item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for kind, plural in PLURALS.items()
        for item in client.get(f"{ROOT}/{plural}")["items"]
        if (item["metadata"].get("labels") or {}).get("kubernetes.io/bootstrapping")
    }
    shipped = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for one in bootstrap.objects(minor)
        if "kubernetes.io/bootstrapping" in one["metadata"]["labels"]
    }
    assert set(shipped) == set(real)
    for key, one in shipped.items():
        for member in ("subjects", "roleRef", "aggregationRule"):
            assert one.get(member) == real[key].get(member), key
        if not one.get("aggregationRule"):
            assert (one.get("rules") or []) == (real[key].get("rules") or []), key


# ---- kubectl, which asks reviews and tokens of both


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Path]:
    """Our server on a port, in a thread; gives the kubeconfig."""
    ready, end = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with Server(Settings(folder, port=0, in_memory=True)):
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(30)
        yield folder / "kubeconfig"
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


SETUP = [
    "create namespace team",
    "create serviceaccount bot -n team",
    "create role reader -n team --verb=get,list --resource=pods,pods/log,deployments.apps",
    "create rolebinding reader -n team --role=reader --serviceaccount=team:bot --group=devs",
    "create clusterrolebinding kim-views --clusterrole=view --user=kim",
]
QUESTIONS_BY_KUBECTL = [
    "auth can-i list pods -n team --as=system:serviceaccount:team:bot",
    "auth can-i get pods --subresource=log -n team --as=x --as-group=devs",
    "auth can-i delete pods -n team --as=system:serviceaccount:team:bot",
    "auth can-i list secrets --as=kim",
    "auth can-i list podgroups.scheduling.k8s.io --as=kim",
    "auth can-i get /healthz --as=nobody",
    "auth can-i get /metrics --as=nobody",
    "auth can-i * * --as=kim",
    "auth can-i * *",
    "auth can-i impersonate users --as=kim",
    "auth whoami --as=kim --as-group=a --as-group=b --as-uid=7 -o json",
    "get secrets --as=kim",
    "get pods -n team --as=eve",
    "delete namespace default",
    "create token nobody -n team",
    "create token bot -n team --duration=5s",
    "create rolebinding more -n team --clusterrole=admin --user=bob --as=kim",
    "auth can-i --list -n team --as=x --as-group=devs",
]


def test_kubectl_cannot_tell_us_apart(kubernetes_environments: Callable[..., Environment], tmp_path: Path) -> None:
    env = kubernetes_environments("1.37", ("kcm",))
    kubectl = str(env.assets.path("kubectl"))

    def run(config: Path, line: str) -> tuple[int, list[str], str]:
        done = subprocess.run(
            [kubectl, f"--kubeconfig={config}", *line.split()],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        lines = [one for one in done.stdout.splitlines() if "creationTimestamp" not in one]
        return done.returncode, sorted(lines), done.stderr

    with served(tmp_path) as config:
        for line in SETUP:
            theirs, ours = run(env.kubeconfig, line), run(config, line)
            assert ours == theirs, line
            assert ours[0] == 0, ours
        read_by_the_authorizer(env.client(), "kubectl")
        for line in QUESTIONS_BY_KUBECTL:
            assert run(config, line) == run(env.kubeconfig, line), line
        code, token, _ = run(config, "create token bot -n team --duration=20m")
        assert (code, token[0].count(".")) == (0, 2)
        shown = run(config, f"--token={token[0]} auth whoami")  # instead of the file's
        assert ["Username", "system:serviceaccount:team:bot"] in [one.split() for one in shown[1]], shown
