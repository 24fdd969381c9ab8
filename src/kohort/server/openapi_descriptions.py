"""What `kubectl explain` says about members that every object has, in our own words.

The OpenAPI data has no descriptions. Some clients look for how these begin, so they begin as elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

HEAD: Final = {
    "apiVersion": "APIVersion defines in which version of its API group the object is written.",
    "kind": "Kind is the name of the object's type, in CamelCase.",
    "metadata": "Standard object's metadata: its name, labels, owners and history.",
}
META: Final = {
    "annotations": "Annotations are texts for tools and people; nothing is selected by them.",
    "creationTimestamp": "CreationTimestamp is a timestamp of the server, in UTC, of when the object was stored first.",
    "deletionGracePeriodSeconds": "So many seconds are left to stop in peace once the object is being deleted.",
    "deletionTimestamp": "DeletionTimestamp is set when a deletion was asked for: the object is gone by then at the "
    "earliest, and when its finalizers are gone.",
    "finalizers": "Finalizers must all be removed, each by whoever looks after it, before the object goes.",
    "generateName": "GenerateName is the beginning of a name that the server completes, where no name is given.",
    "generation": "A number that grows with every change of what is wanted (the spec).",
    "labels": "Labels are short keys and values by which objects are selected.",
    "managedFields": "ManagedFields says who wrote which fields, for server-side apply.",
    "name": "Name is unique among objects of the same kind, within a namespace where the kind has them.",
    "namespace": "Namespace is the space within which the name is unique.",
    "ownerReferences": "Objects that this one belongs to: when all are gone, it goes, too.",
    "resourceVersion": "A text that changes with every write; for watching, and for not overwriting others' changes.",
    "selfLink": "Not filled any more.",
    "uid": "UID tells this object from others that had, or will have, its name.",
}


def described(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition of metadata, with words about its members."""
    found = {name: {"description": META.get(name, ""), **one} for name, one in definition["properties"].items()}
    return {**definition, "properties": found}
