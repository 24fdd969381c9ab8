"""What webhooks for pods of the kinds' operators do on other clusters, such as JobSet's exclusive placement.

The rules are those of the bundles (`kohort.api.pod_rules`); here they are applied. Rules of the kinds themselves are in
their `admission.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api.pod_rules import pod_rules
from kohort.server import status
from kohort.server.admission.attributes import CREATE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.storage_codec import StoreLister


class PodWebhooks:
    repeatable = True

    def __init__(self, lister: StoreLister) -> None:
        self._lister = lister

    async def admit(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is not None and _is_new_pod(attrs):
            for rules in pod_rules():
                rules.admit_pod(attrs.object, attrs.namespace, self)

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return _is_new_pod(attrs)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is None or not _is_new_pod(attrs):
            return
        for rules in pod_rules():
            why = rules.refuse_pod(attrs.object, attrs.namespace, self)
            if why:
                raise status.forbidden(attrs.resource.group, attrs.resource.plural, attrs.name, why)

    # ---- what the rules may look at

    def pods_with_prefix(self, namespace: str, prefix: str) -> Sequence[Object]:
        return self._lister.list_with_prefix("", "pods", namespace, prefix)

    def node_labels(self, name: str) -> Mapping[str, str] | None:
        found = self._lister.get("", "nodes", "", name)
        return None if found is None else found["metadata"].get("labels") or {}

    # ---- for the pod admission cache

    def depends_on_others(self, annotations: Collection[str]) -> bool:
        """Other pods decide about one with these annotations: nothing of it can be kept for the next."""
        return any(rules.depends_on_others(annotations) for rules in pod_rules())

    def mark(self, pod: Object) -> None:
        """What the rules write into each pod's own metadata."""
        for rules in pod_rules():
            rules.mark(pod)


def _is_new_pod(attrs: AdmissionAttributes) -> bool:
    resource = attrs.resource
    return attrs.operation == CREATE and not attrs.subresource and (resource.group, resource.kind) == ("", "Pod")
