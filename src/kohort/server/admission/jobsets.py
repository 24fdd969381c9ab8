"""What JobSet's webhooks do on other clusters: pods of exclusive placement, claims that are there already.

The rules are `kohort.kinds.jobset.api.placement` and `kohort.kinds.jobset.api.volumes`; here they are asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api.later import module
from kohort.server import status
from kohort.server.call import CREATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.api.kind import Object
    from kohort.kinds.jobset.api import names, placement, volumes
    from kohort.server.call import Call
    from kohort.server.objects import StoredObjects
else:
    names, placement, volumes = (
        module(f"kohort.kinds.jobset.api.{name}") for name in ("names", "placement", "volumes")
    )


class JobSets:
    def __init__(self, objects: StoredObjects) -> None:
        self._objects = objects

    async def admit(self, call: Call) -> None:
        if call.object is not None and _is_new(call, "", "Pod"):
            placement.complete(call.object, self._leader(call.object, call.namespace), self._labels_of)

    async def validate(self, call: Call) -> None:
        if call.object is None:
            return
        if _is_new(call, "", "Pod") and placement.is_follower(call.object):
            why = placement.refusal(call.object, self._leader(call.object, call.namespace))
            if why:
                raise status.forbidden(call.resource.group, call.resource.plural, call.name, why)
        if _is_new(call, names.GROUP, names.KIND):
            claims = self._claims(call.object, call.namespace)
            problems = list(volumes.against_existing(call.object, claims))
            if problems:
                raise status.invalid(call.resource.group, call.resource.kind, call.name, problems)

    def _leader(self, pod: Object, namespace: str) -> Object | None:
        """Only pods whose names begin as the leader's does are read: there may be thousands of others."""
        if not placement.is_follower(pod):
            return None
        prefix = placement.leader_prefix(pod)
        return placement.leader_of(pod, self._objects.beginning("", "pods", namespace, prefix)) if prefix else None

    def _labels_of(self, node: str) -> Mapping[str, str] | None:
        found = self._objects.get("", "nodes", "", node)
        return None if found is None else found["metadata"].get("labels") or {}

    def _claims(self, jobset: Object, namespace: str) -> list[Object]:
        wanted = volumes.claim_names(jobset)
        found = [self._objects.get("", "persistentvolumeclaims", namespace, name) for name in wanted]
        return [claim for claim in found if claim is not None]


def _is_new(call: Call, group: str, kind: str) -> bool:
    resource = call.resource
    return call.operation == CREATE and not call.subresource and (resource.group, resource.kind) == (group, kind)
