"""Compilers: one pure module per workload kind, each turning an object into plans.

A compiler is a function `compile_object(obj, ctx) -> Compilation`. It is given a defaulted object that passed
validation, and what else it may look at (`ctx.lookup`). It never raises on a valid object: what cannot be expressed is
an error of the compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module

from kohort.api.bundle import bundles, derived
from kohort.api.errors import FieldError
from kohort.api.kind import Context, Object
from kohort.api.objects import namespace_or_default
from kohort.gang.settings import DEFAULTS, SettingsByKind
from kohort.gang.tree import Plan


@dataclass(frozen=True, slots=True)
class Notice:
    """What a controller records as an event, by the event's names: `reason` for machines, `note` for people."""

    reason: str
    note: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.note}"


@dataclass(frozen=True, slots=True)
class Compilation:
    """What became of a workload.

    No plan and no error: nothing is to be created, and `reason` says why in a short sentence. `notice`: the same, or
    the error, where controllers have an event for it.
    `objects` are further objects that the controller makes on the way (a TrainJob's JobSet, Grove's PodGangs).
    """

    plans: tuple[Plan, ...] = ()
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError | str, ...] = ()
    reason: str = ""
    objects: tuple[Object, ...] = ()
    notice: Notice | None = None


class Lookup:
    """Other objects that a compiler may need: a TrainJob's runtime, an existing Workload, a topology binding."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._objects = tuple(objects)

    def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """By kind and name; `namespace` None means a cluster-wide kind."""
        return next((obj for obj in self.every(kind, namespace) if obj["metadata"]["name"] == name), None)

    def every(self, kind: str, namespace: str | None = None) -> list[Object]:
        found = [obj for obj in self._objects if obj.get("kind") == kind]
        return found if namespace is None else [obj for obj in found if namespace_or_default(obj) == namespace]


@dataclass(frozen=True, slots=True)
class CompileContext(Context):
    """What a compiler depends on beside the object. What is known of a living object is an argument of its compiler."""

    lookup: Lookup = field(default_factory=Lookup)
    settings: SettingsByKind = DEFAULTS


Compiler = Callable[[Object, CompileContext], Compilation]


@derived
def _modules() -> dict[tuple[str, str], str]:
    """(API group, kind) -> module with compile_object."""
    return {key: module for one in bundles() for key, module in one.compilers.items()}


@derived
def compiler(group: str, kind: str) -> Compiler | None:
    """The compiler of a workload kind, or None for other kinds."""
    module = _modules().get((group, kind))
    if module is None:
        return None
    found: Compiler = import_module(module).compile_object
    return found


def workload_kinds() -> tuple[tuple[str, str], ...]:
    return tuple(_modules())
