"""Which module describes which kind. Modules are imported when a kind of theirs is first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.api.kind import Kind

# API group -> module with KINDS: tuple[Kind, ...]
_MODULES: Final = {
    "scheduling.k8s.io": "kohort.api.scheduling",
    "batch": "kohort.kinds.batch.api",
    "": "kohort.api.core",
    "jobset.x-k8s.io": "kohort.kinds.jobset.api",
    "trainer.kubeflow.org": "kohort.kinds.trainer.api",
    "grove.io": "kohort.kinds.grove.api",
    "scheduler.grove.io": "kohort.kinds.grove.api",
    "leaderworkerset.x-k8s.io": "kohort.kinds.leaderworkerset.api",
}


def groups() -> tuple[str, ...]:
    return tuple(_MODULES)


@cache
def kinds(group: str) -> tuple[Kind, ...]:
    """All kinds of an API group, every version."""
    module = _MODULES.get(group)
    if module is None:
        return ()
    return tuple(kind for kind in import_module(module).KINDS if kind.group == group)


def every_kind() -> tuple[Kind, ...]:
    return tuple(kind for group in _MODULES for kind in kinds(group))


def find(api_version: str, kind: str) -> Kind | None:
    """The kind of an object's apiVersion and kind, or None."""
    group, _, version = api_version.rpartition("/")
    return next((found for found in kinds(group) if found.version == version and found.kind == kind), None)
