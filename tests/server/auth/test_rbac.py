"""Decisions over stored roles and bindings; refusals and reasons in the words recorded from Kubernetes 1.37."""

import time
from typing import Any

import pytest
from tests.server.auth.objects import Memory, Object, named

from kohort.kube.wire import User
from kohort.server.auth import aggregation, bootstrap, escalation
from kohort.server.auth.attributes import AuthorizerAttributes, forbidden
from kohort.server.auth.rbac import GROUP, Authorizer
from kohort.server.status import ApiError

V1 = f"{GROUP}/v1"
ALICE = User("alice", groups=("devs", "system:authenticated"))
MINORS = ("1.35", "1.36", "1.37")


def role(name: str, *rules: dict[str, list[str]], namespace: str = "", **rest: Any) -> Object:
    kind = "Role" if namespace else "ClusterRole"
    return named(kind, name, namespace, V1, rules=list(rules), **rest)


def rule(verbs: str, resources: str = "pods", groups: tuple[str, ...] = ("",), **rest: list[str]) -> dict[str, Any]:
    return {"verbs": verbs.split(), "apiGroups": list(groups), "resources": resources.split(), **rest}


def bind(to: str, name: str, *subjects: str, namespace: str = "") -> Object:
    """`to`: "ClusterRole/x"; a subject: "User/a", "ServiceAccount/ns/a"."""
    kind, _, target = to.partition("/")
    listed = []
    for subject in subjects:
        sort, *parts = subject.split("/")
        listed.append({"kind": sort, "name": parts[-1], **({"namespace": parts[0]} if len(parts) == 2 else {})})
    reference = {"apiGroup": GROUP, "kind": kind, "name": target}
    what = "RoleBinding" if namespace else "ClusterRoleBinding"
    return named(what, name, namespace, V1, subjects=listed, roleRef=reference)


def ask(
    authorizer: Authorizer, user: User, verb: str, resource: str = "pods", namespace: str = "", **more: str
) -> bool:
    resource, _, subresource = resource.partition("/")
    wish = AuthorizerAttributes(verb, resource=resource, subresource=subresource, namespace=namespace, **more)
    return authorizer.allows(user, wish)[0]


# ---- decisions


def test_cluster_binding_reaches_everywhere_and_a_namespaced_one_its_namespace() -> None:
    authorizer = Authorizer(
        Memory(
            [
                role("reader", rule("get list")),
                role("writer", rule("create"), namespace="d"),
                bind("ClusterRole/reader", "all", "User/alice"),
                bind("Role/writer", "here", "Group/devs", namespace="d"),
                bind("ClusterRole/reader", "bob-here", "User/bob", namespace="d"),
            ]
        )
    )
    assert ask(authorizer, ALICE, "get", namespace="d")
    assert ask(authorizer, ALICE, "list")
    assert ask(authorizer, ALICE, "create", namespace="d")
    assert not ask(authorizer, ALICE, "create", namespace="e")
    assert not ask(authorizer, ALICE, "create")
    bob = User("bob")
    assert ask(authorizer, bob, "get", namespace="d")
    assert not ask(authorizer, bob, "get", namespace="e")
    assert not ask(authorizer, bob, "list"), "all namespaces is the cluster's"


def test_service_accounts_as_subjects() -> None:
    authorizer = Authorizer(
        Memory(
            [
                role("reader", rule("get")),
                bind("ClusterRole/reader", "named", "ServiceAccount/d/sa"),
                bind("ClusterRole/reader", "own", "ServiceAccount/other", namespace="e"),
                bind("ClusterRole/reader", "group", "Group/system:serviceaccounts:f"),
            ]
        )
    )

    def account(namespace: str, name: str) -> User:
        return User(f"system:serviceaccount:{namespace}:{name}", groups=(f"system:serviceaccounts:{namespace}",))

    assert ask(authorizer, account("d", "sa"), "get")
    assert not ask(authorizer, account("d", "other"), "get")
    assert ask(authorizer, account("e", "other"), "get", namespace="e"), "without a namespace: the binding's"
    assert ask(authorizer, account("f", "any"), "get")


def test_a_role_is_not_a_cluster_role_of_the_same_name() -> None:
    authorizer = Authorizer(
        Memory(
            [
                role("x", rule("get"), namespace="d"),
                role("x", rule("list")),
                bind("Role/x", "a", "User/alice", namespace="d"),
            ]
        )
    )
    assert ask(authorizer, ALICE, "get", namespace="d")
    assert not ask(authorizer, ALICE, "list", namespace="d")


def test_system_masters_may_everything() -> None:
    assert Authorizer(Memory()).allows(User("x", groups=("system:masters",)), AuthorizerAttributes("any", "thing")) == (
        True,
        "",
    )


def test_what_is_written_counts_at_once() -> None:
    objects = Memory([role("reader", rule("get"))])
    authorizer = Authorizer(objects)
    assert not ask(authorizer, ALICE, "get")
    binding = objects.put(bind("ClusterRole/reader", "b", "User/alice"))
    assert ask(authorizer, ALICE, "get")
    objects.put(role("reader", rule("list")))
    assert not ask(authorizer, ALICE, "get")
    assert ask(authorizer, ALICE, "list")
    objects.drop(binding)
    assert not ask(authorizer, ALICE, "list")


def test_reason_names_the_first_binding_that_allows() -> None:
    authorizer = Authorizer(
        Memory(
            [
                role("r", rule("get")),
                role("w", rule("*", "*")),
                bind("ClusterRole/r", "a", "User/zoe", "Group/devs", "User/alice"),
                bind("ClusterRole/w", "b", "User/alice"),
                bind("ClusterRole/w", "c", "User/bob", "ServiceAccount/sa", namespace="d"),
            ]
        )
    )
    assert authorizer.allows(ALICE, AuthorizerAttributes("get", resource="pods"))[1] == (
        'RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "r" to Group "devs"'
    )
    assert authorizer.allows(ALICE, AuthorizerAttributes("list", resource="pods"))[1] == (
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "w" to User "alice"'
    )
    account = User("system:serviceaccount:d:sa")
    assert authorizer.allows(account, AuthorizerAttributes("list", resource="pods", namespace="d"))[1] == (
        'RBAC: allowed by RoleBinding "c/d" of ClusterRole "w" to ServiceAccount "sa/d"'
    )


def test_roles_that_are_not_there_are_named() -> None:
    authorizer = Authorizer(
        Memory(
            [
                bind("ClusterRole/nope", "dang", "User/alice"),
                bind("Role/nope2", "dang", "User/alice", namespace="d"),
            ]
        )
    )
    wish = AuthorizerAttributes("list", resource="pods", namespace="d")
    allowed, reason = authorizer.allows(ALICE, wish)
    assert not allowed
    assert forbidden(ALICE, wish, reason).status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "d": '
        'rbac: RBAC: [clusterrole.rbac.authorization.k8s.io "nope" not found, '
        'role.rbac.authorization.k8s.io "nope2" not found]',
        "reason": "Forbidden",
        "details": {"kind": "pods"},
        "code": 403,
    }
    assert authorizer.allows(ALICE, AuthorizerAttributes("list", resource="pods"))[1] == (
        'rbac: RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found'
    )


REFUSALS = [
    (
        AuthorizerAttributes("get", "foo.com", "bars", namespace="d", name="x"),
        (
            'bars.foo.com "x" is forbidden: User "alice" cannot get resource "bars" in API group "foo.com" '
            'in the namespace "d"'
        ),
        {"name": "x", "group": "foo.com", "kind": "bars"},
    ),
    (
        AuthorizerAttributes("get", "", "pods", "log", "d", "x"),
        'pods "x" is forbidden: User "alice" cannot get resource "pods/log" in API group "" in the namespace "d"',
        {"name": "x", "kind": "pods"},
    ),
    (
        AuthorizerAttributes("list", resource="nodes"),
        'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
        {"kind": "nodes"},
    ),
    (AuthorizerAttributes("get", path="/metrics"), 'forbidden: User "alice" cannot get path "/metrics"', {}),
]


@pytest.mark.parametrize(("wish", "message", "details"), REFUSALS)
def test_refusals_in_upstreams_words(wish: AuthorizerAttributes, message: str, details: dict[str, str]) -> None:
    status = forbidden(ALICE, wish).status
    assert (status["message"], status["details"]) == (message, details)


# ---- aggregation


def test_aggregated_roles_gather_by_label_also_each_other() -> None:
    def gathering(name: str, label: str, *rules: dict[str, Any]) -> Object:
        return role(name, *rules, aggregationRule={"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]})

    top, middle = gathering("top", "to-top", rule("never")), gathering("middle", "to-middle")
    middle["metadata"]["labels"] = {"to-top": "true"}
    top["metadata"]["labels"] = {"to-middle": "true"}  # a circle
    leaf, twin = role("leaf", rule("get")), role("twin", rule("get"), rule("list"))
    leaf["metadata"]["labels"] = {"to-middle": "true"}
    twin["metadata"]["labels"] = {"to-middle": "true", "to-top": "true"}
    found = aggregation.effective([top, middle, leaf, twin])
    assert found["middle"] == [rule("get"), rule("list")]
    assert found["top"] == [rule("get"), rule("list")]
    assert [one["metadata"]["name"] for one in aggregation.outdated([top, middle, leaf, twin])] == ["top", "middle"]
    settled = [{**one, "rules": found[one["metadata"]["name"]]} for one in (top, middle, leaf, twin)]
    assert aggregation.outdated(settled) == []


# ---- what every server starts with


def bootstrapped(minor: str = "1.37", *more: Object) -> Authorizer:
    return Authorizer(Memory([*bootstrap.objects(minor), *more]))


SCHEDULER, MANAGER = User("system:kube-scheduler"), User("system:kube-controller-manager")
NODE = User("system:node:n1", groups=("system:nodes",))
VIEWER = User("kohort:viewer", groups=("kohort:viewers", "system:authenticated"))
DEFAULTS = [
    (SCHEDULER, "create", "", "pods/binding", True),
    (SCHEDULER, "delete", "", "nodes", False),
    (MANAGER, "create", "", "serviceaccounts/token", True),
    (User("system:serviceaccount:kube-system:namespace-controller"), "deletecollection", "any", "things", True),
    (NODE, "update", "", "pods/status", True),
    (NODE, "delete", "", "namespaces", False),
    (VIEWER, "list", "", "pods", True),
    (VIEWER, "list", "scheduling.k8s.io", "workloads", True),
    (VIEWER, "list", "jobset.x-k8s.io", "jobsets", True),
    (VIEWER, "list", "", "nodes", True),
    (VIEWER, "list", "rbac.authorization.k8s.io", "clusterroles", True),
    (VIEWER, "list", "", "secrets", False),
    (VIEWER, "create", "", "serviceaccounts/token", False),
    (VIEWER, "create", "", "pods", False),
    (VIEWER, "create", "authorization.k8s.io", "selfsubjectaccessreviews", True),
    (User("nobody", groups=("system:unauthenticated",)), "list", "", "pods", False),
]


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize(("user", "verb", "group", "resource", "allowed"), DEFAULTS)
def test_bootstrap_roles(minor: str, user: User, verb: str, group: str, resource: str, allowed: bool) -> None:
    assert ask(bootstrapped(minor), user, verb, resource, group=group) is allowed


@pytest.mark.parametrize("minor", MINORS)
def test_view_edit_and_admin_in_a_namespace(minor: str) -> None:
    authorizer = bootstrapped(
        minor, *(bind(f"ClusterRole/{one}", one, f"User/{one}", namespace="d") for one in ("view", "edit", "admin"))
    )

    def may(user: str, verb: str, resource: str, group: str = "") -> bool:
        return ask(authorizer, User(user), verb, resource, "d", group=group)

    assert [may(one, "get", "pods") for one in ("view", "edit", "admin")] == [True, True, True]
    assert [may(one, "create", "pods") for one in ("view", "edit", "admin")] == [False, True, True]
    assert [may(one, "get", "secrets") for one in ("view", "edit", "admin")] == [False, True, True]
    assert [may(one, "create", "rolebindings", GROUP) for one in ("view", "edit", "admin")] == [False, False, True]
    assert [may(one, "create", "workloads", "scheduling.k8s.io") for one in ("view", "edit", "admin")] == [
        False,
        True,
        True,
    ]
    assert not ask(authorizer, User("admin"), "get", namespace="e")


def test_health_and_discovery_without_much() -> None:
    authorizer, anonymous = bootstrapped(), User("system:anonymous", groups=("system:unauthenticated",))
    assert authorizer.allows(anonymous, AuthorizerAttributes("get", path="/healthz"))[0]
    assert not authorizer.allows(anonymous, AuthorizerAttributes("get", path="/apis"))[0]
    assert authorizer.allows(ALICE, AuthorizerAttributes("get", path="/apis/apps/v1"))[0]


def test_bootstrap_objects_are_repaired_but_not_taken_back() -> None:
    wanted = next(one for one in bootstrap.objects("1.37") if one["metadata"]["name"] == "system:kube-scheduler")
    assert bootstrap.repaired(None, wanted) == wanted
    assert bootstrap.repaired(wanted, wanted) is None
    extra = rule("own")
    stored = {**wanted, "rules": [extra, *wanted["rules"][2:]]}
    repaired = bootstrap.repaired(stored, wanted)
    assert repaired is not None
    assert extra in repaired["rules"]
    assert bootstrap.repaired(repaired, wanted) is None
    off = {**stored, "metadata": {**stored["metadata"], "annotations": {}}}
    assert bootstrap.repaired(off, wanted) is None
    binding = next(
        one
        for one in bootstrap.objects("1.37")
        if (one["kind"], one["metadata"]["name"]) == ("ClusterRoleBinding", "system:discovery")
    )
    mended = bootstrap.repaired({**binding, "subjects": []}, binding)
    assert mended is not None
    assert mended["subjects"] == binding["subjects"]


# ---- escalation


BOB = User("bob", groups=("", "system:authenticated"))
WRITER = [
    role("rbac-w2", rule("create update get patch", "*", (GROUP,)), rule("get list")),
    bind("ClusterRole/rbac-w2", "bobw", "User/bob"),
]
LEAD = 'user "bob" (groups=["" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
ESCALATIONS: list[tuple[str, Object, int, str]] = [
    ("clusterroles", role("ok1", rule("get")), 0, ""),
    (
        "roles",
        role("bad3", rule("get", "secrets"), namespace="d"),
        403,
        f'roles.{GROUP} "bad3" is forbidden: {LEAD}{{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}}',
    ),
    (
        "clusterroles",
        role("bad2", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
        403,
        f'clusterroles.{GROUP} "bad2" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    ),
    (
        "rolebindings",
        bind("ClusterRole/cluster-admin", "bb", "User/bob", namespace="d"),
        403,
        (
            f'rolebindings.{GROUP} "bb" is forbidden: {LEAD}'
            '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
        ),
    ),
    (
        "clusterrolebindings",
        bind("ClusterRole/nonexist", "bb", "User/bob"),
        404,
        f'clusterrolebindings.{GROUP} "nonexist" not found',
    ),
    ("rolebindings", bind("ClusterRole/pods", "bb", "User/bob", namespace="d"), 0, ""),
]


@pytest.mark.parametrize(("resource", "obj", "code", "message"), ESCALATIONS)
def test_nobody_gives_away_what_they_do_not_have(resource: str, obj: Object, code: int, message: str) -> None:
    authorizer = bootstrapped("1.37", *WRITER, role("pods", rule("get")))
    if not code:
        escalation.check(authorizer, BOB, resource, obj)
        return
    with pytest.raises(ApiError) as error:
        escalation.check(authorizer, BOB, resource, obj)
    assert (error.value.code, error.value.status["message"]) == (code, message)


@pytest.mark.parametrize(
    ("verb", "resource", "obj"),
    [
        ("escalate", "clusterroles", role("x", rule("*", "*"))),
        ("bind", "clusterrolebindings", bind("ClusterRole/cluster-admin", "x", "User/bob")),
    ],
)
def test_escalate_and_bind_are_permissions_of_their_own(verb: str, resource: str, obj: Object) -> None:
    more = role("special", rule(verb, "clusterroles", (GROUP,))), bind("ClusterRole/special", "s", "User/bob")
    escalation.check(bootstrapped("1.37", *WRITER, *more), BOB, resource, obj)
    with pytest.raises(ApiError):
        escalation.check(bootstrapped("1.37", *WRITER), BOB, resource, obj)


def test_updates_that_give_nothing_away() -> None:
    authorizer = bootstrapped("1.37", *WRITER)
    old = role("big", rule("*", "*"))
    relabelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    escalation.check(authorizer, BOB, "clusterroles", relabelled, old)
    owned = bind("ClusterRole/cluster-admin", "x", "User/bob")
    collected = {**owned, "metadata": {**owned["metadata"], "ownerReferences": []}}
    escalation.check(authorizer, BOB, "clusterrolebindings", collected, owned)
    moved = {**owned, "subjects": [{"kind": "User", "name": "eve"}]}
    with pytest.raises(ApiError):
        escalation.check(authorizer, BOB, "clusterrolebindings", moved, owned)


# ---- speed


def test_thousands_of_decisions_a_second() -> None:
    many = [bind("ClusterRole/view", f"b{n}", f"User/u{n}", namespace=f"n{n % 50}") for n in range(2000)]
    authorizer = bootstrapped("1.37", *many)
    ask(authorizer, MANAGER, "get")
    began = time.process_time()
    for n in range(5000):
        ask(authorizer, MANAGER, "update", "pods/status", f"n{n % 50}", name=f"p{n}")
    seconds = time.process_time() - began
    assert seconds < 3.0, f"5,000 decisions took {seconds:.2f} s"
