"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, which `kubectl rollout` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_deleting, meta_of, name_of, namespace_of, owner_reference, uid_of
from kohort.apimachinery.podresources import in_canonical_form
from kohort.controllers.reconcile import Part, ReconcileError, Step, must, one
from kohort.controllers.writes import create, delete, update

HASH: Final = "controller-revision-hash"  # the label of pods
_LONGEST: Final = 223  # characters of a parent's name before the hash
_TRIES: Final = 8


def data_of(owner: Object) -> Object:
    """A strategic merge patch that brings the template back; names in order, since clients compare its bytes."""
    template = _without_nulls(owner["spec"].get("template") or {})
    found: Object = _sorted(in_canonical_form({"spec": {"template": {**template, "$patch": "replace"}}}))
    return found


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def template_of(revision: Object) -> Object:
    found = ((revision.get("data") or {}).get("spec") or {}).get("template") or {}
    return {name: value for name, value in found.items() if name != "$patch"}


def number(revision: Object) -> int:
    return int(revision.get("revision") or 0)


def in_order(revisions: Iterable[Object]) -> list[Object]:
    return sorted(revisions, key=_order)


def _order(revision: Object) -> tuple[int, str, str]:
    return number(revision), str(meta_of(revision).get("creationTimestamp") or ""), name_of(revision)


def equal(data: Object, revision: Object) -> bool:
    return bool(in_canonical_form(_without_nulls(revision.get("data") or {})) == data)


def new_revision(owner: Object, data: Object, value: int, hashed: str, label: str) -> Object:
    """`label`: where the hash stands."""
    labels = (owner["spec"].get("template") or {}).get("metadata", {}).get("labels") or {}
    notes = meta_of(owner).get("annotations")
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{name_of(owner)[:_LONGEST]}-{hashed}",
            "namespace": namespace_of(owner),
            "labels": {**labels, label: hashed},
            **({"annotations": copied(notes)} if notes else {}),
            "ownerReferences": [owner_reference(owner)],
        },
        "data": data,
        "revision": value,
    }


def make(named: Callable[[str], Object | None], wanted: Callable[[int], Object], collisions: int) -> Part:
    """-> the stored revision and the number of names that were taken. `wanted`: the revision after so many of them."""
    for count in range(collisions, collisions + _TRIES):
        revision = wanted(count)
        write = create(revision)
        answer = yield from one(write)
        if answer.refusal is None or not answer.refusal.already_exists:
            return must(write, answer), count
        there = named(name_of(revision))
        if there is None:
            raise ReconcileError(f"ControllerRevision {name_of(revision)} is there and has not been seen yet")
        if equal(revision["data"], there):
            return there, count
    raise ReconcileError(f"ControllerRevision {name_of(revision)}: {_TRIES} names are taken")


def renumber(revision: Object, value: int) -> Part:
    """-> the revision, the newest again."""
    if number(revision) == value:
        return revision
    write = update({**revision, "revision": value})
    return must(write, (yield from one(write)))


def trim(history: Sequence[Object], limit: int) -> Part:
    """`history`: what nothing is of any more, the oldest first."""
    surplus = [one_ for one_ in history[: max(0, len(history) - limit)] if not is_deleting(one_) and uid_of(one_)]
    if surplus:
        yield Step([delete(one_) for one_ in surplus])
