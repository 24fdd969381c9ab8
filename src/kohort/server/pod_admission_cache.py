"""The pod admission cache: pods of one template are decoded, defaulted and validated once.

A controller makes thousands of pods that differ in their names only. What the pipeline does to a pod's spec depends on
the spec and on a few other things that rarely change (priority classes); when all of that is as it was for an earlier
pod, so is the result. With limit ranges, mutating webhooks or mutating policies the cache is not used. Names, labels,
annotations, the owner, the hostname and the group are each pod's own: they are checked for each, and validating
admission sees each pod whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kohort.api import formats
from kohort.api import meta as metadata
from kohort.server import status, storage_codec, timestamps
from kohort.server.admission.pod_webhooks import PodWebhooks
from kohort.server.codec import encode
from kohort.server.remembered import Key, Remembered

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.options import WriteOptions
    from kohort.server.resources import Resource
    from kohort.server.store import Store

_PER_POD_METADATA: Final = {"name", "generateName", "namespace", "labels", "annotations"}  # may differ from pod to pod
_SHARED_METADATA: Final = ("ownerReferences", "finalizers")
_MUTATING_WEBHOOKS: Final = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
MUTATING: Final = (_MUTATING_WEBHOOKS, "admissionregistration.k8s.io/mutatingadmissionpolicies")
VALIDATING: Final = (
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
)
_MOMENT: Final = "(moment)"  # no name of a field, no manager
_DEPENDENCIES: Final = ("scheduling.k8s.io/priorityclasses", _MUTATING_WEBHOOKS)

_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode
UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _SharedParts(NamedTuple):
    """Spec and owner of a pod without what differs from pod to pod."""

    spec: Any
    owner: Any


def _shared_parts(body: Object) -> _SharedParts | None:
    """None: something in it can only be validated in full."""
    spec, owner = _common_spec(body.get("spec")), _common_owner(body["metadata"].get("ownerReferences"))
    return None if spec is None or owner is None else _SharedParts(spec, owner)


def _common_spec(given: Any) -> dict[str, Any] | None:
    if not isinstance(given, dict):
        return None
    spec: dict[str, Any] = given
    if "hostname" in spec:
        if not isinstance(spec["hostname"], str) or formats.label(spec["hostname"]):
            return None
        spec = {**spec, "hostname": ""}
    if "schedulingGroup" in spec:
        group = spec["schedulingGroup"]
        name = group.get("podGroupName") if isinstance(group, dict) and len(group) == 1 else None
        if not isinstance(name, str) or formats.subdomain(name):
            return None
        spec = {**spec, "schedulingGroup": {"podGroupName": ""}}
    return spec


def _common_owner(owners: Any) -> dict[str, Any] | None:
    """Of the one owner; empty if there is none."""
    if not owners:
        return {} if owners is None else None
    if not isinstance(owners, list) or len(owners) != 1 or not isinstance(owners[0], dict):
        return None
    name, uid = owners[0].get("name"), owners[0].get("uid")
    if not isinstance(name, str) or not name or not isinstance(uid, str) or not UID.fullmatch(uid):
        return None
    return {**owners[0], "name": "", "uid": ""}


def _restore_per_pod(spec: dict[str, Any], given: dict[str, Any]) -> None:
    for name in ("hostname", "schedulingGroup"):
        if name in given and name in spec:
            spec[name] = given[name]


class _CachedPod(NamedTuple):
    """What is kept of the first pod: all but its metadata, its warnings, its managers, its owner's uid."""

    rest: bytes
    warnings: tuple[str, ...]
    managers: tuple[bytes, ...]  # the text between the moments
    owner: str

    def managed_for(self, body: Object, now: str) -> bytes:
        """Managers name an owner by its uid. They stay text: few read them, and they are two fifths of a pod."""
        text = now.encode().join(self.managers)
        if self.owner:
            owner = body["metadata"]["ownerReferences"][0]["uid"]
            text = text.replace(self.owner.encode(), owner.encode())
        return text


class PodAdmissionCache:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._pods: Remembered[_CachedPod] = Remembered()
        self._webhooks: list[PodWebhooks] = []
        self.allowed = True

    def use(self, plugins: list[Any]) -> None:
        """Admission changed: does the work of every mutating plugin follow from what is in the key (`repeatable`)?"""
        self._pods.clear()
        self._webhooks = [one for one in plugins if isinstance(one, PodWebhooks)]
        self.allowed = all(getattr(one, "repeatable", False) for one in plugins)

    def key(self, resource: Resource, body: Object, namespace: str, chosen: WriteOptions) -> Key | None:
        """What the result depends on; None: this one is decoded and validated in full."""
        if resource.table != "pods" or not self.allowed or any(self._store.table(name).size for name in MUTATING):
            return None
        if self._store.table("limitranges").items(namespace):  # they annotate what they fill in
            return None
        meta = body.get("metadata")
        if not isinstance(meta, dict) or not (
            meta.keys() <= _PER_POD_METADATA or meta.keys() - _PER_POD_METADATA <= set(_SHARED_METADATA)
        ):
            return None
        labels, annotations = _string_map_keys(meta.get("labels")), _string_map_keys(meta.get("annotations"))
        named = all(isinstance(meta.get(name, ""), str) for name in ("name", "generateName", "namespace"))
        if labels is None or annotations is None or not named or meta.get("namespace", namespace) != namespace:
            return None
        own = _shared_parts(body)
        if own is None or any(one.depends_on_others(annotations) for one in self._webhooks):
            return None
        rest = encode({name: value for name, value in body.items() if name not in ("metadata", "spec")})
        same = encode([own.spec, own.owner, meta.get("finalizers")])
        dependencies = tuple(self._store.table(name).changes for name in _DEPENDENCIES)
        generated = "generateName" in meta
        return (rest, same, labels, annotations, generated, namespace, chosen.manager, chosen.validation, dependencies)

    def add(self, key: Key, stored: Object, warnings: tuple[str, ...]) -> None:
        rest = {name: value for name, value in stored.items() if name not in ("metadata", "kind", "apiVersion")}
        meta = stored["metadata"]
        owners = meta.get("ownerReferences") or [{}]
        managers = encode([{**one, "time": _MOMENT} for one in meta.get("managedFields") or ()])
        between = tuple(managers.split(_MOMENT.encode()))
        self._pods.keep(key, _CachedPod(encode(rest), warnings, between, str(owners[0].get("uid") or "")))

    def build(self, key: Key, resource: Resource, body: Object, namespace: str, name: str) -> Object | None:
        """A pod as full decoding and validation would leave it, before validating admission; None if none is cached."""
        found = self._pods.get(key)
        if found is None:
            return None
        given = {key: value for key, value in body["metadata"].items() if value not in ("", {}, [], None)}
        now = timestamps.stamp()
        meta: Object = {**given, "name": name, "namespace": namespace, "generation": 1}
        managers = found.managed_for(body, now)
        if managers != b"[]":
            looked_at = any(self._store.table(name).size for name in VALIDATING)
            meta["managedFields"] = _decode(managers) if looked_at else msgspec.Raw(managers)
        meta["creationTimestamp"] = now
        rest = storage_codec.decode(found.rest)
        _restore_per_pod(rest["spec"], body["spec"])
        pod = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta, **rest}
        for one in self._webhooks:
            one.mark(pod)
        problems = metadata.check_create(resource.rules, pod)
        if problems:
            raise status.invalid(resource.group, resource.kind, name, problems)
        return pod

    def warnings(self, key: Key) -> tuple[str, ...]:
        return self._pods[key].warnings


def _string_map_keys(value: Any) -> tuple[str, ...] | None:
    """The keys of a map of texts; None if it is not one."""
    if value is None:
        return ()
    if not isinstance(value, dict) or not set(map(type, value.values())) <= {str}:
        return None
    return tuple(value)
