"""What may not change in a PodCliqueSet once it exists (spec grove 1.6).

Grove freezes everything that forms a gang. As upstream does, the frozen fields are looked at only when the new object
is in itself right: a rename with a typo is told about the typo.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kohort.api.errors import FieldError, forbidden, invalid
from kohort.api.kind import Context, Object
from kohort.api.rules import same
from kohort.kinds.grove.api import backend, constants, mnnvl, options, parts, podspec, validation

Entries = list[tuple[str, dict[str, Any]]]


def validate_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    return validation.check(new, ctx) or [
        *_template(new, old),
        *_clique_set(list(parts.cliques(new)), list(parts.cliques(old)), _ordered(old)),
        *_cliques(new, old, ctx),
        *_group_set(list(parts.scaling_groups(new)), list(parts.scaling_groups(old))),
        *_groups(new, old),
        *_topology(new, old),
        *mnnvl.check_update(new, old),
    ]


def _by_name(entries: Entries) -> dict[str, dict[str, Any]]:
    return {str(entry.get("name")): entry for _, entry in entries}


def _frozen(new: dict[str, Any], old: dict[str, Any], path: str, *names: str) -> Iterator[FieldError]:
    for name in names:
        if not same(new.get(name), old.get(name)):
            yield invalid(f"{path}.{name}", new.get(name), "field is immutable")


def _template(new: Object, old: Object) -> Iterator[FieldError]:
    after, before = parts.template(new), parts.template(old)
    yield from _frozen(after, before, parts.TEMPLATE, "cliqueStartupType", "resourceClaimTemplates", "resourceSharing")


def _ordered(obj: Object) -> bool:
    return parts.template(obj).get("cliqueStartupType") in {constants.IN_ORDER, constants.EXPLICIT}


def _clique_set(new: Entries, old: Entries, ordered: bool) -> Iterator[FieldError]:
    before, after = list(_by_name(old)), list(_by_name(new))
    yield from _came(new, before, "clique")
    yield from _went(parts.CLIQUES, before, after, "clique")
    if ordered and set(before) == set(after) and before != after:
        yield invalid(parts.CLIQUES, after, f"the order counts for this startup type; it must stay {', '.join(before)}")


def _group_set(new: Entries, old: Entries) -> Iterator[FieldError]:
    yield from _came(new, list(_by_name(old)), "scaling group")
    yield from _went(parts.GROUPS, list(_by_name(old)), list(_by_name(new)), "scaling group")


def _came(new: Entries, before: list[str], what: str) -> Iterator[FieldError]:
    for path, entry in new:
        if entry.get("name") not in before:
            yield forbidden(
                f"{path}.name", f'a {what} cannot be added or renamed after creation: "{entry.get("name")}"'
            )


def _went(path: str, before: list[str], after: list[str], what: str) -> Iterator[FieldError]:
    gone = [name for name in before if name not in after]
    if gone:
        yield forbidden(path, f"a {what} cannot be removed after creation: {', '.join(gone)}")


def _cliques(new: Object, old: Object, ctx: Context) -> Iterator[FieldError]:
    before = _by_name(list(parts.cliques(old)))
    freeze_membership = ctx.on(options.GANG) and backend.concerned(old)
    for path, clique in parts.cliques(new):
        stored = before.get(str(clique.get("name")))
        if stored is None:
            continue
        spec = f"{path}.spec"
        yield from _frozen(
            parts.spec_of(clique), parts.spec_of(stored), spec, "roleName", "minAvailable", "startsAfter"
        )
        # Compared as written: naming the default where nothing was named counts as a change.
        yield from _frozen(parts.pod_spec(clique), parts.pod_spec(stored), f"{spec}.podSpec", "schedulerName")
        if freeze_membership:
            yield from _frozen(parts.pod_spec(clique), parts.pod_spec(stored), f"{spec}.podSpec", *podspec.MEMBERSHIP)
        yield from _frozen(clique, stored, path, "resourceSharing")


def _groups(new: Object, old: Object) -> Iterator[FieldError]:
    before = _by_name(list(parts.scaling_groups(old)))
    for path, group in parts.scaling_groups(new):
        stored = before.get(str(group.get("name")))
        if stored is not None:
            yield from _frozen(group, stored, path, "cliqueNames", "minAvailable", "resourceSharing")


# ---- topology


def _topology(new: Object, old: Object) -> Iterator[FieldError]:
    after, before = parts.template(new).get("topologyConstraint"), parts.template(old).get("topologyConstraint")
    name, stored_name = ((found or {}).get("topologyName") or "" for found in (after, before))
    path = f"{parts.TEMPLATE}.topologyConstraint"
    if name != stored_name:
        yield forbidden(f"{path}.topologyName", f'topologyName cannot be changed from "{stored_name}" to "{name}"')
    else:
        yield from _constraint(after, before, path, "PodCliqueSet")
    for what, read in (("PodClique", parts.cliques), ("PodCliqueScalingGroup", parts.scaling_groups)):
        stored = _by_name(list(read(old)))
        for at, entry in read(new):
            if str(entry.get("name")) in stored:
                yield from _constraint(
                    entry.get("topologyConstraint"),
                    stored[str(entry.get("name"))].get("topologyConstraint"),
                    f"{at}.topologyConstraint",
                    f"{what} '{entry.get('name')}'",
                )


def _constraint(new: Any, old: Any, path: str, owner: str) -> Iterator[FieldError]:
    if same(new, old) or _migrated(new, old):
        return
    if old is None or new is None:
        yield forbidden(
            path, f"{owner} topology constraint cannot be {'added' if old is None else 'removed'} after creation"
        )
        return
    was, now = (_words(found) for found in (old, new))
    yield forbidden(path, f"{owner} topology constraint cannot be changed from {was} to {now}")


def _words(constraint: dict[str, Any]) -> str:
    required, preferred = parts.required_domain(constraint), parts.preferred_domain(constraint)
    name = constraint.get("topologyName")
    return f'required="{required}" preferred="{preferred}"' + (f' topologyName="{name}"' if name else "")


def _migrated(new: Any, old: Any) -> bool:
    """The one change allowed: the deprecated packDomain said as pack.required."""
    return bool(
        old
        and new
        and old.get("packDomain")
        and not new.get("packDomain")
        and (old.get("topologyName") or "") == (new.get("topologyName") or "")
        and parts.required_domain(new) == old["packDomain"]
        and parts.preferred_domain(new) == parts.preferred_domain(old)
    )
