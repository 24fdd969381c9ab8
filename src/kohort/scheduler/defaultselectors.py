"""Which selector stands for a pod: that of its Services and of the controller that made it.

kube-scheduler spreads pods without spread constraints of their own by such a selector, softly (its default profile).
"""

from __future__ import annotations

from typing import Any, Final

from kohort.apimachinery.labels import matches
from kohort.scheduler.model import Pod

Json = dict[str, Any]
KINDS: Final = frozenset({"ReplicationController", "ReplicaSet", "StatefulSet"})


class DefaultSelectors:
    """Services by namespace; controllers by kind and name."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, dict[str, str]]] = {}  # namespace -> name -> selector
        self._controllers: dict[tuple[str, str], Json] = {}  # kind, namespace/name -> label selector
        self.version = 0

    def set_service(self, key: str, selector: dict[str, str] | None) -> None:
        """None: there is no such Service, or it selects nothing."""
        namespace, name = key.split("/", 1)
        known = self._services.setdefault(namespace, {})
        if known.get(name) == selector:
            return
        self.version += 1
        if selector:
            known[name] = selector
        else:
            known.pop(name, None)

    def set_controller(self, kind: str, key: str, selector: Json | None) -> None:
        if selector and kind == "ReplicationController":
            selector = {"matchLabels": selector}
        if self._controllers.get((kind, key)) == selector:
            return
        self.version += 1
        if selector:
            self._controllers[kind, key] = selector
        else:
            self._controllers.pop((kind, key), None)

    def selector(self, pod: Pod) -> Json | None:
        """None: nobody selects it."""
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        wanted: dict[str, str] = {}
        for selector in self._services.get(namespace, {}).values():
            if matches({"matchLabels": selector}, labels):
                wanted |= selector
        rules: list[Json] = []
        for owner in pod.metadata.owner_references or ():
            if owner.controller and owner.kind in KINDS:
                found = self._controllers.get((owner.kind, f"{namespace}/{owner.name}")) or {}
                wanted |= found.get("matchLabels") or {}
                rules += found.get("matchExpressions") or ()
        if not wanted and not rules:
            return None
        return {"matchLabels": wanted} | ({"matchExpressions": rules} if rules else {})
