"""metadata.managedFields of every write: which structure, which endpoint, which manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api import apply, storage_form
from kohort.server import timestamps

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.resources import Resource, Resources


class FieldManager:
    """Keeps managed fields up to date. A resource whose structure is not known has none."""

    def __init__(self, minor: str, resources: Resources) -> None:
        self._minor, self._resources = minor, resources
        self._targets: dict[tuple[Resource, str], apply.Target | None] = {}
        self._changes = resources.changes

    def target(self, resource: Resource, subresource: str = "") -> apply.Target | None:
        """Where a write goes. Targets name the versions that are served, so they last until resources change."""
        if self._changes != self._resources.changes:
            self._targets.clear()
            self._changes = self._resources.changes
        key = (resource, subresource)
        if key not in self._targets:
            self._targets[key] = self._build(resource, subresource)
        return self._targets[key]

    def _build(self, resource: Resource, subresource: str) -> apply.Target | None:
        structure = resource.structure or apply.native(self._minor, resource.api_version, resource.kind)
        if structure is None:
            return None
        versions = frozenset(
            one.api_version
            for one in self._resources.every()
            if (one.group, one.plural) == (resource.group, resource.plural)
        )
        reset = apply.reset_fields(
            resource.group,
            resource.kind,
            subresource,
            status="status" in resource.subresources,
            custom=not resource.native,
        )
        return apply.Target(
            resource.api_version, resource.kind, structure, subresource, reset, versions, dynamic=not resource.native
        )

    def update(self, resource: Resource, subresource: str, old: Object | None, new: Object, manager: str) -> Object:
        """`new` with the managers after a write that is not an apply."""
        target = self.target(resource, subresource)
        if target is None:
            return new
        try:
            shown = storage_form.to_response(resource.rules, new)  # a null that the server writes has an owner, too
            kept = apply.update_managed_fields(old, shown, of=target, manager=manager, now=timestamps.stamp())
            return {**new, "metadata": kept["metadata"]}
        except (ValueError, KeyError, TypeError):
            # What somebody wrote there by hand is no list of managers: upstream drops it, too.
            new["metadata"].pop("managedFields", None)
            return new
