"""PodGangs onto the Workload API: made once, in order, never changed, never adopted (GREP-531, spec grove 3.6 to 3.9).

Workload first, then branches from the root down, then PodGroups; whatever fails stops what comes after it. Objects that
are not as they should be are told about and left alone, and new pods of the gang stay gated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.meta import controller_of
from kohort.controllers.groups import stages
from kohort.controllers.objects import is_controlled_by, is_deleting, name_of, uid_of
from kohort.controllers.reconcile import Refusal, Step
from kohort.controllers.writes import create
from kohort.gang.compile import CompileContext
from kohort.gang.render import render
from kohort.kinds.grove.compile import groups, names
from kohort.kinds.grove.compile.expand import Gang
from kohort.kinds.grove.compile.topology import Topology
from kohort.kinds.grove.control.sets import CliqueSet
from kohort.kinds.grove.control.writing import Part

READY: Final = "GroupsCreated"
MAPPING_FAILED: Final = "WorkloadMappingFailed"
SYNC_FAILED: Final = "WorkloadSyncFailed"
DRIFT: Final = "WorkloadDrift"
TERMINATING: Final = "PodGroupTerminating"
UNAVAILABLE: Final = "WorkloadAPIUnavailable"

KINDS: Final = ("Workload", "CompositePodGroup", "PodGroup")
_TEMPLATES: Final = ("compositePodGroupTemplates", "podGroupTemplates", "podGroups")
_OWNED: Final = (
    "policy",
    "schedulingPolicy",
    "schedulingConstraints",
    "parentCompositePodGroupName",
    "podGroupTemplateRef",
    "workloadRef",
)


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
    wish = next((pack.preferred for pack in packs if pack.preferred), "")
    return f"preferred topology {wish} cannot be expressed; only required topology can" if wish else ""


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
        by_name = {(obj["kind"], name_of(obj)): obj for obj in known}
        problem = _below_minimum(gang)
        if problem:
            # What has been placed keeps the minimum it was placed with (D12).
            had = by_name.get(("Workload", gang.name))
            if had is not None and is_controlled_by(had, podgang):
                return Readiness()
        problem = problem or _preferred_topology(gang, topology)
        if problem:
            return Readiness(MAPPING_FAILED, problem)
        wanted, problem = self._objects(pcs, gang, topology, podgang)
        if problem:
            return Readiness(MAPPING_FAILED, problem)
        found = [by_name.get((obj["kind"], name_of(obj))) for obj in wanted]
        for obj, stored in zip(wanted, found, strict=True):
            fault = _fault(obj, stored, podgang) if stored is not None else None
            if fault is not None:
                return fault
        return (yield from self._make([obj for obj, stored in zip(wanted, found, strict=True) if stored is None]))

    def _objects(self, pcs: CliqueSet, gang: Gang, topology: Topology, podgang: Object) -> tuple[Sequence[Object], str]:
        plan = groups.plan(pcs.obj, gang, uid_of(podgang), topology, self.ctx)
        rendered = render(plan, self.ctx.release)
        return rendered.objects, "; ".join(map(str, rendered.errors))

    def _make(self, missing: Sequence[Object]) -> Part:
        """Kind by kind, branches one after the other: each is made when what it names is there."""
        for stage in stages(missing):
            writes = [create(obj) for obj in stage]
            answers = yield Step(writes)
            for write, answer in zip(writes, answers, strict=True):
                if answer.refusal is None or (answer.refusal.already_exists and not self.served):
                    continue
                return _refused(str(write), answer.refusal)
        return Readiness()


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


def _fault(wanted: Object, stored: Object, podgang: Object) -> Readiness | None:
    what = f"{stored['kind']} {name_of(stored)}"
    if is_leftover(stored, podgang):
        return Readiness(TERMINATING, f"{what} is of an earlier gang and is being deleted", again=True)
    if not is_controlled_by(stored, podgang):
        return Readiness(SYNC_FAILED, f"{what} exists and belongs to somebody else; it is not adopted", again=True)
    changed = _changed(_owned(wanted["spec"]), _owned(stored["spec"]))
    if changed:
        return Readiness(DRIFT, f"{what} is not as the gang would be made now: {', '.join(changed)}")
    return None


def _owned(block: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a gang decides. What a server fills in otherwise (disruption, priority) is not looked at."""
    found: dict[str, Any] = {key: block[key] for key in _OWNED if block.get(key)}
    if block.get("priorityClassName"):
        found["priorityClassName"] = block["priorityClassName"]
    for key in _TEMPLATES:
        if block.get(key):
            found[key] = {one["name"]: _owned(one) for one in block[key]}
    return found


def _changed(wanted: Mapping[str, Any], stored: Mapping[str, Any], path: str = "spec") -> list[str]:
    """Where the two differ. A priority class that nobody asked for is the server's."""
    found: list[str] = []
    for key in {**wanted, **stored}:
        new, old, at = wanted.get(key), stored.get(key), f"{path}.{key}"
        if key == "priorityClassName" and new is None:
            continue
        if isinstance(new, Mapping) and isinstance(old, Mapping):
            found += _changed(new, old, at)
        elif new != old:
            found.append(at)
    return found
