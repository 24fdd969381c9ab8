"""How stored groups differ from what the JobSet asks for: minimums follow, anything else is told (spec jobset 4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.kind import Object
from kohort.controllers import groups as kit

_LISTS: Final = ("podGroupTemplates", "compositePodGroupTemplates")
_MINIMUMS: Final = ("minCount", "minGroupCount")


@dataclass(frozen=True, slots=True)
class Resize:
    """`body`: the patch of the spec; `old`, `new`: minimums, for people."""

    body: dict[str, Any]
    old: int
    new: int


def resized(wanted: Object, stored: Object) -> Resize | None:
    """The minimum of a PodGroup, or the first that differs of a Workload's templates (its list is one value)."""
    if stored["kind"] == "PodGroup":
        new, old = kit.minimum(wanted["spec"]), kit.minimum(stored["spec"])
        if new is None or old is None or new == old:
            return None
        return Resize({"schedulingPolicy": {"gang": {"minCount": new}}}, old, new)
    templates = stored["spec"].get(_LISTS[0]) or []
    least = {one["name"]: kit.minimum(one) for one in wanted["spec"].get(_LISTS[0]) or []}
    changed = [
        (one, least[one["name"]], known)
        for one in templates
        if (known := kit.minimum(one)) is not None and least.get(one["name"]) not in (None, known)
    ]
    if not changed:
        return None
    names = {one["name"]: new for one, new, _ in changed}
    merged = [
        {**one, "schedulingPolicy": {"gang": {"minCount": names[one["name"]]}}} if one["name"] in names else one
        for one in templates
    ]
    _, new, old = changed[0]
    return Resize({_LISTS[0]: merged}, old, int(new or 0))


def differences(wanted: Object, stored: Object, *, minimums: bool) -> list[str]:
    """Places of the spec that are not as wanted. What the server filled in is no difference.

    `minimums` False: those of leaves are not looked at, they follow by themselves.
    """
    return list(_within(wanted["spec"], stored.get("spec") or {}, "spec", minimums))


def _within(wanted: Any, found: Any, path: str, minimums: bool) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, value in wanted.items():
            if name != "minCount" or minimums:
                yield from _within(value, found.get(name), f"{path}.{name}", minimums)
        if path.endswith("schedulingPolicy") and wanted.keys() != found.keys():
            yield path
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _within(one, other, f"{path}[{index}]", minimums)
    elif wanted != found:
        said = (
            "is missing" if found is None else f"is {found!r}" if not isinstance(found, dict | list) else "is another"
        )
        yield f"{path} {said}"
