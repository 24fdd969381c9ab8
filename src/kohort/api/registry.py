"""Which module describes which kind. Modules are imported when a kind of theirs is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from kohort.api.bundle import bundles, derived

if TYPE_CHECKING:
    from kohort.api.kind import Kind

# Kinds that are nobody's workload: API group -> module with KINDS: tuple[Kind, ...]
_SHARED: Final = {
    "scheduling.k8s.io": "kohort.api.scheduling",
    "": "kohort.api.core",
    "kohort.dev": "kohort.grouping.api",
}


@derived
def _modules() -> dict[str, str]:
    return _SHARED | {group: module for one in bundles() for group, module in one.api.items()}


def groups() -> tuple[str, ...]:
    return tuple(_modules())


@derived
def kinds(group: str) -> tuple[Kind, ...]:
    """All kinds of an API group, every version."""
    module = _modules().get(group)
    if module is None:
        return ()
    return tuple(kind for kind in import_module(module).KINDS if kind.group == group)


def every_kind() -> tuple[Kind, ...]:
    return tuple(kind for group in groups() for kind in kinds(group))


@derived
def owner_kinds() -> tuple[Kind, ...]:
    """Kinds that may stand above pods and groups: those of the bundles, save what workloads only refer to."""
    named = {one for bundle in bundles() for one in bundle.referenced}
    every = (kind for bundle in bundles() for group in bundle.groups for kind in kinds(group))
    return tuple(kind for kind in every if kind.storage and (kind.group, kind.kind) not in named)


def find(api_version: str, kind: str) -> Kind | None:
    """The kind of an object's apiVersion and kind, or None."""
    group, _, version = api_version.rpartition("/")
    return next((found for found in kinds(group) if found.version == version and found.kind == kind), None)
