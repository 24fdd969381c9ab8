"""How a Pod names its group: `workloadRef` in 1.35, `schedulingGroup` from 1.36 on (spec workload-api 2.1, 2.2, 7.5).

Also for pod templates: `path` is where the pod spec stands. Nothing here looks whether the group exists; no API does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.api import formats
from kohort.api.errors import FieldError, at, forbidden, invalid
from kohort.api.releases import Gate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context

PodSpec = dict[str, Any]


def tidy(spec: PodSpec, ctx: Context) -> None:
    """Empty members of a reference are absent ones once stored. Not of a `schedulingGroup`: there they are wrong."""
    reference = spec.get("workloadRef")
    if ctx.release.pod_field == "workloadRef" and isinstance(reference, dict):
        spec["workloadRef"] = {name: text for name, text in reference.items() if text}


def check(spec: PodSpec, path: str, ctx: Context) -> list[FieldError]:
    """What is wrong with the membership of a new pod spec, once fields behind gates that are off are gone."""
    member = ctx.release.pod_field
    if spec.get(member) is None:
        return []
    if member == "workloadRef":
        return list(_workload_ref(spec[member], at(path, member)))
    return list(_scheduling_group(spec, at(path, member), ctx))


def _workload_ref(reference: dict[str, Any], path: str) -> Iterator[FieldError]:
    for member, form in (("name", formats.subdomain), ("podGroup", formats.label)):
        yield from _text(reference.get(member) or "", form, at(path, member))
    if key := reference.get("podGroupReplicaKey"):
        yield from _text(key, formats.label, at(path, "podGroupReplicaKey"))


def _scheduling_group(spec: PodSpec, path: str, ctx: Context) -> Iterator[FieldError]:
    group = spec["schedulingGroup"]
    name = group.get("podGroupName")
    if name is None:
        yield invalid(at(path, "podGroupName"), "", "must specify one of: `podGroupName`")
    else:
        yield from _text(name, formats.subdomain, at(path, "podGroupName"))
    if ctx.on(Gate.EVICTION_REQUEST) and spec.get("evictionResponders"):
        yield forbidden(path, "may not be set when evictionResponders is set")


def _text(text: str, form: formats.Format, path: str) -> Iterator[FieldError]:
    yield from (invalid(path, text, problem) for problem in formats.problems(form, text))
