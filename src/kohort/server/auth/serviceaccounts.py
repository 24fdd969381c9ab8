"""Tokens of service accounts: given out by TokenRequest, bound to objects, good until they end or those are gone."""

from __future__ import annotations

import hashlib
import hmac
import uuid
from base64 import b64decode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import FieldError, invalid
from kohort.apimachinery import times
from kohort.kube.wire import User
from kohort.server import status
from kohort.server.auth import jwt, users
from kohort.server.auth.jwt import Claims, TokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kohort.api.kind import Object
    from kohort.server.auth.jwt import SigningKey
    from kohort.server.auth.lister import Lister

ISSUER: Final = "https://kubernetes.default.svc"
_LEGACY_ISSUER: Final = "kubernetes/serviceaccount"  # of tokens that a controller manager puts into secrets
_LEGACY: Final = "kubernetes.io/serviceaccount/"
_EXTRA: Final = "authentication.kubernetes.io/"
_SHORTEST, _DEFAULT, _LONGEST = 600, 3600, 1 << 32
# A kubelet asks for this odd number; the token then lasts a year, for clients that never read it again.
_KUBELETS, _YEAR = 3607, 365 * 24 * 3600
_REMEMBERED: Final = 4096
_BOUND: Final = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


class ServiceAccountTokens:
    """Gives tokens out and recognises them."""

    def __init__(
        self,
        key: SigningKey,
        lister: Lister,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        issuer: str = ISSUER,
        audiences: Sequence[str] = (),
    ) -> None:
        self._key, self._lister, self._now = key, lister, now
        self.issuer = issuer
        self.audiences = tuple(audiences) or (issuer,)
        self._verified: dict[bytes, Claims] = {}  # signatures are checked once; everything else every time

    # ---- giving out

    def request(self, namespace: str, name: str, request: Object) -> Object:
        """POST serviceaccounts/NAME/token: the TokenRequest with its answer."""
        account = self._lister.get("", "serviceaccounts", namespace, name)
        if account is None:
            raise status.not_found("", "serviceaccounts", name)
        spec = request.get("spec") or {}
        seconds = spec.get("expirationSeconds")
        seconds = _DEFAULT if seconds is None else seconds
        problems = _problems(seconds)
        if problems:
            raise status.invalid("authentication.k8s.io", "TokenRequest", "", problems)
        audiences = list(spec.get("audiences") or self.audiences)
        reference = spec.get("boundObjectRef") or None
        moment = int(self._now().timestamp())
        claims = self._claims(account, audiences, moment, seconds)
        if reference is not None:
            claims["kubernetes.io"] |= self._bound(account, reference)
        if seconds == _KUBELETS and "pod" in claims["kubernetes.io"]:
            claims["kubernetes.io"]["warnafter"] = moment + seconds
            claims["exp"] = moment + _YEAR
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": account["metadata"]["uid"],
            "creationTimestamp": _text(moment),
        }
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": meta | {"creationTimestamp": _text(moment)},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {"token": self._key.sign(claims), "expirationTimestamp": _text(moment + seconds)},
        }

    def _claims(self, account: Object, audiences: list[str], moment: int, seconds: int) -> Claims:
        meta = account["metadata"]
        return {
            "iss": self.issuer,
            "sub": users.service_account_name(meta["namespace"], meta["name"]),
            "aud": audiences,
            "iat": moment,
            "nbf": moment,
            "exp": moment + seconds,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {"namespace": meta["namespace"], "serviceaccount": _reference(account)},
        }

    def _bound(self, account: Object, reference: Mapping[str, Any]) -> Claims:
        kind, version, name = reference.get("kind", ""), reference.get("apiVersion", ""), reference.get("name", "")
        if version != "v1" or kind not in _BOUND:
            group, _, plain = version.rpartition("/")
            raise status.bad_request(f"cannot bind token to object of type {group}/{plain}, Kind={kind}")
        found = self._find(kind, account["metadata"]["namespace"], name)
        if found is None:
            raise status.not_found("", _BOUND[kind], name)
        wanted = reference.get("uid")
        if wanted and wanted != found["metadata"].get("uid"):
            why = (
                f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise status.conflict("", kind, name, why)
        claims = {kind.lower(): _reference(found)}
        if kind == "Pod":
            claims |= self._of_pod(account, found)
        return claims

    def _of_pod(self, account: Object, pod: Object) -> Claims:
        spec, name = pod.get("spec") or {}, account["metadata"]["name"]
        if (spec.get("serviceAccountName") or "default") != name:
            text = f'cannot bind token for serviceaccount "{name}" to pod running with different serviceaccount name.'
            raise status.bad_request(text)
        node = spec.get("nodeName")
        if not node:
            return {}
        found = self._lister.get("", "nodes", "", node)
        return {"node": _reference(found) if found is not None else {"name": node}}

    def _find(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._lister.get("", _BOUND[kind], "" if kind == "Node" else namespace, name)

    # ---- recognising

    def ours(self, token: str) -> bool:
        """Whether a token claims to be one of these; then a fault in it is worth telling."""
        claims = jwt.peek(token)
        return claims is not None and claims.get("iss") in (self.issuer, _LEGACY_ISSUER)

    def user(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, tuple[str, ...]]:
        """Whose token it is, and for which of the audiences it is good (ours, if none are named). TokenError if not."""
        claims = self._verify(token)
        wanted = tuple(audiences) or self.audiences
        if claims.get("iss") == _LEGACY_ISSUER:
            return self._legacy(claims, token), self.audiences
        if claims.get("iss") != self.issuer:
            raise TokenError(f"the issuer is {claims.get('iss')!r}, not {self.issuer!r}")
        self._in_time(claims)
        given = claims.get("aud") or []
        given = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        fitting = tuple(one for one in wanted if one in given)
        if not fitting:
            shown, target = " ".join(f'"{one}"' for one in given), " ".join(f'"{one}"' for one in wanted)
            raise TokenError(f"token audiences [{shown}] is invalid for the target audiences [{target}]")
        return self._still_bound(claims), fitting

    def _verify(self, token: str) -> Claims:
        key = hashlib.sha256(token.encode()).digest()
        claims = self._verified.get(key)
        if claims is None:
            claims = self._key.verify(token)
            if len(self._verified) >= _REMEMBERED:
                del self._verified[next(iter(self._verified))]
            self._verified[key] = claims
        return claims

    def _in_time(self, claims: Claims) -> None:
        moment = self._now().timestamp()
        if not isinstance(claims.get("exp"), int) or claims["exp"] <= moment:
            raise TokenError("service account token has expired")
        if (claims.get("nbf") or 0) > moment:
            raise TokenError("service account token is not valid yet")

    def _still_bound(self, claims: Claims) -> User:
        bound = claims.get("kubernetes.io") or {}
        namespace, account = bound.get("namespace", ""), bound.get("serviceaccount") or {}
        self._same("serviceaccounts", namespace, account, f"service account {namespace}/{account.get('name')}")
        extra: dict[str, tuple[str, ...]] = {f"{_EXTRA}credential-id": (f"JTI={claims.get('jti')}",)}
        pod, node, secret = bound.get("pod"), bound.get("node"), bound.get("secret")
        if secret:
            self._same("secrets", namespace, secret, f"secret {namespace}/{secret.get('name')}")
        if pod:
            self._same("pods", namespace, pod, f"pod {namespace}/{pod.get('name')}")
            extra |= {f"{_EXTRA}pod-name": (pod["name"],), f"{_EXTRA}pod-uid": (pod["uid"],)}
        if node:
            if not pod:  # a pod's token outlives the node's object
                self._same("nodes", "", node, f"node {node.get('name')}")
            extra |= {f"{_EXTRA}node-name": (node["name"],)}
            if node.get("uid"):
                extra |= {f"{_EXTRA}node-uid": (node["uid"],)}
        return _user(namespace, account["name"], account["uid"], extra)

    def _same(self, resource: str, namespace: str, reference: Mapping[str, Any], what: str) -> None:
        found = self._lister.get("", resource, namespace, reference.get("name", ""))
        if found is None:
            raise TokenError(f"{what} is gone")
        if found["metadata"].get("uid") != reference.get("uid"):
            raise TokenError(f"{what} is another one now: its UID is not the token's")
        gone = found["metadata"].get("deletionTimestamp")
        # A minute is left for what a pod or an account does last.
        if gone and self._now().timestamp() > times.moment(gone).timestamp() + 60:
            raise TokenError(f"{what} is being deleted")

    def _legacy(self, claims: Claims, token: str) -> User:
        """A token kept in a secret: it is good while the secret still holds it."""
        namespace, name = claims.get(f"{_LEGACY}namespace", ""), claims.get(f"{_LEGACY}service-account.name", "")
        secret_name, uid = claims.get(f"{_LEGACY}secret.name", ""), claims.get(f"{_LEGACY}service-account.uid", "")
        secret = self._lister.get("", "secrets", namespace, secret_name) or {}
        held = _base64((secret.get("data") or {}).get("token") or "")
        if not hmac.compare_digest(held, token.encode()):
            raise TokenError(f"secret {namespace}/{secret_name} does not hold this token")
        self._same("serviceaccounts", namespace, {"name": name, "uid": uid}, f"service account {namespace}/{name}")
        return _user(namespace, name, uid, {})


def _user(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]]) -> User:
    groups = (*users.service_account_groups(namespace), users.AUTHENTICATED)
    return User(users.service_account_name(namespace, name), uid, groups, extra)


def _base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""


def _reference(obj: Object) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"].get("uid", "")}


def _text(moment: int) -> str:
    return times.seconds(datetime.fromtimestamp(moment, UTC))


def _problems(seconds: Any) -> list[FieldError]:
    path = "spec.expirationSeconds"
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        return [invalid(path, seconds, "must be a whole number of seconds")]
    if seconds < _SHORTEST:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []
