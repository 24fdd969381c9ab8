"""Between 1.36 (v1alpha2) and 1.37 (v1beta1, v1alpha3): the same objects with other spellings, and trees."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from kohort.api.convert.identity import follow_owners, renew
from kohort.api.convert.pods import replace
from kohort.api.convert.work import (
    COMPOSITE,
    POD_GROUP,
    V1ALPHA2,
    V1ALPHA3,
    V1BETA1,
    WORKLOAD,
    Work,
    is_a,
    key_of,
    part,
    template_of,
)
from kohort.api.errors import show
from kohort.api.kind import Object
from kohort.api.scheduling.constants import (
    DISRUPT_POD,
    DISRUPT_POD_GROUP,
    MOST_TEMPLATES,
    POD_GROUP_INITIALLY_SCHEDULED,
    POD_GROUP_SCHEDULED,
)

_MODES: Final = {DISRUPT_POD: "single", DISRUPT_POD_GROUP: "all"}
_WORDS: Final = {mode: word for word, mode in _MODES.items()}

# ---- 1.36 -> 1.37


def up(objects: list[Object], work: Work) -> list[Object]:
    return [_up(obj, work) for obj in objects]


def _up(obj: Object, work: Work) -> Object:
    if not (is_a(obj, WORKLOAD, V1ALPHA2) or is_a(obj, POD_GROUP, V1ALPHA2)):
        return obj
    new = _copy(obj, V1BETA1)
    spec = part(new, "spec")
    if obj["kind"] == WORKLOAD:
        for index, template in enumerate(spec.get("podGroupTemplates") or ()):
            _mode_up(new, template, f"spec.podGroupTemplates[{index}]", work)
        _uniform(new, spec.get("podGroupTemplates") or [], work)
    else:
        reference = (spec.get("podGroupTemplateRef") or {}).get("workload")
        replace(spec, "podGroupTemplateRef", _reference_up(reference) if reference else {})
        _mode_up(new, spec, "spec", work)
        _rename_condition(new, POD_GROUP_SCHEDULED, POD_GROUP_INITIALLY_SCHEDULED)
    renew(new, work)
    follow_owners(new, V1ALPHA2, V1BETA1)
    return new


def _copy(obj: Object, version: str) -> Object:
    new = deepcopy(obj)
    new["apiVersion"] = version
    return new


def _reference_up(reference: dict[str, Any]) -> dict[str, Any]:
    names = {"workloadName": "workloadName", "podGroupTemplateName": "templateName"}
    return {"workloadRef": {names.get(name, name): value for name, value in reference.items()}}


def _mode_up(obj: Object, block: dict[str, Any], path: str, work: Work) -> None:
    mode = block.get("disruptionMode")
    if mode is None:
        return
    if not isinstance(mode, str) or mode not in _MODES:
        work.refuse(obj, f"{path}.disruptionMode", f"{show(mode)} is no mode of 1.36: Pod and PodGroup are")
        return
    block["disruptionMode"] = {_MODES[mode]: {}}


def _uniform(obj: Object, templates: list[dict[str, Any]], work: Work) -> None:
    """1.37 refuses a Workload whose templates differ in priority (spec workload-api 3.1)."""
    pairs = {template.get("name"): _priority(template) for template in templates}
    if len(set(pairs.values())) > 1:
        found = ", ".join(f"{name}: {words}" for name, words in pairs.items())
        text = f"all templates must have the same priority there; found {found}. Split it into one Workload for each"
        work.refuse(obj, "spec.podGroupTemplates", f"{work.target} would refuse it: {text}")


def _priority(template: dict[str, Any]) -> str:
    name, value = template.get("priorityClassName") or "no class", template.get("priority")
    return f"{name}, {'no value' if value is None else value}"


def _rename_condition(obj: Object, old: str, new: str) -> None:
    for condition in part(obj, "status").get("conditions") or ():
        if condition.get("type") == old:
            condition["type"] = new


# ---- 1.37 -> 1.36


def down(objects: list[Object], work: Work) -> list[Object]:
    pairs = [(obj, _down(obj, work)) for obj in objects]
    kept = [new for _, new in pairs if new is not None]
    if work.to.minor == "1.36":
        _orphans([new for obj, new in pairs if new is not None and new is not obj], kept, work)
    return kept


def _down(obj: Object, work: Work) -> Object | None:
    """None: the object has no counterpart."""
    if is_a(obj, COMPOSITE, V1ALPHA3):
        _no_branch(obj, "", work)
        return None
    if is_a(obj, WORKLOAD, V1BETA1, V1ALPHA3):
        new = _copy(obj, V1ALPHA2)
        _flat(new, work)
    elif is_a(obj, POD_GROUP, V1BETA1, V1ALPHA3):
        new = _copy(obj, V1ALPHA2)
        _pod_group_down(new, work)
    else:
        return obj
    renew(new, work)
    follow_owners(new, obj["apiVersion"], V1ALPHA2)
    return new


def _pod_group_down(obj: Object, work: Work) -> None:
    spec = part(obj, "spec")
    if spec.get("parentCompositePodGroupName") is not None:
        _no_branch(obj, "spec.parentCompositePodGroupName", work)
    spec.pop("parentCompositePodGroupName", None)
    reference = spec.get("workloadRef")
    replace(spec, "workloadRef", _reference_down(reference) if reference else {})
    _block_down(obj, spec, "spec", work)
    _rename_condition(obj, POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED)


def _reference_down(reference: dict[str, Any]) -> dict[str, Any]:
    names = {"templateName": "podGroupTemplateName"}
    return {"podGroupTemplateRef": {"workload": {names.get(name, name): value for name, value in reference.items()}}}


def _block_down(obj: Object, block: dict[str, Any], path: str, work: Work) -> None:
    """What templates and groups have alike."""
    policy = block.pop("preemptionPolicy", None)
    if policy is not None:
        work.lose(obj, f"{path}.preemptionPolicy", policy, f"{work.target} has none for groups; use the pods' class")
    mode = block.get("disruptionMode")
    if mode is None:
        return
    chosen = [name for name in _WORDS if isinstance(mode, dict) and mode.get(name) is not None]
    if len(chosen) != 1:
        work.refuse(obj, f"{path}.disruptionMode", f"{show(mode)} is no mode of 1.37: one of single and all is")
        return
    block["disruptionMode"] = _WORDS[chosen[0]]


def _no_branch(obj: Object, path: str, work: Work) -> None:
    """A branch, or the way to one."""
    lacks = f"{work.target} has no CompositePodGroup"
    if not work.flatten:
        work.refuse(obj, path, f"{lacks}; flatten makes each leaf a gang of its own")
    elif path:
        work.lose(obj, path, obj["spec"]["parentCompositePodGroupName"], f"{lacks}; the group starts on its own")
    else:
        work.warn(obj, path, f"left out: {lacks}; what is beneath starts independently")


def _flat(obj: Object, work: Work) -> None:
    spec = part(obj, "spec")
    leaves = [*_leaves(obj, spec, "spec", work)]
    branches = spec.pop("compositePodGroupTemplates", None)
    if branches:
        if len(leaves) > MOST_TEMPLATES:
            text = f"{len(leaves)} leaves cannot be flattened into one list of at most {MOST_TEMPLATES}"
            work.refuse(obj, "spec.compositePodGroupTemplates", text)
        spec["podGroupTemplates"] = [template for _, template in leaves]
    for path, template in leaves:
        _block_down(obj, template, path, work)


def _leaves(obj: Object, block: dict[str, Any], path: str, work: Work) -> Iterator[tuple[str, dict[str, Any]]]:
    """The leaf templates in the order of the tree; each branch on the way is refused or reported."""
    for index, template in enumerate(block.get("podGroupTemplates") or ()):
        yield f"{path}.podGroupTemplates[{index}]", template
    for index, branch in enumerate(block.get("compositePodGroupTemplates") or ()):
        where = f"{path}.compositePodGroupTemplates[{index}]"
        lacks = f"{work.target} has no CompositePodGroup"
        if work.flatten:
            own = {name: value for name, value in branch.items() if not name.endswith("Templates")}
            work.lose(obj, where, own, f"{lacks}; its leaves start independently")
        else:
            work.refuse(obj, where, f'{lacks} for "{branch.get("name")}"; flatten makes each leaf a gang of its own')
        yield from _leaves(obj, branch, where, work)


def _orphans(converted: list[Object], objects: list[Object], work: Work) -> None:
    """1.36 refuses a PodGroup whose Workload or template does not exist when it is created (spec workload-api 3.2)."""
    known = {
        key_of(obj): {template.get("name") for template in part(obj, "spec").get("podGroupTemplates") or ()}
        for obj in objects
        if is_a(obj, WORKLOAD, V1ALPHA2)
    }
    for obj in converted:
        reference = template_of(obj) if obj["kind"] == POD_GROUP else None
        if reference is None:
            continue
        path, (name, template) = "spec.podGroupTemplateRef", reference
        templates = known.get((key_of(obj)[0], name))
        if templates is None:
            text = f'Workload "{name}" is not among the objects; {work.target} takes the group only where it exists'
            work.warn(obj, path, text)
        elif template not in templates:
            work.warn(obj, path, f'Workload "{name}" has no template "{template}"; {work.target} refuses such a group')
