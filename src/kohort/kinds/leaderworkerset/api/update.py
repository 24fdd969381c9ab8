"""What may change in a living LeaderWorkerSet (spec lws 1.4, 3.7, 4.4, 4.9), beside the frozen fields of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api.errors import FieldError, at, forbidden, invalid
from kohort.api.kind import Context, Object
from kohort.api.objects import annotation
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.api.levels import (
    ROLES,
    Shape,
    minimum_groups,
    path_of,
    path_of_level,
    replicas,
    shape_of,
    size,
    template_name,
)
from kohort.kinds.leaderworkerset.api.scheduling import priority_class
from kohort.kinds.leaderworkerset.api.validation import annotation_path, validate

_SUBGROUP_SIZE: Final = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
_IMMUTABLE: Final = "field is immutable"


def validate_update(new: Object, old: Object, ctx: Context) -> list[FieldError]:
    return [
        *validate(new, ctx),
        *_subgroups(_subgroup_size(new), _subgroup_size(old)),
        *_topology(new, old),
        *_scheduling(new, old, ctx),
    ]


def _subgroup_policy(obj: Object) -> Any:
    return ((obj.get("spec") or {}).get("leaderWorkerTemplate") or {}).get("subGroupPolicy")


def _subgroup_size(obj: Object) -> Any:
    return (_subgroup_policy(obj) or {}).get("subGroupSize")


def _subgroups(new: int | None, old: int | None) -> Iterator[FieldError]:
    if new == old:
        return
    if old is None:
        yield invalid(_SUBGROUP_SIZE, new, "cannot enable subGroupSize after the lws is already created")
    elif new is None:
        yield invalid(_SUBGROUP_SIZE, old, "cannot remove subGroupSize after enabled")
    else:
        yield invalid(_SUBGROUP_SIZE, new, _IMMUTABLE)


def _topology(new: Object, old: Object) -> Iterator[FieldError]:
    """Ours: upstream would replace all leaders at once, outside any rollout (spec lws 2.6)."""
    keys = [constants.EXCLUSIVE_TOPOLOGY]
    if _subgroup_policy(new) is not None:  # without subgroups it is refused anyway
        keys.append(constants.SUBGROUP_EXCLUSIVE_TOPOLOGY)
    for key in keys:
        if annotation(new, key) != annotation(old, key):
            yield invalid(annotation_path(key), annotation(new, key), _IMMUTABLE)


# ---- spec.scheduling


def _scheduling(new: Object, old: Object, ctx: Context) -> Iterator[FieldError]:
    after, before = shape_of(new), shape_of(old)
    if after is None or before is None:  # setting or removing all of it: the schema refuses it
        return
    if after.active != before.active:
        yield _another_level(after, before)
        return
    for role in ROLES:
        yield from _variant(after.blocks[role], before.blocks[role], role)
    yield from _priority(new, old)
    yield from _scale(new, old, after, ctx)


def _another_level(after: Shape, before: Shape) -> FieldError:
    levels = [", ".join(path_of_level(level) for level in shape.active) for shape in (before, after)]
    return forbidden("spec.scheduling", f"the level never changes: it was {levels[0]}, now it is {levels[1]}")


def _variant(after: dict[str, Any], before: dict[str, Any], role: str) -> Iterator[FieldError]:
    """The schema sees a policy come or go; that gang becomes basic, or the reverse, is said here."""
    now, was = (block.get("schedulingPolicy") or {} for block in (after, before))
    if now and was and (now.get("gang") is None) != (was.get("gang") is None):
        yield invalid(at(path_of(role), "schedulingPolicy"), now, _IMMUTABLE)


def _priority(new: Object, old: Object) -> Iterator[FieldError]:
    for role in ROLES:
        now, was = priority_class(new, role), priority_class(old, role)
        if now != was:
            path = f"spec.leaderWorkerTemplate.{template_name(new, role)}.spec.priorityClassName"
            yield invalid(path, now, f'the Workload was made with "{was}", which never changes')
            return


def _scale(new: Object, old: Object, shape: Shape, ctx: Context) -> Iterator[FieldError]:
    """A minimum over the whole set has to follow its size, and some objects cannot be changed."""
    if "lws" not in shape.gangs:
        return
    numbers = (("spec.replicas", replicas), ("spec.leaderWorkerTemplate.size", size))
    if shape.flat and not ctx.release.min_count_mutable:
        for path, number in numbers:
            if number(new) != number(old):
                detail = f"the gang of all pods cannot follow: minCount is frozen in Kubernetes {ctx.release.minor}"
                yield forbidden(path, detail)
        return
    # minGroupCount of a living CompositePodGroup is frozen; from and to 0 the group itself comes and goes.
    lives_on = replicas(new) != replicas(old) and 0 not in {replicas(new), replicas(old)}
    if not shape.flat and lives_on and minimum_groups(shape.blocks["lws"]) is None:
        detail = "the gang of all replicas cannot follow: minGroupCount is frozen in a living CompositePodGroup"
        yield forbidden("spec.replicas", f"{detail}; go through 0, or create the set with a minGroupCount")
