"""Who a visitor is, and what of the cluster they may see.

On a machine of one's own a link lets in, and whoever has it sees what the dashboard sees. On a cluster the API server
is asked: TokenReview says who it is, SubjectAccessReview what they may read. Answers hold for a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kohort.kube.errors import KubeError

if TYPE_CHECKING:
    from kohort.kube.client import Client

HOLDS: Final = 60.0  # seconds
_AT_ONCE: Final = 8  # questions to the API server


@dataclass(slots=True)
class Sight:
    """`everything`: all namespaces. `changes` counts what is seen otherwise than before."""

    name: str = ""
    everything: bool = False
    nodes: bool = False
    namespaces: dict[str, bool] = field(default_factory=dict)
    changes: int = 0

    def may_see(self, namespace: str) -> bool:
        return self.everything or self.namespaces.get(namespace, False)


class Access:
    """Everybody who was let in sees everything."""

    by_token = False  # whether visitors show a token of the cluster

    async def user(self, token: str) -> Any | None:  # noqa: ARG002 - nobody has one here
        """Who has this token; None: nobody."""
        return None

    async def look(self, sight: Sight, user: Any, namespaces: Iterable[str]) -> None:  # noqa: ARG002
        """Brings what is seen up to date, for these namespaces."""
        sight.everything = sight.nodes = True

    async def may_get(self, user: Any, group: str, resource: str, namespace: str, name: str) -> bool:  # noqa: ARG002
        return True


class Reviewed(Access):
    """The API server decides."""

    by_token = True

    def __init__(self, client: Client) -> None:
        self._client = client
        self._answers: dict[tuple[Any, ...], tuple[float, bool]] = {}
        self._seats = asyncio.Semaphore(_AT_ONCE)

    async def user(self, token: str) -> Any | None:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token},
        }
        status = (await self._client.of(review).create(review)).get("status") or {}
        return status.get("user") if status.get("authenticated") else None

    async def look(self, sight: Sight, user: Any, namespaces: Iterable[str]) -> None:
        before = (sight.everything, sight.nodes, dict(sight.namespaces))
        everything, nodes = await asyncio.gather(
            self._may(user, verb="list", resource="pods"), self._may(user, verb="list", resource="nodes")
        )
        found: dict[str, bool] = {}
        if not everything:
            names = sorted(set(namespaces))
            asked = (self._may(user, verb="list", resource="pods", namespace=one) for one in names)
            found = dict(zip(names, await asyncio.gather(*asked), strict=True))
        sight.everything, sight.nodes = everything, nodes
        # A namespace that is new changes nothing of what was seen.
        sight.changes += before[:2] != (everything, nodes) or any(
            found.get(one, seen) != seen for one, seen in before[2].items()
        )
        sight.namespaces = found

    async def may_get(self, user: Any, group: str, resource: str, namespace: str, name: str) -> bool:
        return await self._may(user, verb="get", group=group, resource=resource, namespace=namespace, name=name)

    async def _may(self, user: Any, **attributes: str) -> bool:
        key = (user.get("username"), tuple(user.get("groups") or ()), *sorted(attributes.items()))
        now = self._client.clock.monotonic()
        known = self._answers.get(key)
        if known is not None and now - known[0] < HOLDS:
            return known[1]
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {
                "user": user.get("username", ""),
                "uid": user.get("uid", ""),
                "groups": user.get("groups") or [],
                "extra": user.get("extra") or {},
                "resourceAttributes": attributes,
            },
        }
        async with self._seats:
            try:
                status = (await self._client.of(review).create(review)).get("status") or {}
                allowed = bool(status.get("allowed")) and not status.get("denied")
            except KubeError:
                return False  # nobody has said yes; asked again the next time
        if len(self._answers) > 50_000:
            self._answers.clear()
        self._answers[key] = (now, allowed)
        return allowed
