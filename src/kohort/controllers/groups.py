"""Workloads, CompositePodGroups and PodGroups of any kind: wanted versus stored.

One reconcile makes what is missing, each object before what names it, lets minimums follow, and says what is the
matter with the rest. What may be used, what follows, and what people are told is each kind's GroupPolicy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal

from kohort.api.kind import Object
from kohort.api.objects import controller_of, is_controlled_by, is_deleting, meta_of, name_of, uid_of
from kohort.api.releases import SCHEDULING_GROUP
from kohort.controllers.drift import Resize, differences, label_changes, resize
from kohort.controllers.reconcile import Event, Part, ReconcileError, Refusal, Step, emit, one
from kohort.controllers.writes import create, delete, patch

KINDS: Final = ("Workload", "CompositePodGroup", "PodGroup")  # what is named exists before what names it
AT_ONCE: Final = 50  # writes of one step

GroupKey = tuple[str, str]  # kind, name


def group_key(obj: Object) -> GroupKey:
    return str(obj["kind"]), name_of(obj)


def described(obj: Object) -> str:
    return f"{obj['kind']} {name_of(obj)}"


def parent_of(group: Object) -> str:
    """The name of the branch that a group is in; empty: it is in none."""
    return str((group.get("spec") or {}).get("parentCompositePodGroupName") or "")


def keys_above(group: Object) -> set[GroupKey]:
    """The branch and the Workload that a group names."""
    spec = group.get("spec") or {}
    workload = (spec.get("workloadRef") or {}).get("workloadName")
    old = ((spec.get("podGroupTemplateRef") or {}).get("workload") or {}).get("workloadName")
    above = {("CompositePodGroup", parent_of(group)), ("Workload", workload or ""), ("Workload", old or "")}
    return {key for key in above if key[1]}


# ---- what a kind decides


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """A kind's rules for its groups. A kind overrides the methods for the events that it records.

    `owner`: who must control the objects, and whom events are about.
    `use_foreign`: an object of a wanted name that the owner does not control is used as if it were its own.
    `use_terminating`: so is one that is being deleted.
    `all_or_nothing`: nothing is made while a name is taken or on its way out, and nothing more after a refusal. A
    Workload that is not there stops all that names it in any case.
    `resize`: minimums of leaves follow. `relabel`: so do labels.
    `drift`: what any other difference leads to. None: nobody looks. "report": a problem, and the object is left alone;
    "stop": and nothing is made; "recreate": all groups of the owner are deleted, and made again by a later reconcile.
    `accept_existing`: a name that is taken after all is no problem.
    """

    owner: Object
    use_foreign: bool = False
    use_terminating: bool = False
    all_or_nothing: bool = True
    resize: bool = False
    relabel: bool = False
    drift: Literal["report", "stop", "recreate"] | None = None
    accept_existing: bool = False

    def created(self, objects: Sequence[Object]) -> Iterable[Event]:
        del objects
        return ()

    def refused(self, obj: Object, refusal: Refusal) -> Iterable[Event]:
        """It could not be created."""
        del obj, refusal
        return ()

    def resized(self, obj: Object, change: Resize) -> Iterable[Event]:
        del obj, change
        return ()

    def drifted(self, obj: Object, places: Sequence[str]) -> Iterable[Event]:
        del obj, places
        return ()

    def deleted(self, objects: Sequence[Object]) -> Iterable[Event]:
        del objects
        return ()

    # ---- whose an object is

    def standing(self, stored: Object) -> ProblemType | None:
        """Why it cannot be used; None: it can."""
        own = is_controlled_by(stored, self.owner)
        if not own and not self.use_foreign and not _is_predecessors(stored, self.owner):
            return ProblemType.FOREIGN
        if (is_deleting(stored) and not self.use_terminating) or (not own and not self.use_foreign):
            return ProblemType.TERMINATING
        return None


def _is_predecessors(obj: Object, owner: Object) -> bool:
    """Of an owner of this name that was deleted: it goes with it."""
    above = controller_of(obj) or {}
    return (above.get("kind"), above.get("name")) == (owner["kind"], name_of(owner))


# ---- what is the matter


class ProblemType(StrEnum):
    FOREIGN = "Foreign"  # somebody else's object has the name
    TERMINATING = "Terminating"
    DRIFT = "Drift"
    CREATE = "CreateRefused"
    UPDATE = "UpdateRefused"


@dataclass(frozen=True, slots=True)
class GroupProblem:
    """`object`: as it is stored, or as it should be."""

    type: ProblemType
    object: Object
    places: Sequence[str] = ()
    refusal: Refusal | None = None

    def __str__(self) -> str:
        what = self.refusal.message if self.refusal else ", ".join(self.places) or _SAID[self.type]
        return f"{described(self.object)}: {what}"


_SAID: Final = {ProblemType.FOREIGN: "belongs to somebody else", ProblemType.TERMINATING: "is being deleted"}


@dataclass(slots=True)
class GroupsOutcome:
    """`stored`: the wanted objects that are there and can be used."""

    stored: dict[GroupKey, Object] = field(default_factory=dict)
    problems: list[GroupProblem] = field(default_factory=list)

    def of(self, *types: ProblemType) -> list[GroupProblem]:
        return [problem for problem in self.problems if problem.type in types]

    def raise_for(self, *types: ProblemType, error: type[ReconcileError] = ReconcileError) -> None:
        """Without types: for any problem."""
        found = self.of(*(types or ProblemType))
        if found:
            raise error("; ".join(map(str, found)))


# ---- wanted versus stored


def reconcile(policy: GroupPolicy, wanted: Sequence[Object], known: Iterable[Object]) -> Part:
    """-> GroupsOutcome. `wanted`: as it was rendered; `known`: what is stored under these names, and perhaps more."""
    outcome = GroupsOutcome()
    there = {group_key(obj): obj for obj in known}
    usable, missing = [], []
    for obj in wanted:
        stored = there.get(group_key(obj))
        if stored is None:
            missing.append(obj)
        elif (problem := policy.standing(stored)) is not None:
            outcome.problems.append(GroupProblem(problem, stored))
        else:
            usable.append((obj, stored))
    if outcome.problems and (policy.all_or_nothing or any(p.object["kind"] == "Workload" for p in outcome.problems)):
        return outcome
    outcome.stored = {group_key(stored): stored for _, stored in usable}
    for obj, stored in usable:
        yield from _keep(policy, obj, stored, outcome)
        if policy.drift != "report" and outcome.of(ProblemType.DRIFT):
            if policy.drift == "recreate":
                yield from remove(policy, there.values())
            return outcome
    yield from _make(
        policy, missing, {name_of(obj): uid_of(obj) for obj in known if obj["kind"] == "Workload"}, outcome
    )
    return outcome


def _keep(policy: GroupPolicy, wanted: Object, stored: Object, outcome: GroupsOutcome) -> Part:
    follows = policy.resize and stored["kind"] != "CompositePodGroup"
    change = resize(wanted, stored) if follows else None
    labels = label_changes(wanted, stored) if policy.relabel else {}
    if change is not None or labels:
        body: dict[str, Any] = {"metadata": {"labels": labels}} if labels else {}
        if change is not None:
            body["spec"] = change.spec
        answer = yield from one(patch(stored, body))
        if answer.refusal is not None:
            outcome.problems.append(GroupProblem(ProblemType.UPDATE, stored, refusal=answer.refusal))
        else:
            outcome.stored[group_key(stored)] = answer.object or stored
            yield from emit(*(policy.resized(stored, change) if change is not None else ()))
    places = differences(wanted, stored, minimums=not follows) if policy.drift is not None else ()
    if places:
        outcome.problems.append(GroupProblem(ProblemType.DRIFT, stored, places))
        yield from emit(*policy.drifted(stored, places))


# ---- making


def _make(policy: GroupPolicy, missing: Sequence[Object], workloads: dict[str, str], outcome: GroupsOutcome) -> Part:
    """`workloads`: uids by name, for the groups that a Workload owns, too."""
    for batch in stages(missing):
        objects = [_owned(obj, workloads) for obj in batch]
        answers = yield Step([create(obj) for obj in objects])
        made: list[Object] = []
        refused: list[GroupProblem] = []
        for obj, answer in zip(objects, answers, strict=True):
            if answer.refusal is None:
                made.append(answer.object or obj)
            elif not (policy.accept_existing and answer.refusal.already_exists):
                refused.append(GroupProblem(ProblemType.CREATE, obj, refusal=answer.refusal))
        outcome.stored |= {group_key(obj): obj for obj in made}
        outcome.problems += refused
        workloads |= {name_of(obj): uid_of(obj) for obj in made if obj["kind"] == "Workload"}
        yield from emit(*policy.created(made))
        for problem in refused:
            if problem.refusal is not None:
                yield from emit(*policy.refused(problem.object, problem.refusal))
        if refused and (policy.all_or_nothing or batch[0]["kind"] == "Workload"):
            return


def stages(missing: Sequence[Object]) -> Iterable[Sequence[Object]]:
    """What may be created at once, in batches: Workloads, branches from the roots down, leaves."""
    left = [obj for obj in missing if obj["kind"] == "CompositePodGroup"]
    yield from batches([obj for obj in missing if obj["kind"] == "Workload"])
    while left:
        names = {name_of(obj) for obj in left}
        # A circle cannot be rendered; if one comes from elsewhere, the server says what it thinks of it.
        roots = [obj for obj in left if parent_of(obj) not in names] or left
        yield from batches(roots)
        left = [obj for obj in left if parent_of(obj) in names] if len(roots) < len(left) else []
    yield from batches([obj for obj in missing if obj["kind"] == "PodGroup"])


def batches(some: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (some[start : start + AT_ONCE] for start in range(0, len(some), AT_ONCE))


def _owned(obj: Object, workloads: dict[str, str]) -> Object:
    """With the uid that its Workload has on the server: it was rendered before that was known."""
    owners = meta_of(obj).get("ownerReferences") or ()
    if not any(_is_workload(owner) and owner["name"] in workloads for owner in owners):
        return obj
    filled = [
        {**owner, "uid": workloads.get(owner["name"], owner["uid"])} if _is_workload(owner) else owner
        for owner in owners
    ]
    return {**obj, "metadata": {**meta_of(obj), "ownerReferences": filled}}


def _is_workload(owner: Object) -> bool:
    return owner["kind"] == "Workload" and str(owner["apiVersion"]).startswith(f"{SCHEDULING_GROUP}/")


# ---- removing


def remove(policy: GroupPolicy, known: Iterable[Object], keep: Collection[GroupKey] = ()) -> Part:
    """Those that the owner controls, but for `keep`: leaves first, the Workload last. What a user has made stays."""
    own = [
        obj
        for obj in known
        if is_controlled_by(obj, policy.owner) and not is_deleting(obj) and group_key(obj) not in keep
    ]
    for kind in reversed(KINDS):
        for batch in batches([obj for obj in own if obj["kind"] == kind]):
            answers = yield Step([delete(obj) for obj in batch])
            done = [obj for obj, answer in zip(batch, answers, strict=True) if answer.refusal is None]
            yield from emit(*policy.deleted(done))
            problems = [
                f"{described(obj)}: {answer.refusal.message}"
                for obj, answer in zip(batch, answers, strict=True)
                # A conflict: another object has the name by now.
                if answer.refusal is not None and not (answer.refusal.not_found or answer.refusal.conflict)
            ]
            if problems:
                raise ReconcileError("; ".join(problems))
