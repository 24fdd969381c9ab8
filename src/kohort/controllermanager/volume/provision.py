"""Volumes that are made for claims: the class `standard`, and what a volume of it looks like.

Nothing is stored anywhere: pods are played, and so are their volumes. A volume can be used from every node that its
class allows, as network storage can, so that a claim never decides where a gang goes.
"""

from __future__ import annotations

from typing import Any, Final

from kohort.api.core.storageclass import IS_DEFAULT, is_default
from kohort.api.kind import Object
from kohort.api.objects import meta_of, name_of, namespace_of, uid_of
from kohort.kube.client import Client
from kohort.kube.errors import ApiError
from kohort.place.claims import provisioned_terms

PROVISIONER: Final = "kohort.dev/volumes"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
STANDARD: Final[Object] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {IS_DEFAULT: "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
}


async def install(client: Client) -> None:
    """The class `standard`, unless there is a default already, or a class of that name."""
    classes = client.kind("storage.k8s.io/v1", "StorageClass")
    if any(is_default(one) for one in (await classes.list()).items):
        return
    try:
        await classes.create(STANDARD)
    except ApiError as error:
        if not error.already_exists:
            raise


def volume_name(claim: Object) -> str:
    return f"pvc-{uid_of(claim)}"


def reference(claim: Object) -> dict[str, Any]:
    """What a volume says of its claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
        "resourceVersion": meta_of(claim).get("resourceVersion"),
    }


def volume_for(claim: Object, storage_class: Object) -> Object:
    spec, name = claim.get("spec") or {}, volume_name(claim)
    wanted: dict[str, Any] = {
        "accessModes": list(spec.get("accessModes") or ()),
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
        "claimRef": reference(claim),
        "hostPath": {"path": f"/var/lib/kohort/volumes/{name}", "type": "DirectoryOrCreate"},
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": name_of(storage_class),
        "volumeMode": spec.get("volumeMode") or "Filesystem",
    }
    if storage_class.get("mountOptions"):
        wanted["mountOptions"] = list(storage_class["mountOptions"])
    terms = provisioned_terms(storage_class)
    if terms:
        wanted["nodeAffinity"] = {"required": {"nodeSelectorTerms": list(terms)}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": wanted,
    }
