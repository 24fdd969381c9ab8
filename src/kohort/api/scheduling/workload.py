"""Workload of 1.37 (v1beta1 and v1alpha3, the same in all but name) and the rules over its whole tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import OMITTED, FieldError, duplicate, invalid
from kohort.api.kind import Kind
from kohort.api.releases import SCHEDULING_GROUP, Gate
from kohort.api.scheduling import columns, parts
from kohort.api.scheduling.constants import MOST_COMPOSITE_LEVELS, MOST_TEMPLATES
from kohort.api.schema import Arr, Node, Obj, Update, but

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object

LEAVES: Final = "podGroupTemplates"
BRANCHES: Final = "compositePodGroupTemplates"

_LEAF: Final = Obj(
    fields={
        "name": parts.LABEL,
        "schedulingPolicy": parts.POLICY,
        "schedulingConstraints": parts.TEMPLATE_CONSTRAINTS,
        "resourceClaims": parts.CLAIMS,
        "disruptionMode": parts.DISRUPTION,
        "priorityClassName": parts.PRIORITY_CLASS,
        "priority": parts.PRIORITY,
        "preemptionPolicy": parts.PREEMPTION_POLICY,
    }
)


def _templates(item: Obj) -> Arr:
    return Arr(key=("name",), max_items=MOST_TEMPLATES, update=Update.KEYSET, item=item)


_branch: dict[str, Node] = {
    "name": parts.LABEL,
    "schedulingPolicy": parts.COMPOSITE_POLICY,
    "schedulingConstraints": parts.COMPOSITE_CONSTRAINTS,
    "disruptionMode": parts.DISRUPTION,
    "priorityClassName": parts.PRIORITY_CLASS,
    "priority": parts.PRIORITY,
    "preemptionPolicy": parts.PREEMPTION_POLICY,
    LEAVES: _templates(_LEAF),
}
_BRANCH: Final = Obj(fields=_branch)
_branch[BRANCHES] = _templates(_BRANCH)  # a composite may hold composites: the schema is as recursive as the type

_SCHEMA: Final = Obj(
    fields={
        "spec": Obj(
            fields={
                "controllerRef": parts.CONTROLLER_REF,
                LEAVES: but(_templates(_LEAF), by_position=True, shown=True),
                BRANCHES: but(_templates(_BRANCH), gate=Gate.COMPOSITE),
            },
            union=(LEAVES, BRANCHES),
            embedded=True,
            required=True,
        )
    }
)

# ---- the rules that look at more than one template


def _lists(spec: Object, path: str) -> Iterator[tuple[str, list[Object]]]:
    """Both lists of a spec or of a composite."""
    for name in (LEAVES, BRANCHES):
        yield f"{path}.{name}", [item or {} for item in spec.get(name) or []]


def walk(spec: Object, path: str = "spec") -> Iterator[tuple[str, int, Object]]:
    """All templates with their list and place in it: a list before what hangs below its items."""
    for where, items in _lists(spec, path):
        yield from ((where, index, item) for index, item in enumerate(items))
    for index, branch in enumerate(spec.get(BRANCHES) or []):
        yield from walk(branch or {}, f"{path}.{BRANCHES}[{index}]")


def _unique_names(spec: Object) -> Iterator[FieldError]:
    """One name space for the whole tree. Repeats inside one list are the list's own rule."""
    seen: dict[Any, str] = {}
    for where, index, item in walk(spec):
        name = item.get("name") or ""
        if seen.setdefault(name, where) != where:
            yield duplicate(f"{where}[{index}].name", name)


def _depth(branch: Object) -> int:
    return 1 + max((_depth(child or {}) for child in branch.get(BRANCHES) or []), default=0)


def _shallow(spec: Object) -> Iterator[FieldError]:
    for index, root in enumerate(spec.get(BRANCHES) or []):
        depth = _depth(root or {})
        if depth > MOST_COMPOSITE_LEVELS:
            text = f"a tree may have {MOST_COMPOSITE_LEVELS} levels of composites and the leaves, found {depth} levels"
            yield invalid(f"spec.{BRANCHES}[{index}]", (root or {}).get("name") or "", text)


def _one_priority(spec: Object) -> Iterator[FieldError]:
    found = {(item.get("priorityClassName") or "", item.get("priority")) for _, _, item in walk(spec)}
    if len(found) > 1:
        words = ", ".join(
            sorted(f"({name or 'no class'}, {'unset' if value is None else value})" for name, value in found)
        )
        text = f"priorityClassName and priority must be equal in all templates, found {words}"
        yield invalid("spec", OMITTED, text)


def _no_empty_branch(spec: Object, path: str = "spec") -> Iterator[FieldError]:
    for index, branch in enumerate(spec.get(BRANCHES) or []):
        where, item = f"{path}.{BRANCHES}[{index}]", branch or {}
        if not item.get(LEAVES) and not item.get(BRANCHES):
            yield invalid(where, item.get("name") or "", f"must have at least one of {LEAVES}, {BRANCHES}")
        yield from _no_empty_branch(item, where)


def _validate(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    return [*_unique_names(spec), *_shallow(spec), *_one_priority(spec), *_no_empty_branch(spec)]


def _validate_update(new: Object, _: Object, ctx: Context) -> list[FieldError]:
    # These rules have no grace for what was stored: they hold on every update (spec workload-api 0.5).
    return _validate(new, ctx)


def _kind(version: str) -> Kind:
    return Kind(
        group=SCHEDULING_GROUP,
        version=version,
        kind="Workload",
        plural="workloads",
        singular="workload",
        schema=_SCHEMA,
        native=True,
        minors=("1.37",),
        columns=(columns.AGE,),
        status=False,
        storage=version == "v1beta1",
        gate=Gate.GENERIC_WORKLOAD,
        needs_version=True,
        validate=_validate,
        validate_update=_validate_update,
    )


V1BETA1: Final = _kind("v1beta1")
V1ALPHA3: Final = _kind("v1alpha3")
