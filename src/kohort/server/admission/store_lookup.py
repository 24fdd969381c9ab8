"""The store as what compilers of workloads look other objects up in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api import registry
from kohort.gang.compile import Lookup

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.auth.lister import Lister
    from kohort.server.resources import Resource, Resources


class StoreLookup(Lookup):
    """What is in the store, by kind. Of kinds that several groups have, the one that this project knows is meant."""

    def __init__(self, lister: Lister, resources: Resources) -> None:
        super().__init__()
        self._stored, self._resources = lister, resources

    def _resource(self, kind: str) -> Resource | None:
        found = [one for one in self._resources.every() if one.kind == kind and one.stored]
        return next((one for one in found if one.group in registry.groups()), found[0] if found else None)

    def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        resource = self._resource(kind)
        return self._stored.get(resource.group, resource.plural, namespace or "", name) if resource else None

    def every(self, kind: str, namespace: str | None = None) -> list[Object]:
        resource = self._resource(kind)
        return list(self._stored.list(resource.group, resource.plural, namespace)) if resource else []
