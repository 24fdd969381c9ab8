"""Adoption and release: orphans that match an owner's selector become its own; what matches no more goes free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import (
    controller_of,
    controller_uid,
    is_deleting,
    meta_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from kohort.apimachinery.labels import matches
from kohort.controllers.controller import Key
from kohort.controllers.reconcile import Part, ReconcileError, Step, Write


def owner_key(obj: Object, kind: str, group: str) -> Iterable[Key]:
    """The key of the owner of this kind that controls an object."""
    owner = controller_of(obj)
    if owner is None or owner.get("kind") != kind:
        return
    if str(owner.get("apiVersion") or "").rpartition("/")[0] == group:
        yield Key(namespace_of(obj), str(owner.get("name") or ""))


def loose(obj: Object) -> Iterable[str]:
    """Index: the namespace of what no controller owns."""
    if controller_of(obj) is None:
        yield namespace_of(obj)


def claim(owner: Object, found: Sequence[Object], selector: Mapping[str, Any] | None) -> Part:
    """-> those of `found` that are the owner's, after what had to be adopted and released was."""
    own = [obj for obj in found if controller_uid(obj) == uid_of(owner)]
    kept = [obj for obj in own if matches(selector, meta_of(obj).get("labels"))]
    if is_deleting(owner):
        return kept
    keep = set(map(uid_of, kept))
    strays = [obj for obj in own if uid_of(obj) not in keep]
    orphans = [obj for obj in found if _is_orphan(obj) and matches(selector, meta_of(obj).get("labels"))]
    if not strays and not orphans:
        return kept
    answers = yield Step([*(adopt(owner, obj) for obj in orphans), *(release(owner, obj) for obj in strays)])
    problems = [
        f"{name_of(obj)}: {answer.refusal.message}"
        for obj, answer in zip([*orphans, *strays], answers, strict=True)
        # Gone, or the uid is another's by now: there is nothing to adopt or release.
        if answer.refusal is not None and answer.refusal.code not in (404, 409, 422)
    ]
    if problems:
        raise ReconcileError("; ".join(problems))
    return [*kept, *(answer.object for answer in answers[: len(orphans)] if answer.object is not None)]


def _is_orphan(obj: Object) -> bool:
    return controller_of(obj) is None and not is_deleting(obj)


def adopt(owner: Object, obj: Object) -> Write:
    return _patched(obj, [owner_reference(owner)])


def release(owner: Object, obj: Object) -> Write:
    return _patched(obj, [{"$patch": "delete", "uid": uid_of(owner)}])


def _patched(obj: Object, references: list[dict[str, Any]]) -> Write:
    # The uid makes the server refuse the patch if the name has been given to another object.
    return Write(
        verb="patch",
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=namespace_of(obj),
        name=name_of(obj),
        body={"metadata": {"uid": uid_of(obj), "ownerReferences": references}},
        patch="strategic",
    )
