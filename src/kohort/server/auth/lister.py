"""How authentication, authorization and admission read what the server has stored: a protocol, not the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.api.kind import Object


class Lister(Protocol):
    """Committed objects by API group and resource. Nobody changes what comes back."""

    def get(self, group: str, resource: str, namespace: str, name: str) -> Object | None: ...

    def list(self, group: str, resource: str, namespace: str | None = None) -> Sequence[Object]:
        """`namespace`: None for all of them."""

    def version(self, group: str, resource: str) -> int:
        """Another number whenever an object of this resource has changed since."""
