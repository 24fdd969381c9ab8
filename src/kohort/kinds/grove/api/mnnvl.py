"""`grove.io/mnnvl-group`: GPUs of several nodes joined by NVLink, by ComputeDomains of NVIDIA's driver.

Grove's operator makes them if its configuration says so (autoMNNVLEnabled), and else refuses who asks for it. Nobody
here makes ComputeDomains: a pod that was promised one and runs without would only fail later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kohort.api import formats
from kohort.api.errors import FieldError, invalid
from kohort.api.kind import Object
from kohort.api.rules import same
from kohort.kinds.grove.api import parts

ANNOTATION: Final = "grove.io/mnnvl-group"
NONE: Final = "none"  # asks for no domain, which is always granted


def _annotated(obj: Object) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, owner and annotations of the set, its cliques and its scaling groups."""
    yield "metadata.annotations", "", (obj.get("metadata") or {}).get("annotations") or {}
    for read in (parts.cliques, parts.scaling_groups):
        for path, entry in read(obj):
            owner = f"{read.__name__}/{entry.get('name')}"
            yield f"{path}.annotations", owner, entry.get("annotations") or {}


def check_new(obj: Object) -> Iterator[FieldError]:
    for path, _, given in _annotated(obj):
        value = given.get(ANNOTATION)
        if value is None or value == NONE:
            continue
        at = f"{path}.{ANNOTATION}"
        if wrong := formats.label(str(value)):
            yield invalid(at, value, wrong)
        yield invalid(
            at, value, f'MNNVL is not enabled: nobody makes ComputeDomains here; remove the annotation or say "{NONE}"'
        )


def check_update(new: Object, old: Object) -> Iterator[FieldError]:
    before = {owner: given for _, owner, given in _annotated(old)}
    for path, owner, given in _annotated(new):
        if owner in before and not same(given.get(ANNOTATION), before[owner].get(ANNOTATION)):
            yield invalid(f"{path}.{ANNOTATION}", given.get(ANNOTATION), "field is immutable")
