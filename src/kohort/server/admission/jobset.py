"""What JobSet's webhooks do on other clusters: pods of exclusive placement, claims that are there already.

The rules are `kohort.kinds.jobset.api.placement` and `kohort.kinds.jobset.api.volumes`; here they are applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api.later import module
from kohort.server import status
from kohort.server.admission.attributes import CREATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.api.kind import Object
    from kohort.kinds.jobset.api import constants, placement, volumes
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.storage_codec import StoreLister
else:
    constants, placement, volumes = (
        module(f"kohort.kinds.jobset.api.{name}") for name in ("constants", "placement", "volumes")
    )


class JobSetWebhooks:
    repeatable = True

    def __init__(self, lister: StoreLister) -> None:
        self._lister = lister

    async def admit(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is not None and _is_new(attrs, "", "Pod"):
            placement.complete(attrs.object, self._leader(attrs.object, attrs.namespace), self._labels_of)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is None:
            return
        if _is_new(attrs, "", "Pod") and placement.is_follower(attrs.object):
            why = placement.refusal(attrs.object, self._leader(attrs.object, attrs.namespace))
            if why:
                raise status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, why)
        if _is_new(attrs, constants.GROUP, constants.KIND):
            claims = self._claims(attrs.object, attrs.namespace)
            problems = list(volumes.against_existing(attrs.object, claims))
            if problems:
                raise status.invalid(attrs.resource.group, attrs.resource.kind, attrs.name, problems)

    def _leader(self, pod: Object, namespace: str) -> Object | None:
        """Only pods whose names begin as the leader's does are read: there may be thousands of others."""
        if not placement.is_follower(pod):
            return None
        prefix = placement.leader_prefix(pod)
        return (
            placement.leader_of(pod, self._lister.list_with_prefix("", "pods", namespace, prefix)) if prefix else None
        )

    def _labels_of(self, node: str) -> Mapping[str, str] | None:
        found = self._lister.get("", "nodes", "", node)
        return None if found is None else found["metadata"].get("labels") or {}

    def _claims(self, jobset: Object, namespace: str) -> list[Object]:
        wanted = volumes.claim_names(jobset)
        found = [self._lister.get("", "persistentvolumeclaims", namespace, name) for name in wanted]
        return [claim for claim in found if claim is not None]


def _is_new(attrs: AdmissionAttributes, group: str, kind: str) -> bool:
    resource = attrs.resource
    return attrs.operation == CREATE and not attrs.subresource and (resource.group, resource.kind) == (group, kind)
