"""PodGangs onto the Workload API: made once, in order, never changed, never adopted (GREP-531, spec grove 3.6 to 3.9).

Workload first, then branches from the root down, then PodGroups; whatever fails stops what comes after it. Objects that
are not as they should be are told about and left alone, and new pods of the gang stay gated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import controller_of, is_controlled_by, is_deleting, uid_of
from kohort.controllers import groups as kit
from kohort.controllers.groups import ProblemType
from kohort.controllers.reconcile import Part, Refusal
from kohort.controllers.writes import create
from kohort.gang.compile import CompileContext
from kohort.gang.render import render
from kohort.kinds.grove.compile import groups, names
from kohort.kinds.grove.compile.expand import Gang
from kohort.kinds.grove.compile.topology import Topology
from kohort.kinds.grove.control.sets import CliqueSet

READY: Final = "GroupsCreated"
MAPPING_FAILED: Final = "WorkloadMappingFailed"
SYNC_FAILED: Final = "WorkloadSyncFailed"
DRIFT: Final = "WorkloadDrift"
TERMINATING: Final = "PodGroupTerminating"
UNAVAILABLE: Final = "WorkloadAPIUnavailable"

KINDS: Final = ("Workload", "CompositePodGroup", "PodGroup")


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether all objects of a gang are there and as they should be; if not, why. `again`: trying again may help."""

    reason: str = READY
    message: str = "all groups of the gang exist"
    again: bool = False

    @property
    def ok(self) -> bool:
        return self.reason == READY


def _below_minimum(gang: Gang) -> str:
    """A clique whose minimum no group can have; empty if there is none."""
    for clique in gang.cliques:
        if clique.minimum < 1:
            return f"group {clique.name}: minimum is {clique.minimum}, a group needs at least 1"
    return ""


def _preferred_topology(gang: Gang, topology: Topology) -> str:
    """A preference that groups cannot express; empty if there is none."""
    packs = [topology.of_gang(gang), *(topology.of_group(clique.group) for clique in gang.cliques)]
    packs += [topology.pack(clique.template.get("topologyConstraint")) for clique in gang.cliques]
    found = next((pack.preferred for pack in packs if pack.preferred), "")
    return f"preferred topology {found} cannot be expressed; only required topology can" if found else ""


@dataclass(frozen=True, slots=True)
class Groups:
    """`served`: whether the API server has the kinds, as far as could be seen at the start."""

    ctx: CompileContext
    served: bool = True

    # ---- asked by PodCliques

    def kind(self) -> str:
        """What a pod names: a PodGroup, or on 1.35 a group inside a Workload."""
        return "PodGroup" if self.ctx.release.has_pod_groups else "Workload"

    def name(self, podgang: str, pclq: str) -> str:
        return names.runtime(podgang, pclq) if self.ctx.release.has_pod_groups else podgang

    def is_member(self, pod: Object) -> bool:
        """A server whose feature gate is off drops the membership without a word (3.11)."""
        return pod["spec"].get(self.ctx.release.pod_field) is not None

    # ---- made for PodGangs

    def ensure(self, pcs: CliqueSet, gang: Gang, topology: Topology, podgang: Object, known: Sequence[Object]) -> Part:
        """-> Readiness"""
        by_name = {kit.group_key(obj): obj for obj in known}
        problem = _below_minimum(gang)
        if problem:
            # What has been placed keeps the minimum it was placed with (D12).
            had = by_name.get(("Workload", gang.name))
            if had is not None and is_controlled_by(had, podgang):
                return Readiness()
        problem = problem or _preferred_topology(gang, topology)
        if problem:
            return Readiness(MAPPING_FAILED, problem)
        plan = groups.plan(pcs.obj, gang, uid_of(podgang), topology, self.ctx)
        rendered = render(plan, self.ctx.release)
        if rendered.errors:
            return Readiness(MAPPING_FAILED, "; ".join(map(str, rendered.errors)))
        # Where the kinds could not be listed, an object that exists is not seen.
        policy = kit.GroupPolicy(owner=podgang, drift="stop", accept_existing=not self.served)
        outcome: kit.GroupsOutcome = yield from kit.reconcile(policy, rendered.objects, known)
        return _readiness(outcome.problems[0]) if outcome.problems else Readiness()


def _readiness(problem: kit.GroupProblem) -> Readiness:
    what = kit.described(problem.object)
    if problem.refusal is not None:
        return _refused(str(create(problem.object)), problem.refusal)
    if problem.type is ProblemType.TERMINATING:
        return Readiness(TERMINATING, f"{what} is of an earlier gang and is being deleted", again=True)
    if problem.type is ProblemType.FOREIGN:
        return Readiness(SYNC_FAILED, f"{what} exists and belongs to somebody else; it is not adopted", again=True)
    return Readiness(DRIFT, f"{what} is not as the gang would be made now: {', '.join(problem.places)}")


def _refused(what: str, refusal: Refusal) -> Readiness:
    if refusal.reason == "NotServedError" or (refusal.not_found and "namespace" not in refusal.message):
        return Readiness(UNAVAILABLE, f"{what}: the API server does not serve the kind", again=True)
    return Readiness(SYNC_FAILED, f"{what}: {refusal.message}", again=True)


def is_leftover(obj: Object, podgang: Object | None) -> bool:
    """Of an earlier PodGang of the same name: it goes as soon as no pod names it, and must not be joined (3.9)."""
    above = controller_of(obj) or {}
    if is_deleting(obj):
        return True
    return above.get("kind") == "PodGang" and (podgang is None or above.get("uid") != uid_of(podgang))
