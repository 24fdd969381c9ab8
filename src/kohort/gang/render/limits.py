"""What a release cannot express: refused where the guarantee would be gone, named where only a preference is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kohort.api.errors import FieldError, duplicate, forbidden, required, show, too_many
from kohort.api.releases import Release
from kohort.gang.tree import MAX_WIDTH, Group, Plan, Template


class Fit(NamedTuple):
    """The plan as far as the release can express it, what is refused, and what was lost."""

    plan: Plan
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class _Feature(NamedTuple):
    """A member of Template that older releases do not have."""

    member: str
    field: str  # its name in the API
    words: str  # "Kubernetes 1.35 has no …"
    known: Callable[[Release], bool]
    unset: Any = None


def _has_groups(release: Release) -> bool:
    return release.has_pod_groups


_FEATURES: Final = (
    _Feature("topology", "topology", "topology constraint", _has_groups),
    _Feature("claims", "resourceClaims", "resource claim of a group", _has_groups, ()),
    _Feature("disruption", "disruptionMode", "disruption mode", _has_groups),
    _Feature("priority_class", "priorityClassName", "priority class of a group (pods keep theirs)", _has_groups),
    _Feature("priority", "priority", "priority of a group (pods keep theirs)", _has_groups),
    _Feature(
        "preemption_policy",
        "preemptionPolicy",
        "preemption policy of a group (pods keep theirs)",
        lambda release: release.has_composites,
    ),
)


def fit(plan: Plan, release: Release, *, flatten: bool = False) -> Fit:
    """Cut a plan down to a release. `flatten`: the leaves of a tree become gangs of their own, not an error."""
    errors: list[FieldError] = []
    warnings: list[str] = []
    if not release.has_composites:
        plan = _without_tree(plan, release, flatten, errors, warnings)
    plan = _without_features(plan, release, warnings)
    if not release.has_pod_groups:
        plan = _without_groups(plan, release, errors, warnings)
    return Fit(plan, tuple(errors), tuple(warnings))


# ---- trees


def _without_tree(plan: Plan, release: Release, flatten: bool, errors: list[FieldError], warnings: list[str]) -> Plan:
    if not plan.is_tree and all(group.parent is None for group in plan.groups):
        return plan
    leaves = tuple(replace(template) for template in plan.walk() if template.is_leaf)
    names = {template.name for template in leaves}
    groups = tuple(replace(group, parent=None) for group in plan.groups if group.template in names)
    if flatten:
        warnings += [f"{path}: {text}; its leaves start independently" for path, text in _branches(plan, release)]
        if len(leaves) > MAX_WIDTH:
            errors.append(too_many("templates", len(leaves), MAX_WIDTH))
    else:
        errors += [forbidden(path, text) for path, text in _branches(plan, release)]
    return replace(plan, templates=leaves, groups=groups)


def _branches(plan: Plan, release: Release) -> Iterator[tuple[str, str]]:
    """Each branch that is in the way: where, and why."""
    lacks = f"Kubernetes {release.minor} has no CompositePodGroup"
    for template in plan.walk():
        if not template.is_leaf:
            beneath = ", ".join(child.name for child in template.children)
            yield f"templates[{template.name}]", f'{lacks} for the branch "{template.name}" over {beneath}'
    known = {group.name for group in plan.groups}
    for group in plan.groups:
        if group.parent is not None and group.parent not in known:  # a branch of somebody else's plan
            yield f"groups[{group.name}].parent", f'{lacks} for the branch "{group.parent}"'


# ---- members that only newer versions have


def _without_features(plan: Plan, release: Release, warnings: list[str]) -> Plan:
    lost = [feature for feature in _FEATURES if not feature.known(release)]
    if not lost or not any(_asked(template, lost) for template in plan.walk()):
        return plan
    return replace(plan, templates=tuple(_plain(found, lost, release, warnings) for found in plan.templates))


def _asked(template: Template, lost: list[_Feature]) -> list[_Feature]:
    return [feature for feature in lost if getattr(template, feature.member) not in (None, ())]


def _plain(template: Template, lost: list[_Feature], release: Release, warnings: list[str]) -> Template:
    for feature in _asked(template, lost):
        value = _words(getattr(template, feature.member))
        where = f"templates[{template.name}].{feature.field}"
        warnings.append(f"{where}: {value} is lost: Kubernetes {release.minor} has no {feature.words}")
    children = tuple(_plain(child, lost, release, warnings) for child in template.children)
    return replace(template, children=children, **{feature.member: feature.unset for feature in lost})


def _words(value: Any) -> str:
    return ", ".join(claim.name for claim in value) if isinstance(value, tuple) else show(value)


# ---- groups that are no objects


def _without_groups(plan: Plan, release: Release, errors: list[FieldError], warnings: list[str]) -> Plan:
    if not plan.workload and plan.groups:
        errors.append(required("workload", f"Kubernetes {release.minor} has no group outside a Workload"))
    seen: dict[tuple[str, str], str] = {}
    for group in plan.groups:
        tuple_ = (group.template, group.replica_key or "")
        if tuple_ in seen:
            errors.append(_twin(group, seen[tuple_], release))
        seen.setdefault(tuple_, group.name)
    minimums = {template.name: template.minimum for template in plan.walk()}
    return replace(plan, groups=tuple(_as_template(group, minimums, release, warnings) for group in plan.groups))


def _twin(group: Group, other: str, release: Release) -> FieldError:
    path = f"groups[{group.name}].replica_key"
    if group.replica_key:
        return duplicate(path, group.replica_key)
    return required(path, f"Kubernetes {release.minor} tells it from {other} of the same template only by replica key")


def _as_template(group: Group, minimums: dict[str, int | None], release: Release, warnings: list[str]) -> Group:
    if group.minimum is None:
        return group
    if group.minimum != minimums[group.template]:
        warnings.append(
            f"groups[{group.name}].minimum: {group.minimum} is lost: on Kubernetes {release.minor} all groups of "
            f'template "{group.template}" have its minimum, {_show(minimums[group.template])}'
        )
    return replace(group, minimum=None)


def _show(minimum: int | None) -> str:
    return "none" if minimum is None else str(minimum)
