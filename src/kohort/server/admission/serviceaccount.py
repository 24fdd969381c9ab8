"""ServiceAccount: every pod runs as one, with a token of it mounted.

Not among the plugins by default: there are no containers to read a mounted token, and without a controller that makes
the account `default` in new namespaces no pod could be created.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from kohort.server import status
from kohort.server.admission.attributes import CREATE

if TYPE_CHECKING:
    from kohort.api.kind import Object
    from kohort.server.admission.attributes import AdmissionAttributes
    from kohort.server.auth.lister import Lister

MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_MIRROR: Final = "kubernetes.io/config.mirror"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SECONDS: Final = 3607  # an hour, and a mark by which the token request is told from others


class ServiceAccount:
    """`mount`: also the volume with the token, and where containers find it."""

    def __init__(self, lister: Lister, *, mount: bool = True) -> None:
        self._lister, self._mount = lister, mount

    async def admit(self, attrs: AdmissionAttributes) -> None:
        pod = attrs.object
        if pod is None or attrs.operation != CREATE or attrs.subresource or not _is_pods(attrs):
            return
        spec = pod.setdefault("spec", {})
        if _MIRROR in (pod["metadata"].get("annotations") or {}):
            return
        name = spec.setdefault("serviceAccountName", "default")
        spec.setdefault("serviceAccount", name)
        account = self._account(attrs, name)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(one) for one in account["imagePullSecrets"]]
        if self._mount and _mounts(account, spec):
            mount(spec, "kube-api-access-" + "".join(secrets.choice(_LETTERS) for _ in range(5)))

    def concerns(self, attrs: AdmissionAttributes) -> bool:
        return attrs.operation == CREATE and not attrs.subresource and _is_pods(attrs)

    async def validate(self, attrs: AdmissionAttributes) -> None:
        if attrs.object is None or attrs.operation != CREATE or attrs.subresource or not _is_pods(attrs):
            return
        if _MIRROR not in (attrs.object["metadata"].get("annotations") or {}):
            self._account(attrs, attrs.object["spec"].get("serviceAccountName", ""))

    def _account(self, attrs: AdmissionAttributes, name: str) -> Object:
        found = self._lister.get("", "serviceaccounts", attrs.namespace, name)
        if found is None:
            why = f'error looking up service account {attrs.namespace}/{name}: serviceaccount "{name}" not found'
            raise status.forbidden("", "pods", attrs.name, why)
        return found


def _is_pods(attrs: AdmissionAttributes) -> bool:
    return (attrs.resource.group, attrs.resource.plural) == ("", "pods")


def _mounts(account: Object, spec: dict[str, Any]) -> bool:
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def mount(spec: dict[str, Any], name: str) -> None:
    """A projected volume with token, authority and namespace, for every container that has nothing at that path."""
    needed = False
    for member in ("initContainers", "containers"):
        for container in spec.get(member) or ():
            mounts = container.setdefault("volumeMounts", [])
            if not any(one.get("mountPath") == MOUNT_PATH for one in mounts):
                mounts.append({"name": name, "readOnly": True, "mountPath": MOUNT_PATH})
                needed = True
    if not needed:
        return
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    root = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _SECONDS, "path": "token"}},
        {"configMap": root},
        {"downwardAPI": {"items": [namespace]}},
    ]
    spec.setdefault("volumes", []).append({"name": name, "projected": {"sources": sources, "defaultMode": 420}})
