"""PriorityClass (scheduling.k8s.io/v1), the same in all three releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kohort.api.errors import FieldError, forbidden
from kohort.api.kind import Column, Kind
from kohort.api.releases import SCHEDULING_GROUP
from kohort.api.scheduling import columns
from kohort.api.scheduling.constants import (
    HIGHEST_USER_PRIORITY,
    PREEMPT_LOWER_PRIORITY,
    PREEMPTION_POLICIES,
    SYSTEM_CLASSES,
    SYSTEM_PREFIX,
)
from kohort.api.schema import Bool, Int, Obj, Str

if TYPE_CHECKING:
    from kohort.api.kind import Context, Object

_SCHEMA: Final = Obj(
    fields={
        "value": Int(),  # always written, 0 too
        "globalDefault": Bool(),
        "description": Str(blank=True),
        "preemptionPolicy": Str(enum=PREEMPTION_POLICIES, default=PREEMPT_LOWER_PRIORITY),
    }
)


def _default(obj: Object, _: Context) -> None:
    obj["value"] = obj.get("value") or 0
    if not obj.get("globalDefault"):
        obj.pop("globalDefault", None)


def _validate(obj: Object, _: Context) -> list[FieldError]:
    name, value = (obj.get("metadata") or {}).get("name") or "", obj.get("value") or 0
    if name.startswith(SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) == value and not obj.get("globalDefault"):
            return []
        text = f"names with the prefix {SYSTEM_PREFIX!r} are for classes that every cluster has"
        return [forbidden("metadata.name", text)]
    if value > HIGHEST_USER_PRIORITY:
        return [forbidden("value", f"may not be above {HIGHEST_USER_PRIORITY}, found {value}")]
    return []


def _validate_update(new: Object, old: Object, _: Context) -> list[FieldError]:
    found: list[FieldError] = []
    for member in ("value", "preemptionPolicy"):
        before: Any = old.get(member)
        if new.get(member) != before:
            found.append(forbidden(member, f"may not be changed in an update, was {before}"))
    return found


PRIORITY_CLASS: Final = Kind(
    group=SCHEDULING_GROUP,
    version="v1",
    kind="PriorityClass",
    plural="priorityclasses",
    singular="priorityclass",
    short_names=("pc",),
    schema=_SCHEMA,
    namespaced=False,
    native=True,
    status=False,
    columns=(
        Column("Value", type="integer", path=".value", cell=lambda obj: obj.get("value") or 0),
        Column(
            "Global-Default", type="boolean", path=".globalDefault", cell=lambda obj: bool(obj.get("globalDefault"))
        ),
        columns.AGE,
        Column("PreemptionPolicy", path=".preemptionPolicy", cell=lambda obj: obj.get("preemptionPolicy")),
    ),
    default=_default,
    validate=_validate,
    validate_update=_validate_update,
)
