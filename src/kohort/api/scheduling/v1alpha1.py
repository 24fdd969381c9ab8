"""Workload of Kubernetes 1.35 (spec workload-api 2.1). All rules are by hand: other kinds of errors, other places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, duplicate, invalid, required, too_many
from kohort.api.kind import Kind
from kohort.api.releases import SCHEDULING_GROUP, Gate
from kohort.api.rules import same
from kohort.api.scheduling import columns
from kohort.api.scheduling.constants import MOST_TEMPLATES
from kohort.api.schema import EMPTY, Arr, Int, Obj, Str

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context, Object

_POLICY: Final = Obj(fields={"basic": EMPTY, "gang": Obj(fields={"minCount": Int()})}, embedded=True)
_SCHEMA: Final = Obj(
    fields={
        "spec": Obj(
            fields={
                "controllerRef": Obj(fields={"apiGroup": Str(blank=True), "kind": Str(), "name": Str()}),
                "podGroups": Arr(key=("name",), distinct=False, item=Obj(fields={"name": Str(), "policy": _POLICY})),
            },
            embedded=True,
        )
    }
)


def _validate(obj: Object, _: Context) -> list[FieldError]:
    spec = obj.get("spec") or {}
    return [*_controller(spec.get("controllerRef")), *_groups(spec.get("podGroups") or [])]


def _validate_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    return [*_validate(new, ctx), *_frozen(new.get("spec") or {}, old.get("spec") or {})]


def _frozen(spec: Object, before: Object) -> Iterator[FieldError]:
    # The paths lack "spec." in this release.
    reference = before.get("controllerRef")
    if reference is not None and not same(spec.get("controllerRef"), reference):
        yield invalid("controllerRef", spec.get("controllerRef"), "field is immutable")
    if not same(spec.get("podGroups"), before.get("podGroups")):
        yield invalid("podGroups", spec.get("podGroups"), "field is immutable")


def _controller(reference: dict[str, Any] | None) -> Iterator[FieldError]:
    if reference is None:
        return
    path, group = "spec.controllerRef", reference.get("apiGroup")
    if group:
        yield from (
            invalid(f"{path}.apiGroup", group, problem) for problem in formats.problems(formats.subdomain, group)
        )
    for member in ("kind", "name"):
        text = reference.get(member) or ""
        if not text:
            yield required(f"{path}.{member}")
        for problem in formats.problems(formats.path_segment, text):
            yield invalid(f"{path}.{member}", text, problem)


def _groups(groups: list[dict[str, Any]]) -> Iterator[FieldError]:
    path = "spec.podGroups"
    if not groups:
        yield required(path, "must have at least one item")
    elif len(groups) > MOST_TEMPLATES:
        yield too_many(path, len(groups), MOST_TEMPLATES)
    else:
        seen: set[str] = set()
        for index, group in enumerate(groups):
            name = (group or {}).get("name") or ""
            where = f"{path}[{index}]"
            yield from (invalid(f"{where}.name", name, problem) for problem in formats.problems(formats.label, name))
            if name in seen:
                yield duplicate(f"{where}.name", name)
            seen.add(name)
            yield from _policy((group or {}).get("policy") or {}, f"{where}.policy")


def _policy(policy: dict[str, Any], path: str) -> Iterator[FieldError]:
    chosen = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if not chosen:
        yield required(path, "exactly one of `basic`, `gang` is required")
    elif len(chosen) > 1:
        yield invalid(path, "{basic, gang}", "exactly one of `basic`, `gang` is required")
    elif chosen == ["gang"] and (count := policy["gang"].get("minCount") or 0) <= 0:
        yield invalid(f"{path}.gang.minCount", count, "must be greater than zero")


WORKLOAD: Final = Kind(
    group=SCHEDULING_GROUP,
    version="v1alpha1",
    kind="Workload",
    plural="workloads",
    singular="workload",
    schema=_SCHEMA,
    native=True,
    minors=("1.35",),
    columns=(columns.AGE,),
    status=False,
    gate=Gate.GENERIC_WORKLOAD,
    validate=_validate,
    validate_update=_validate_update,
)
