"""Who is let in: by a link that works once, or by a token of the cluster. After that a cookie says who it is."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kohort.web.access import HOLDS, Access, Sight

if TYPE_CHECKING:
    from kohort.kube.clock import Clock

LASTS: Final = 24 * 3600.0  # seconds
_MOST: Final = 1000  # sessions at once; the oldest goes


@dataclass(slots=True)
class Session:
    id: str
    began: float
    user: Any = None
    token: str = ""
    checked: float = 0.0
    sight: Sight = field(default_factory=Sight)


class Sessions:
    def __init__(self, access: Access, clock: Clock) -> None:
        self.access, self._clock = access, clock
        self._links: list[str] = []
        self._known: dict[str, Session] = {}

    def link(self) -> str:
        """A secret that lets one browser in."""
        made = secrets.token_urlsafe(32)
        self._links.append(made)
        return made

    def enter_by_link(self, secret: str) -> Session | None:
        for known in self._links:
            if hmac.compare_digest(known.encode(), secret.encode(errors="replace")):
                self._links.remove(known)
                return self._begin(None, "")
        return None

    async def enter_by_token(self, token: str) -> Session | None:
        user = await self.access.user(token)
        return self._begin(user, token) if user is not None else None

    def _begin(self, user: Any, token: str) -> Session:
        now = self._clock.monotonic()
        made = Session(secrets.token_urlsafe(32), now, user, token, now)
        made.sight.name = (user or {}).get("username", "")
        while len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known)))
        self._known[made.id] = made
        return made

    async def find(self, cookie: str) -> Session | None:
        """The session of a cookie, if it still holds: a token that has ended ends it."""
        found = self._known.get(cookie)
        if found is None:
            return None
        now = self._clock.monotonic()
        if now - found.began > LASTS:
            self._known.pop(cookie, None)
            return None
        if self.access.by_token and now - found.checked > HOLDS:
            found.user = await self.access.user(found.token)
            found.checked = now
            if found.user is None:
                self._known.pop(cookie, None)
                return None
        return found

    def leave(self, cookie: str) -> None:
        self._known.pop(cookie, None)
