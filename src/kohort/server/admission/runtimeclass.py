"""RuntimeClass: a pod that names one gets its overhead and its nodes; one that does not exist is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.api.copying import copied
from kohort.server import status
from kohort.server.admission.attributes import CREATE

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.auth.lister import Lister


class RuntimeClass:
    repeatable = True

    def __init__(self, lister: Lister) -> None:
        self._lister = lister

    async def admit(self, attrs: AdmissionAttributes) -> None:
        found = self._class(attrs)
        if found is None or attrs.object is None:
            return
        spec = attrs.object["spec"]
        fixed = (found.get("overhead") or {}).get("podFixed")
        if fixed:
            if spec.get("overhead") and spec["overhead"] != fixed:
                raise _rejected(attrs, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")
            spec["overhead"] = copied(fixed)
        _schedule(attrs, spec, found.get("scheduling") or {})

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return (attrs.resource.group, attrs.resource.plural, attrs.operation) == ("", "pods", CREATE)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if not _is_new_pod(attrs) or not ((attrs.object or {}).get("spec") or {}).get("overhead"):
            return
        if not ((self._class(attrs) or {}).get("overhead") or {}).get("podFixed"):
            raise _rejected(attrs, "Pod Overhead set without corresponding RuntimeClass defined Overhead")

    def _class(self, attrs: AdmissionAttributes) -> Object | None:
        """None: it names none."""
        name = ((attrs.object or {}).get("spec") or {}).get("runtimeClassName") if _is_new_pod(attrs) else None
        if not name:
            return None
        found = self._lister.get("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            raise _rejected(attrs, f'RuntimeClass "{name}" not found')
        return found


def _is_new_pod(attrs: AdmissionAttributes) -> bool:
    return (
        attrs.operation == CREATE
        and not attrs.subresource
        and (attrs.resource.group, attrs.resource.plural) == ("", "pods")
        and attrs.object is not None
    )


def _schedule(attrs: AdmissionAttributes, spec: dict[str, Any], scheduling: dict[str, Any]) -> None:
    """Where pods of the class may go, beside what they ask for themselves."""
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            mine = f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            raise _rejected(attrs, f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; {mine}")
    if scheduling.get("nodeSelector"):
        spec["nodeSelector"] = {**selector, **scheduling["nodeSelector"]}
    had = spec.get("tolerations") or []
    more = [copied(one) for one in scheduling.get("tolerations") or () if one not in had]
    if more:
        spec["tolerations"] = [*had, *more]


def _rejected(attrs: AdmissionAttributes, why: str) -> status.ApiError:
    return status.forbidden("", "pods", attrs.name, f"pod rejected: {why}")
