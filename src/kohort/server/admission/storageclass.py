"""DefaultStorageClass: a claim that names no class gets the default one, if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kohort.api.core.storageclass import default_class, names_no_class
from kohort.server.admission.attributes import CREATE

if TYPE_CHECKING:
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.auth.lister import Lister


class DefaultStorageClass:
    repeatable = True

    def __init__(self, lister: Lister) -> None:
        self._lister = lister

    async def admit(self, attrs: AdmissionAttributes) -> None:
        claim = attrs.object
        if claim is None or attrs.operation != CREATE or attrs.subresource:
            return
        if (attrs.resource.group, attrs.resource.plural) != ("", "persistentvolumeclaims"):
            return
        spec = claim.setdefault("spec", {})
        if not names_no_class(claim):
            return
        found = default_class(self._lister.list("storage.k8s.io", "storageclasses"))
        if found is not None:
            spec["storageClassName"] = found["metadata"]["name"]
