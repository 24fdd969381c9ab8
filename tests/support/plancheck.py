"""Whether a plan is one that an API server would take: the tree rules (spec workload-api 3.1) and the wiring of groups.

Compilers are expected to produce only plans without findings; their property tests ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kohort.api import formats
from kohort.api.errors import FieldError, at, duplicate, invalid, not_supported, required, too_many
from kohort.gang.tree import MAX_CLAIMS, MAX_DEPTH, MAX_WIDTH, Claim, Group, Owner, Plan, Template

_HIGHEST_PRIORITY: Final = 1_000_000_000
_LOWEST_PRIORITY: Final = -(2**31)
_LARGEST: Final = 2**31 - 1


def check_plan(plan: Plan) -> list[FieldError]:
    """Everything wrong with a plan; paths are those of its members (`templates[0].children[1].minimum`)."""
    return [
        *_head(plan),
        *_tree(plan),
        *(error for path, template in _places(plan) for error in _template(template, path)),
        *_groups(plan),
        *_members(plan),
    ]


# ---- the Workload itself


def _head(plan: Plan) -> Iterator[FieldError]:
    if plan.workload or plan.own_workload:
        yield from _format(formats.subdomain, plan.workload, "workload")
    if plan.namespace:
        yield from _format(formats.label, plan.namespace, "namespace")
    if plan.controller is not None:
        if plan.controller.api_group:
            yield from _format(formats.subdomain, plan.controller.api_group, "controller.api_group")
        yield from _format(formats.path_segment, plan.controller.kind, "controller.kind")
        yield from _format(formats.path_segment, plan.controller.name, "controller.name")
    yield from _metadata(plan.labels, plan.annotations, plan.owners, "")


def _metadata(
    labels: Mapping[str, str], annotations: Mapping[str, str], owners: tuple[Owner, ...], path: str
) -> Iterator[FieldError]:
    for key, value in labels.items():
        yield from _format(formats.label_key, key, at(path, "labels"))
        if value:
            yield from _format(formats.label_value, value, at(path, f"labels[{key}]"))
    for key in annotations:
        yield from _format(formats.label_key, key.lower(), at(path, "annotations"))
    controllers = [owner.name for owner in owners if owner.controller]
    if len(controllers) > 1:
        yield invalid(at(path, "owners"), ", ".join(controllers), "at most one owner may be the controller")
    for index, owner in enumerate(owners):
        for member in ("api_version", "kind", "name"):
            if not getattr(owner, member):
                yield required(at(path, f"owners[{index}].{member}"))


def _format(check: formats.Format, text: str, path: str) -> Iterator[FieldError]:
    if not text:
        yield required(path)
    elif problem := check(text):
        yield invalid(path, text, problem)


# ---- rules over the whole tree


def _tree(plan: Plan) -> Iterator[FieldError]:
    if plan.own_workload and not plan.templates:
        yield required("templates", "a Workload has at least one template")
    if len({template.is_leaf for template in plan.templates}) > 1:
        yield invalid("templates", _names(plan.templates), "leaves and branches may not stand side by side at the top")
    yield from _width(plan.templates, "templates")
    for index, root in enumerate(plan.templates):
        if root.depth > MAX_DEPTH:
            yield invalid(f"templates[{index}]", root.name, f"has {root.depth} levels; at most {MAX_DEPTH} are allowed")
    yield from _repeated(plan)
    pairs = {(template.priority_class or "", template.priority) for template in plan.walk()}
    if plan.own_workload and len(pairs) > 1:
        found = ", ".join(sorted(f"{name or 'none'}/{'none' if value is None else value}" for name, value in pairs))
        yield invalid("templates", found, "all templates of a Workload have the same priority class and priority")


def _names(templates: Iterable[Template]) -> str:
    return ", ".join(template.name for template in templates)


def _width(templates: tuple[Template, ...], path: str) -> Iterator[FieldError]:
    """At most eight of a sort, as each sort is a list of its own."""
    for leaf in (True, False):
        count = sum(template.is_leaf is leaf for template in templates)
        if count > MAX_WIDTH:
            yield too_many(path, count, MAX_WIDTH)


def _repeated(plan: Plan) -> Iterator[FieldError]:
    seen: set[str] = set()
    for path, template in _places(plan):
        if template.name in seen:
            yield duplicate(f"{path}.name", template.name)
        seen.add(template.name)


def _places(plan: Plan) -> Iterator[tuple[str, Template]]:
    for index, root in enumerate(plan.templates):
        yield from _beneath(root, f"templates[{index}]")


def _beneath(template: Template, path: str) -> Iterator[tuple[str, Template]]:
    yield path, template
    for index, child in enumerate(template.children):
        yield from _beneath(child, f"{path}.children[{index}]")


# ---- one template


def _template(template: Template, path: str) -> Iterator[FieldError]:
    yield from _format(formats.label, template.name, f"{path}.name")
    yield from _minimum(template.minimum, f"{path}.minimum")
    if template.topology is not None:
        yield from _format(formats.label_key, template.topology, f"{path}.topology")
    if template.disruption not in (None, "single", "all"):
        yield not_supported(f"{path}.disruption", template.disruption, ("single", "all"))
    if template.priority_class is not None:
        yield from _format(formats.subdomain, template.priority_class, f"{path}.priority_class")
    if template.priority is not None and not _LOWEST_PRIORITY <= template.priority <= _HIGHEST_PRIORITY:
        yield invalid(f"{path}.priority", template.priority, f"must be at most {_HIGHEST_PRIORITY}")
    if template.preemption_policy not in (None, "PreemptLowerPriority", "Never"):
        yield not_supported(f"{path}.preemption_policy", template.preemption_policy, ("PreemptLowerPriority", "Never"))
    yield from _claims(template, path)
    yield from _width(template.children, f"{path}.children")


def _minimum(minimum: int | None, path: str) -> Iterator[FieldError]:
    if minimum is not None and not 1 <= minimum <= _LARGEST:
        yield invalid(path, minimum, f"must be from 1 to {_LARGEST}")


def _claims(template: Template, path: str) -> Iterator[FieldError]:
    where = f"{path}.claims"
    if template.claims and not template.is_leaf:
        yield invalid(where, _claim_names(template.claims), "only a leaf may have claims")
    if len(template.claims) > MAX_CLAIMS:
        yield too_many(where, len(template.claims), MAX_CLAIMS)
    seen: set[str] = set()
    for index, claim in enumerate(template.claims):
        if claim.name in seen:
            yield duplicate(f"{where}[{index}]", claim.name)
        seen.add(claim.name)
        yield from _claim(claim, f"{where}[{index}]")


def _claim_names(claims: tuple[Claim, ...]) -> str:
    return ", ".join(claim.name for claim in claims)


def _claim(claim: Claim, path: str) -> Iterator[FieldError]:
    yield from _format(formats.label, claim.name, f"{path}.name")
    if (claim.claim is None) == (claim.template is None):
        yield invalid(path, claim.name, "must name either a claim or a claim template")
    for member, value in (("claim", claim.claim), ("template", claim.template)):
        if value is not None:
            yield from _format(formats.subdomain, value, f"{path}.{member}")


# ---- groups and members


def _groups(plan: Plan) -> Iterator[FieldError]:
    templates = {template.name: template for template in plan.walk()}
    above = {child.name: template.name for template in plan.walk() for child in template.children}
    earlier: dict[str, Group] = {}
    told: dict[tuple[str, str], str] = {}
    later = {group.name for group in plan.groups}
    for index, group in enumerate(plan.groups):
        path = f"groups[{index}]"
        yield from _group(group, path)
        if group.name in earlier:
            yield duplicate(f"{path}.name", group.name)
        template = templates.get(group.template)
        if template is None:
            yield invalid(f"{path}.template", group.template, f"is no template; there are {', '.join(templates)}")
            continue
        if group.minimum is not None and not template.is_gang:
            yield invalid(f"{path}.minimum", group.minimum, f"template {template.name} is basic and has no minimum")
        yield from _parent(plan, group, above.get(template.name), earlier, later, path)
        if not plan.is_tree:
            yield from _key(group, told, path)
        earlier.setdefault(group.name, group)


def _group(group: Group, path: str) -> Iterator[FieldError]:
    yield from _format(formats.subdomain, group.name, f"{path}.name")
    yield from _minimum(group.minimum, f"{path}.minimum")
    if group.replica_key is not None:
        yield from _format(formats.label, group.replica_key, f"{path}.replica_key")
    yield from _metadata(group.labels, group.annotations, group.owners, path)


def _parent(
    plan: Plan, group: Group, above: str | None, earlier: dict[str, Group], later: set[str], path: str
) -> Iterator[FieldError]:
    where = f"{path}.parent"
    if group.parent is None:
        if above is not None:
            yield required(where, f'template "{group.template}" stands beneath "{above}"')
        return
    yield from _format(formats.subdomain, group.parent, where)
    parent = earlier.get(group.parent)
    if parent is not None:
        if parent.template != above:
            wanted = f'a group of template "{above}"' if above else "none"
            yield invalid(where, group.parent, f'is a group of template "{parent.template}"; expected {wanted}')
    elif group.parent in later:
        yield invalid(where, group.parent, "comes later: branches are created before what is beneath them")
    elif plan.own_workload:  # somebody else's branch may be above a delegated plan
        yield invalid(where, group.parent, "is no group of this plan")


def _key(group: Group, told: dict[tuple[str, str], str], path: str) -> Iterator[FieldError]:
    """On 1.35 only the key tells two groups of one template apart."""
    mark = (group.template, group.replica_key or "")
    if mark in told:
        twin = f'also that of group "{told[mark]}" of template "{group.template}"'
        yield invalid(f"{path}.replica_key", group.replica_key or "", twin)
    told.setdefault(mark, group.name)


def _members(plan: Plan) -> Iterator[FieldError]:
    leaves = {template.name for template in plan.walk() if template.is_leaf}
    groups = {group.name: group for group in plan.groups}
    for index, member in enumerate(plan.members):
        path = f"members[{index}]"
        if member.count < 0:
            yield invalid(f"{path}.count", member.count, "must not be negative")
        if member.group is None:
            continue
        if member.group not in groups:
            yield invalid(f"{path}.group", member.group, "is no group of this plan")
        elif groups[member.group].template not in leaves:
            yield invalid(f"{path}.group", member.group, "is a branch; pods join leaves only")
