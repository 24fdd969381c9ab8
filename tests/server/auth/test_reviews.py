"""Reviews, as recorded from Kubernetes 1.37."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.server.auth.objects import Memory
from tests.server.auth.test_rbac import bind
from tests.server.auth.test_tokens import Desk

from kohort.kube.wire import User
from kohort.server.auth import bootstrap
from kohort.server.auth.rbac import Authorizer
from kohort.server.auth.reviews import Reviews
from kohort.server.status import ApiError

ALICE = User("alice", "alice", ("devs", "system:authenticated"))
PODS = {"namespace": "d", "verb": "list", "resource": "pods"}
DANGLING = '[clusterrole.rbac.authorization.k8s.io "nope" not found, role.rbac.authorization.k8s.io "nope2" not found]'


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def reviews(desk: Desk) -> Reviews:
    dangling = bind("ClusterRole/nope", "dang", "User/alice"), bind("Role/nope2", "dang", "User/alice", namespace="d")
    objects = Memory([*bootstrap.objects("1.37"), *dangling])
    return Reviews(Authorizer(objects), desk.authenticator, lambda: datetime(2026, 11, 15, 22, 34, 53, tzinfo=UTC))


ACCESS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("SelfSubjectAccessReview", {"resourceAttributes": PODS}, {"allowed": False, "reason": f"rbac: RBAC: {DANGLING}"}),
    ("SubjectAccessReview", {"user": "k", "groups": ["system:masters"], "resourceAttributes": PODS}, {"allowed": True}),
    (
        "SubjectAccessReview",
        {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "list", "resource": "pods"}},
        {
            "allowed": True,
            "reason": 'RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of ClusterRole '
            '"system:kube-scheduler" to User "system:kube-scheduler"',
        },
    ),
    (
        "SubjectAccessReview",
        {"user": "x", "groups": ["system:authenticated"], "nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
        {
            "allowed": True,
            "reason": 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to '
            'Group "system:authenticated"',
        },
    ),
    ("LocalSubjectAccessReview", {"user": "x", "resourceAttributes": PODS}, {"allowed": False}),
]


@pytest.mark.parametrize(("kind", "spec", "status"), ACCESS)
async def test_access_reviews(reviews: Reviews, kind: str, spec: dict[str, Any], status: dict[str, Any]) -> None:
    answer = await reviews.review(kind, {"spec": spec}, ALICE, "d")
    assert answer["apiVersion"] == "authorization.k8s.io/v1"
    assert (answer["kind"], answer["spec"], answer["status"]) == (kind, spec, status)


LEAD = '.authorization.k8s.io "" is invalid: '
ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("SubjectAccessReview", {"spec": {"user": "x"}}, f"spec: Invalid value: null: {ONE}"),
    (
        "SubjectAccessReview",
        {"spec": {"user": "x", "nonResourceAttributes": {"path": "/a", "verb": "get"}, "resourceAttributes": PODS}},
        f'spec: Invalid value: {{"Path":"/a","Verb":"get"}}: {ONE}',
    ),
    (
        "SubjectAccessReview",
        {"spec": {"resourceAttributes": PODS}},
        'spec.user: Invalid value: "": at least one of user or group must be specified',
    ),
    (
        "SubjectAccessReview",
        {"metadata": {"name": "foo"}, "spec": {"user": "x", "resourceAttributes": PODS}},
        'metadata: Invalid value: {"name":"foo"}: must be empty',
    ),
    (
        "LocalSubjectAccessReview",
        {"spec": {"user": "x", "resourceAttributes": {**PODS, "namespace": "e"}}},
        'spec.resourceAttributes.namespace: Invalid value: "e": must match metadata.namespace',
    ),
    (
        "LocalSubjectAccessReview",
        {"spec": {"user": "x", "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}},
        (
            'spec.nonResourceAttributes: Invalid value: {"Path":"/healthz","Verb":"get"}: disallowed on this kind of '
            "request"
        ),
    ),
    (
        "SubjectAccessReview",
        {
            "spec": {
                "user": "x",
                "resourceAttributes": {**PODS, "labelSelector": {"rawSelector": "a=b", "requirements": [{}]}},
            }
        },
        (
            'spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a=b": may not specified at the same '
            "time as requirements"
        ),
    ),
]


@pytest.mark.parametrize(("kind", "obj", "message"), MALFORMED)
async def test_malformed_questions(reviews: Reviews, kind: str, obj: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as error:
        await reviews.review(kind, obj, ALICE, "d")
    assert (error.value.code, error.value.status["message"]) == (422, LEAD + message)


async def test_rules_of_oneself(reviews: Reviews) -> None:
    answer = await reviews.review("SelfSubjectRulesReview", {"spec": {"namespace": "d"}}, ALICE)
    status = answer["status"]
    assert answer["spec"] == {}
    assert (status["incomplete"], status["evaluationError"]) == (False, DANGLING)
    create = {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}
    assert create in status["resourceRules"]
    assert {
        "verbs": ["get"],
        "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
    } in status["nonResourceRules"]
    with pytest.raises(ApiError, match="no namespace on request"):
        await reviews.review("SelfSubjectRulesReview", {"spec": {}}, ALICE)


async def test_who_am_i(reviews: Reviews) -> None:
    assert await reviews.review("SelfSubjectReview", {}, ALICE) == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2026-11-15T22:34:53Z"},
        "status": {"userInfo": {"username": "alice", "uid": "alice", "groups": ["devs", "system:authenticated"]}},
    }


async def test_whose_token(reviews: Reviews, desk: Desk) -> None:
    good = await reviews.review("TokenReview", {"spec": {"token": desk.token()}}, ALICE)
    assert good["status"]["authenticated"]
    assert good["status"]["user"]["username"] == "system:serviceaccount:d:sa"
    assert good["status"]["audiences"] == ["https://kubernetes.default.svc"]
    bad = await reviews.review("TokenReview", {"spec": {"token": "foo"}}, ALICE)
    assert bad["status"] == {"user": {}, "error": "invalid bearer token"}
    with pytest.raises(ApiError, match="token is required for TokenReview in authentication"):
        await reviews.review("TokenReview", {"spec": {}}, ALICE)
