"""The two ways to write: apply, which merges and may conflict; everything else only updates managedFields."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

from kohort.api.apply import fields as sets
from kohort.api.apply import last_applied, managed
from kohort.api.apply.compare import Comparison, compare
from kohort.api.apply.errors import ApplyError, Conflict
from kohort.api.apply.fields import Fields
from kohort.api.apply.managed import APPLY, UPDATE, Managed, Manager, Owned
from kohort.api.apply.merge import merge, remove
from kohort.api.apply.structure import Structure
from kohort.api.apply.unowned import zero
from kohort.api.apply.values import field_set, problems
from kohort.api.kind import Object
from kohort.api.sameness import same, whole

_BEFORE: Final = "before-first-apply"
# Never owned by anybody.
_STRIPPED: Final = sets.of(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation")
    ),
    ("f:metadata", "f:managedFields"),
    ("f:metadata", "f:resourceVersion"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is written to: one endpoint of one kind in one version.

    `versions`: those in which the kind is served; owners in others are forgotten. `dynamic`: the structure may have
    changed since the object was stored, as that of a CRD may.
    """

    api_version: str
    kind: str
    structure: Structure
    subresource: str = ""
    reset: Fields = field(default_factory=dict)
    versions: Collection[str] | None = None
    dynamic: bool = False

    @property
    def empty(self) -> Object:
        return {} if self.dynamic else zero(self.api_version, self.kind)


@dataclass(frozen=True, slots=True)
class Applied:
    """The merged object, with managedFields; or the conflicts, and the object is the live one."""

    object: Object
    conflicts: tuple[Conflict, ...] = ()


# ---- apply


def apply(live: Object | None, applied: Object, *, of: Target, manager: str, now: str, force: bool = False) -> Applied:
    """Merge an applied object into the live one (None: there is none yet). Raises ApplyError if it cannot be one."""
    applied = whole(applied)  # a copy of our own
    _check(applied, of)
    before = _unmanaged(live) if live is not None else {}
    owners = _served(managed.stored(live), of) if live is not None else {}
    if live is not None and not owners:
        owners = _update(of.empty, before, owners, Manager.of(_BEFORE, UPDATE, of.api_version, of.subresource), of, now)
    who = Manager.of(manager, APPLY, of.api_version, of.subresource)
    merged, after, conflicts = _apply(before, applied, owners, who, of, force)
    if conflicts and manager == "kubectl" and live is not None:
        conflicts = last_applied.remaining(conflicts, live, of.api_version, of.structure)
        if not conflicts:
            merged, after, conflicts = _apply(before, applied, owners, who, of, force=True)
    if conflicts:
        return Applied(live or {}, tuple(conflicts))
    if who in after and not same(before, merged):
        after[who] = replace(after[who], time=now)
    result: Object = whole(merged)
    if manager == "kubectl":
        last_applied.follow(result, applied)
    if live is None:
        result.get("metadata", {}).pop("resourceVersion", None)
    managed.put(result, after)
    return Applied(result)


def _check(applied: Object, of: Target) -> None:
    api_version, kind = applied.get("apiVersion") or "", applied.get("kind") or ""
    if (api_version, kind) != (of.api_version, of.kind):
        group, _, version = str(api_version).rpartition("/")
        raise ApplyError(f"invalid object type: {group}/{version}, Kind={kind}")
    metadata = applied.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if metadata.get("managedFields") is not None:
        raise ApplyError("metadata.managedFields must be nil")
    found = problems(applied, of.structure)
    if found:
        name = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
        group, _, version = of.api_version.rpartition("/")
        text = found[0] if len(found) == 1 else "\n".join(["errors:", *(f"  {one}" for one in found)])
        raise ApplyError(f"failed to create typed patch object ({name}; {group}/{version}, Kind={of.kind}): {text}")


def _apply(
    before: Object, applied: Object, owners: Managed, who: Manager, of: Target, force: bool
) -> tuple[Object, Managed, list[Conflict]]:
    merged = merge(before, applied, of.structure)
    last = owners.get(who)
    mine = sets.without(field_set(applied, of.structure), of.reset)
    after = {**owners, who: Owned(mine, of.api_version, last.time if last is not None else None)}
    if last is not None and last.fields:
        merged = _pruned(merged, after, last.fields, of.structure)
    change = compare(before, merged, of.structure).without(of.reset)
    conflicts = _conflicts(after, who, change)
    if conflicts and not force:
        return before, owners, conflicts
    after = _taken(after, who, change)
    return merged, _stripped(after, who), []


def _pruned(merged: Object, owners: Managed, last: Fields, structure: Structure) -> Object:
    """Without what this manager applied last time and not now, unless somebody else has it."""
    last = sets.with_parents(last, structure)
    there = sets.with_parents(field_set(merged, structure), structure)
    cut = remove(merged, last, structure) or {}
    kept = sets.with_parents(field_set(cut, structure), structure)
    everybodys = sets.union_of(owned.fields for owned in owners.values())
    kept = sets.union(kept, sets.with_parents(everybodys, structure))
    cut = remove(merged, sets.difference(there, kept), structure) or {}
    left = sets.with_parents(field_set(cut, structure), structure)
    # What nobody owns stays, unless it was this manager's.
    result: Object = remove(merged, sets.intersection(sets.difference(there, left), last), structure) or {}
    return result


def _conflicts(owners: Managed, who: Manager, change: Comparison) -> list[Conflict]:
    written = change.written
    found: list[Conflict] = []
    for other in sorted((other for other in owners if other != who), key=lambda other: other.identity):
        shared = sets.intersection(owners[other].fields, written)
        found += [Conflict(other, path) for path in sets.paths(shared)]
    return found


def _taken(owners: Managed, who: Manager | None, change: Comparison) -> Managed:
    """What was written or removed is no longer the others'."""
    written, left = change.written, Managed()
    for other, owned in owners.items():
        kept = owned.fields
        if other != who:
            kept = sets.difference(sets.difference(kept, sets.intersection(kept, written)), change.removed)
        if kept:
            left[other] = owned if kept is owned.fields else replace(owned, fields=kept)
    return left


def _stripped(owners: Managed, who: Manager) -> Managed:
    if who in owners:
        kept = sets.difference(owners[who].fields, _STRIPPED)
        if kept:
            owners[who] = replace(owners[who], fields=kept)
        else:
            del owners[who]
    return owners


# ---- everything else


def update_managed_fields(old: Object | None, new: Object, *, of: Target, manager: str, now: str) -> Object:
    """`new` with managedFields after a create (old is None), an update, or a patch that is already applied."""
    live = old or {}
    owners = _served(managed.before_update(live, new, of.subresource, dynamic=of.dynamic), of)
    after = {**new, "metadata": dict(new.get("metadata") or {})}
    after["metadata"].pop("managedFields", None)
    if owners or not (live.get("metadata") or {}).get("uid"):  # an object that is not tracked stays so until applied
        who = Manager.of(manager or "unknown", UPDATE, of.api_version, of.subresource)
        before = _unmanaged(live) if old is not None else of.empty
        owners = managed.capped(_update(before, after, owners, who, of, now))
    managed.put(after, owners)
    return after


def _update(old: Object, new: Object, owners: Managed, who: Manager, of: Target, now: str) -> Managed:
    change = compare(old, new, of.structure).without(of.reset)
    after = _taken(owners, None, change)
    mine = sets.difference(change.written, _STRIPPED)
    if mine:
        previous = after.get(who)
        fields = sets.union(mine, previous.fields) if previous is not None else mine
        after[who] = Owned(fields, of.api_version, now)
    return after


def _served(owners: Managed, of: Target) -> Managed:
    """Owners in versions that are still served, their fields as the structure is now."""
    if of.versions is not None:
        owners = {who: owned for who, owned in owners.items() if owned.api_version in of.versions}
    if of.dynamic:
        owners = {who: replace(owned, fields=_reconciled(owned.fields, of.structure)) for who, owned in owners.items()}
    return owners


def _reconciled(fields: Fields, structure: Structure) -> Fields:
    """Of a kind whose schema changed: a list or map that is atomic now is owned as a whole."""
    made: Fields = {}
    for element, child in fields.items():
        if element != ".":
            made[element] = _reconciled_node(child, _inner(element, structure))
    return made


def _reconciled_node(node: Fields, structure: Structure | None) -> Fields:
    children = {element: child for element, child in node.items() if element != "."}
    if structure is None or not children:
        return node
    if structure.map is not None:
        if structure.map.deduced:
            return node
        if structure.map.atomic:
            return {}
    elif structure.list is not None and structure.list.atomic:
        return {}
    return sets.node(_reconciled(children, structure), member=sets.is_member(node)) or {}


def _inner(element: str, structure: Structure) -> Structure | None:
    if structure.map is not None:
        return structure.map.of(element[2:]) if element.startswith("f:") else None
    return structure.list.item if structure.list is not None else None


def _unmanaged(one: Object) -> Object:
    metadata = one.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return one
    return {**one, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def keep_times(old: Object, new: Object) -> Object:
    """If nothing but the times of managers differs, the old times: then the write changes nothing."""
    before = (old.get("metadata") or {}).get("managedFields") or []
    after = (new.get("metadata") or {}).get("managedFields") or []
    if not after or before == after or len(before) != len(after):
        return new
    if [_timeless(one) for one in before] != [_timeless(one) for one in after]:
        return new
    if not same(_unmanaged(old), _unmanaged(new)):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": before}}


def _timeless(entry: Object) -> Object:
    return {name: value for name, value in entry.items() if name != "time"}
