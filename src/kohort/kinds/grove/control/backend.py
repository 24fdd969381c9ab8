"""How a scheduler is told about gangs: Grove's backend interface (GREP-375), and the backends there are.

A backend prepares pods (from their labels alone) and brings about the objects that its scheduler reads, for one PodGang
at a time. What it cannot express is refused when a set is submitted (`kinds/grove/api/backend.py`), not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kohort.api.kind import Object
from kohort.controllers.reconcile import Part
from kohort.gang.compile import CompileContext
from kohort.kinds.grove.api import backend as validation
from kohort.kinds.grove.api import options
from kohort.kinds.grove.compile import membership
from kohort.kinds.grove.compile.expand import Gang
from kohort.kinds.grove.compile.topology import Topology
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.workload import Groups, Readiness


class Backend(Protocol):
    """One scheduler's side of the contract."""

    @property
    def groups(self) -> Groups | None:
        """How its pods are grouped; None where the scheduler reads PodGangs itself."""

    def prepare(self, pod: Object, pcs: CliqueSet) -> None:
        """Completes a pod before it is made."""

    def reconcile(
        self, pcs: CliqueSet, gang: Gang, topology: Topology, podgang: Object, known: Sequence[Object]
    ) -> Part:
        """Brings about what the scheduler reads -> Readiness, or None where there is nothing to wait for."""


@dataclass(frozen=True, slots=True)
class PodGangBackend:
    """The scheduler reads PodGangs, or nothing at all: pods get its name, and that is all."""

    ctx: CompileContext

    @property
    def groups(self) -> Groups | None:
        return None

    def prepare(self, pod: Object, pcs: CliqueSet) -> None:
        membership.prepare(pod, pcs.obj, self.ctx)

    def reconcile(self, *_: object, **__: object) -> Part:
        yield from ()
        return None


@dataclass(frozen=True, slots=True)
class WorkloadBackend:
    """kube-scheduler and Kohort: Workload, CompositePodGroups and PodGroups (GREP-531)."""

    ctx: CompileContext
    served: bool = True

    @property
    def groups(self) -> Groups | None:
        return Groups(self.ctx, self.served)

    def prepare(self, pod: Object, pcs: CliqueSet) -> None:
        membership.prepare(pod, pcs.obj, self.ctx)

    def reconcile(
        self, pcs: CliqueSet, gang: Gang, topology: Topology, podgang: Object, known: Sequence[Object]
    ) -> Part:
        ready: Readiness = yield from Groups(self.ctx, self.served).ensure(pcs, gang, topology, podgang, known)
        return ready


def choose(pcs: CliqueSet, ctx: CompileContext, *, served: bool) -> Backend:
    """The backend of a set. A set whose templates name their groups has handed them to somebody else (3.10)."""
    if ctx.on(options.GANG) and validation.concerned(pcs.obj) and not validation.external(pcs.obj):
        return WorkloadBackend(ctx, served)
    return PodGangBackend(ctx)
