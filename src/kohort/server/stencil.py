"""Pods of one template are decoded, completed and judged once.

A controller makes thousands of pods that differ in their names only. What the pipeline does to a pod's spec depends on
the spec and on a few other things that rarely change (priority classes); when all of that is as it was for an earlier
pod, so is the result. With limit ranges or mutating webhooks every pod takes the long way. Names, labels and
annotations are checked for each pod, and validating admission sees each pod whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import meta as metadata
from kohort.server import ages, objects, status
from kohort.server.codec import encode

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.options import WriteOptions
    from kohort.server.resources import Resource
    from kohort.server.store import Store

_MOST: Final = 1024
_OWN: Final = {"name", "generateName", "namespace", "labels", "annotations"}  # may differ from pod to pod
_SAME: Final = ("ownerReferences", "finalizers")
_HOOKS: Final = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
_WORLD: Final = ("scheduling.k8s.io/priorityclasses", _HOOKS)
# Mutating plugins whose work follows from the tables above.
_KNOWN: Final = {
    "NamespaceLifecycle", "LimitRanger", "Scheduling", "MutatingWebhooks", "NoEscalation", "WebhookRules",
    "BesideRules",
}  # fmt: skip

Key = tuple[Any, ...]


class Stencils:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[Key, tuple[bytes, tuple[str, ...], list[Object]]] = {}
        self.allowed = True

    def use(self, plugins: list[Any]) -> None:
        """Admission changed: is every plugin one whose work can be repeated?"""
        self._known.clear()
        self.allowed = all(type(one).__name__ in _KNOWN for one in plugins)

    def key(self, resource: Resource, body: Object, namespace: str, chosen: WriteOptions) -> Key | None:
        """What the result depends on; None: this one takes the long way."""
        if resource.table != "pods" or not self.allowed or self._store.table(_HOOKS).size:
            return None
        if self._store.table("limitranges").items(namespace):  # they annotate what they fill in
            return None
        meta = body.get("metadata")
        if not isinstance(meta, dict) or not (meta.keys() <= _OWN or meta.keys() - _OWN <= set(_SAME)):
            return None
        labels, annotations = _texts(meta.get("labels")), _texts(meta.get("annotations"))
        named = all(isinstance(meta.get(name, ""), str) for name in ("name", "generateName", "namespace"))
        if labels is None or annotations is None or not named or meta.get("namespace", namespace) != namespace:
            return None
        rest = encode({name: value for name, value in body.items() if name != "metadata"})
        same = encode([meta.get(name) for name in _SAME])
        world = tuple(self._store.table(name).changes for name in _WORLD)
        generated = "generateName" in meta
        return (rest, same, labels, annotations, generated, namespace, chosen.manager, chosen.validation, world)

    def remember(self, key: Key, stored: Object, warnings: tuple[str, ...]) -> None:
        if len(self._known) >= _MOST:
            self._known.clear()
        rest = {name: value for name, value in stored.items() if name not in ("metadata", "kind", "apiVersion")}
        managers = stored["metadata"].get("managedFields") or []
        self._known[key] = (encode(rest), warnings, managers)

    def make(self, key: Key, resource: Resource, body: Object, namespace: str, name: str) -> Object | None:
        """A pod as the long way would leave it, before validating admission; None if there is no stencil."""
        found = self._known.get(key)
        if found is None:
            return None
        rest, _, managers = found
        given = {key: value for key, value in body["metadata"].items() if value not in ("", {}, [], None)}
        now = ages.stamp()
        meta: Object = {**given, "name": name, "namespace": namespace, "generation": 1}
        if managers:
            meta["managedFields"] = [{**one, "time": now} for one in managers]
        meta["creationTimestamp"] = now
        pod = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta, **objects.decode(rest)}
        problems = metadata.check_create(resource.rules, pod)
        if problems:
            raise status.invalid(resource.group, resource.kind, name, problems)
        return pod

    def warnings(self, key: Key) -> tuple[str, ...]:
        return self._known[key][1]


def _texts(value: Any) -> tuple[str, ...] | None:
    """The keys of a map of texts; None if it is not one."""
    if value is None:
        return ()
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        return None
    return tuple(value)
