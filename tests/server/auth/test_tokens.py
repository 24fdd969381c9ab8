"""Tokens: static ones, those of service accounts, and who a request is from."""

import json
from base64 import b64encode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.auth.objects import Memory, named

from kohort.kube.wire import User
from kohort.server.auth import jwt, tokens, users
from kohort.server.auth.authenticator import Authenticator, bearer
from kohort.server.auth.jwt import SigningKey, TokenError
from kohort.server.auth.serviceaccounts import ISSUER, ServiceAccountTokens
from kohort.server.status import ApiError

KEY = SigningKey.of(ec.generate_private_key(ec.SECP256R1()))
START = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Desk:
    """A server's desk for tokens, at a time that tests set."""

    def __init__(self, folder: Path) -> None:
        self.now = START
        self.objects = Memory([named("ServiceAccount", "sa", "d"), named("ServiceAccount", "default", "d")])
        self.key = SigningKey.ensure(folder / "sa.key")
        self.accounts = ServiceAccountTokens(self.key, self.objects, lambda: self.now)
        self.static = tokens.ensure(folder / "tokens.json")
        self.authenticator = Authenticator(tokens.load(folder / "tokens.json"), self.accounts)

    def token(self, name: str = "sa", **spec: Any) -> str:
        return str(self.accounts.request("d", name, {"spec": spec})["status"]["token"])

    def user(self, token: str) -> User | None:
        return self.authenticator.user({"authorization": f"Bearer {token}"})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# ---- static


def test_static_tokens_are_random_private_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    first = tokens.ensure(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert tokens.ensure(path) == first
    assert len(set(first.values())) == 2
    assert all(len(token) >= 43 for token in first.values())
    more = tokens.ensure(path, {**tokens.DEFAULT, "scheduler": User("system:kube-scheduler")})
    assert more["admin"] == first["admin"]
    assert len(more) == 3


def test_rubbish_in_the_file_of_tokens_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    path.write_text("[]")
    with pytest.raises(ValueError, match=r"tokens\.json: not a file of tokens"):
        tokens.ensure(path)


def test_who_has_a_static_token(desk: Desk) -> None:
    admin, viewer = desk.user(desk.static["admin"]), desk.user(desk.static["viewer"])
    assert admin is not None
    assert viewer is not None
    assert admin.groups == ("system:masters", "system:authenticated")
    assert viewer.groups == ("kohort:viewers", "system:authenticated")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("  Bearer   abc ", "abc"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic YTpi", None),
        (None, None),
        ("", None),
    ],
)
def test_authorization_header(header: str | None, token: str | None) -> None:
    assert bearer(header) == token


def test_no_credentials_is_anonymous_and_bad_ones_are_nobody(desk: Desk) -> None:
    assert desk.authenticator.user({}) == users.ANONYMOUS
    assert desk.authenticator.user({"authorization": "Basic YTpi"}) == users.ANONYMOUS
    assert desk.user("bad") is None
    assert desk.user("a.b.c") is None
    assert desk.user("ünïcode") is None
    assert Authenticator(tokens.StaticTokens({}), anonymous=False).user({}) is None


def _part(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


OURS = _part(json.dumps({"iss": ISSUER}).encode())
DEEP = _part(b"[" * 20_000)
NONSENSE = [
    ".".join(parts)
    for parts in (
        (_part(b"{}"), DEEP, "x"),
        (_part(b"{}"), _part(b'{"iss": ["a"]}'), "x"),
        (_part(b"{}"), _part(b'{"iss": {"a": 1}}'), "x"),
        (DEEP, OURS, "x"),
        (_part(b"{}"), OURS, ""),
        (_part(b'{"alg":"ES256"}'), OURS, _part(bytes(64))),
        (_part(b'{"alg":"HS256"}'), OURS, _part(bytes(64))),
        ("", "", ""),
        ("", "", "", ""),
        ("é", "é", "é"),
        ("\x00",),
    )
]


@pytest.mark.parametrize("token", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_nobody(desk: Desk, token: str) -> None:
    assert desk.user(token) is None


@given(st.text() | st.tuples(st.binary(), st.binary(), st.binary()).map(lambda parts: ".".join(map(_part, parts))))
@settings(max_examples=200, deadline=None)
def test_any_text_is_nobody(text: str) -> None:
    static = tokens.StaticTokens({"secret": User("x")})
    accounts = ServiceAccountTokens(KEY, Memory(), lambda: START)
    found = Authenticator(static, accounts).user({"authorization": f"Bearer {text}"})
    assert found in (None, users.ANONYMOUS)


# ---- TokenRequest, as recorded from Kubernetes 1.37


def test_token_request_answers_as_upstream(desk: Desk) -> None:
    answer = desk.accounts.request("d", "sa", {"spec": {}})
    token = answer["status"].pop("token")
    assert answer == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": "sa", "namespace": "d", "uid": "uid-sa", "creationTimestamp": "2026-11-15T12:00:00Z"},
        "spec": {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None},
        "status": {"expirationTimestamp": "2026-11-15T13:00:00Z"},
    }
    claims = jwt.peek(token)
    assert claims is not None
    assert len(claims.pop("jti")) == 36
    start = int(START.timestamp())
    assert claims == {
        "iss": ISSUER,
        "sub": "system:serviceaccount:d:sa",
        "aud": [ISSUER],
        "iat": start,
        "nbf": start,
        "exp": start + 3600,
        "kubernetes.io": {"namespace": "d", "serviceaccount": {"name": "sa", "uid": "uid-sa"}},
    }


def test_a_service_account_is_recognised_by_its_token(desk: Desk) -> None:
    user = desk.user(desk.token())
    assert user is not None
    assert (user.name, user.uid) == ("system:serviceaccount:d:sa", "uid-sa")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_a_token_ends(desk: Desk) -> None:
    token = desk.token(expirationSeconds=600)
    desk.now = START + timedelta(seconds=599)
    assert desk.user(token) is not None
    desk.now = START + timedelta(seconds=600)
    assert desk.user(token) is None


def test_a_token_of_another_folder_or_a_changed_one_is_nothing(desk: Desk, tmp_path: Path) -> None:
    token = desk.token()
    head, claims, signature = token.split(".")
    forged = (
        b64encode(json.dumps({"iss": ISSUER, "sub": "system:serviceaccount:d:default"}).encode()).decode().rstrip("=")
    )
    none = b64encode(b'{"alg":"none"}').decode().rstrip("=")
    other = Desk(tmp_path / "other")
    bad = [f"{head}.{forged}.{signature}", f"{none}.{claims}.", f"{none}.{claims}.{signature}", token + "x", token[:-4]]
    assert [desk.user(one) for one in bad] == [None] * 5
    assert other.user(token) is None


def test_the_key_is_kept(tmp_path: Path) -> None:
    token = Desk(tmp_path).token()
    assert (tmp_path / "sa.key").stat().st_mode & 0o777 == 0o600
    assert Desk(tmp_path).user(token) is not None


def test_audiences(desk: Desk) -> None:
    token = desk.token(audiences=["zz", "a"])
    assert desk.user(token) is None, "not for this server"
    user, fitting = desk.authenticator.token(token, ["zz", "y"])
    assert (user.name, fitting) == ("system:serviceaccount:d:sa", ("zz",))
    with pytest.raises(TokenError) as error:
        desk.authenticator.token(desk.token(), ["zz"])
    assert str(error.value) == (
        f'[invalid bearer token, token audiences ["{ISSUER}"] is invalid for the target audiences ["zz"]]'
    )


@pytest.mark.parametrize("given", [f"x{ISSUER}y", f"{ISSUER}2", {ISSUER: 1}, 5, None])
def test_an_audience_that_is_a_string_is_the_whole_string(desk: Desk, given: Any) -> None:
    claims = jwt.peek(desk.token())
    assert claims is not None
    assert desk.user(desk.key.sign({**claims, "aud": ISSUER})) is not None
    assert desk.user(desk.key.sign({**claims, "aud": given})) is None


def test_a_token_bound_to_a_pod_goes_with_the_pod(desk: Desk) -> None:
    pod = desk.objects.put(named("Pod", "p", "d", spec={"serviceAccountName": "sa", "nodeName": "n7"}))
    token = desk.token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    claims = jwt.peek(token)
    assert claims is not None
    assert claims["kubernetes.io"]["pod"] == {"name": "p", "uid": "uid-p"}
    assert claims["kubernetes.io"]["node"] == {"name": "n7"}
    user = desk.user(token)
    assert user is not None
    extra = {key.rpartition("/")[2]: values for key, values in user.extra.items()}
    assert (extra["pod-name"], extra["pod-uid"], extra["node-name"]) == (("p",), ("uid-p",), ("n7",))
    desk.objects.put({**pod, "metadata": {**pod["metadata"], "uid": "another"}})
    assert desk.user(token) is None, "another pod of the same name"
    desk.objects.drop(pod)
    assert desk.user(token) is None


def test_a_token_goes_with_its_account(desk: Desk) -> None:
    token = desk.token()
    assert desk.user(token) is not None
    desk.objects.drop(named("ServiceAccount", "sa", "d"))
    assert desk.user(token) is None


def test_kubelets_number_lasts_a_year(desk: Desk) -> None:
    desk.objects.put(named("Pod", "p2", "d", spec={}))
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p2"}
    answer = desk.accounts.request("d", "default", {"spec": {"boundObjectRef": reference, "expirationSeconds": 3607}})
    claims = jwt.peek(answer["status"]["token"])
    assert claims is not None
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    assert answer["status"]["expirationTimestamp"] == "2026-11-15T13:00:07Z"


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("nosa", {}, 404, 'serviceaccounts "nosa" not found'),
    (
        "sa",
        {"expirationSeconds": 5},
        422,
        (
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: '
            "may not specify a duration less than 10 minutes"
        ),
    ),
    ("sa", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}, 404, 'pods "nope" not found'),
    (
        "sa",
        {"boundObjectRef": {"kind": "Foo", "apiVersion": "v1", "name": "x"}},
        400,
        "cannot bind token to object of type /v1, Kind=Foo",
    ),
    (
        "sa",
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p2"}},
        400,
        'cannot bind token for serviceaccount "sa" to pod running with different serviceaccount name.',
    ),
    (
        "default",
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p2", "uid": "123"}},
        409,
        (
            'Operation cannot be fulfilled on Pod "p2": the UID in the bound object reference (123) does not match the '
            "UID in record. The object might have been deleted and then recreated"
        ),
    ),
]


@pytest.mark.parametrize(("account", "spec", "code", "message"), REFUSED)
def test_token_requests_that_upstream_refuses(
    desk: Desk, account: str, spec: dict[str, Any], code: int, message: str
) -> None:
    desk.objects.put(named("Pod", "p2", "d", spec={"serviceAccountName": "default"}))
    with pytest.raises(ApiError) as error:
        desk.accounts.request("d", account, {"spec": spec})
    assert (error.value.code, error.value.status["message"]) == (code, message)


def test_a_token_in_a_secret_is_good_while_it_is_there(desk: Desk) -> None:
    lead = "kubernetes.io/serviceaccount/"
    claims = {
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:d:sa",
        f"{lead}namespace": "d",
        f"{lead}secret.name": "sa-token",
        f"{lead}service-account.name": "sa",
        f"{lead}service-account.uid": "uid-sa",
    }
    token = desk.key.sign(claims)
    assert desk.user(token) is None
    secret = desk.objects.put(named("Secret", "sa-token", "d", data={"token": b64encode(token.encode()).decode()}))
    user = desk.user(token)
    assert user is not None
    assert user.name == "system:serviceaccount:d:sa"
    desk.objects.drop(secret)
    assert desk.user(token) is None


def test_public_key_as_others_read_it(desk: Desk) -> None:
    key = desk.key.jwks()["keys"][0]
    assert (key["kty"], key["crv"], key["alg"], key["kid"]) == ("EC", "P-256", "ES256", desk.key.id)
    configuration = jwt.openid_configuration(ISSUER, "https://127.0.0.1:1")
    assert configuration["jwks_uri"] == "https://127.0.0.1:1/openid/v1/jwks"
