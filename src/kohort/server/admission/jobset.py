"""What JobSet's webhook for pods does on other clusters: exclusive placement.

The rules are `kohort.kinds.jobset.api.placement`; here they are applied. Those of JobSets themselves are in the kind's
`admission.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api.later import module
from kohort.server import status
from kohort.server.admission.attributes import CREATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kohort.api.kind import Object
    from kohort.kinds.jobset.api import placement
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.storage_codec import StoreLister
else:
    placement = module("kohort.kinds.jobset.api.placement")


class JobSetWebhooks:
    repeatable = True

    def __init__(self, lister: StoreLister) -> None:
        self._lister = lister

    async def admit(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is not None and _is_new_pod(attrs):
            placement.complete(attrs.object, self._leader(attrs.object, attrs.namespace), self._labels_of)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is not None and _is_new_pod(attrs) and placement.is_follower(attrs.object):
            why = placement.refusal(attrs.object, self._leader(attrs.object, attrs.namespace))
            if why:
                raise status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, why)

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


def _is_new_pod(attrs: AdmissionAttributes) -> bool:
    resource = attrs.resource
    return attrs.operation == CREATE and not attrs.subresource and (resource.group, resource.kind) == ("", "Pod")
