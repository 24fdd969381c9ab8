"""The endpoints of this package: reviews, tokens of service accounts, and the public half of their key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.api import admit
from kohort.server import status
from kohort.server.auth import jwt, reviews
from kohort.server.registry import generic
from kohort.server.request_body import decode_body, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from kohort.api.kind import Kind, Object
    from kohort.server.api import Api
    from kohort.server.auth.jwt import SigningKey
    from kohort.server.auth.reviews import Reviews
    from kohort.server.auth.serviceaccounts import ServiceAccountTokens
    from kohort.server.requestinfo import RequestInfo

_REVIEWS: Final = (
    "subjectaccessreviews",
    "localsubjectaccessreviews",
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
    "selfsubjectreviews",
    "tokenreviews",
)


def install(
    api: Api, answers: Reviews, accounts: ServiceAccountTokens, key: SigningKey, url: Callable[[], str]
) -> None:
    """Make an API answer them. `url`: where clients find it."""
    minor = api.ctx.release.minor
    request = generic(minor, reviews.AUTHENTICATION, "v1", "TokenRequest", "tokenrequests", True, True)

    def body(info: RequestInfo, kind: Kind) -> Object:
        """Decoded by the kind's own structure, so that what follows can rely on types."""
        given = decode_body(info)
        given.pop("status", None)
        read = admit.decode_create(given, api.ctx, kind=kind)
        if read.object is None:
            raise refused(read)
        info.warnings += read.warnings
        return read.object

    async def review(info: RequestInfo) -> tuple[int, Object]:
        if info.user is None:
            raise status.unauthorized()
        asked = body(info, info.resource.rules)
        return 201, await answers.review(info.resource.kind, asked, info.user, info.namespace)

    async def token(info: RequestInfo) -> tuple[int, Object]:
        return 201, accounts.request(info.namespace, info.name, body(info, request))

    for plural in _REVIEWS:
        api.special[plural, ""] = review
    api.special["serviceaccounts", "token"] = token
    api.discovery.fixed["/openid/v1/jwks"] = key.jwks
    api.discovery.fixed["/.well-known/openid-configuration"] = lambda: jwt.openid_configuration(accounts.issuer, url())
