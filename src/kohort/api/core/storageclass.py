"""Which storage class a claim gets that names none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, name_of

IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
CLASS: Final = "volume.beta.kubernetes.io/storage-class"  # in place of the field, once
_WAS_DEFAULT: Final = "storageclass.beta.kubernetes.io/is-default-class"


def is_default(storage_class: Object) -> bool:
    return "true" in {annotation(storage_class, IS_DEFAULT), annotation(storage_class, _WAS_DEFAULT)}


def default_class(classes: Iterable[Object]) -> Object | None:
    """The newest of the default ones; of those that are equally old, the first by name."""
    found = sorted((one for one in classes if is_default(one)), key=name_of)
    return max(found, key=lambda one: str(one["metadata"].get("creationTimestamp") or ""), default=None)


def names_no_class(claim: Object) -> bool:
    """An empty name is a name: such a claim wants a volume without a class."""
    return (claim.get("spec") or {}).get("storageClassName") is None and annotation(claim, CLASS) is None
