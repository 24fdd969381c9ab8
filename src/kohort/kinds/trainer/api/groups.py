"""Which ReplicatedJobs of a runtime form which group (spec trainjob 3.3 and 3.9).

The answer depends on the runtime alone: neither the TrainJob nor its patches can change membership. So it is worked
out here, where the runtime is validated, and the compiler of TrainJobs only adds sizes and names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.api.errors import FieldError, at, duplicate, forbidden, invalid, required
from kohort.api.kind import Context, Object
from kohort.kinds.trainer.api.constants import (
    COMPOSITE_GATE,
    DATASET,
    INITIALIZER,
    LAUNCHER,
    MODEL,
    NODE,
    TRAINER,
    replicated_jobs,
    role_of,
    spec_of,
)
from kohort.kinds.trainer.api.sequence import is_sequenced

Block = Mapping[str, Any]
BLOCK_FIELDS: Final = ("schedulingPolicy", "schedulingConstraints", "disruptionMode", "resourceClaims")
POLICY_PATH: Final = "spec.podGroupPolicy.workload"
ALIAS_PATH: Final = "spec.scheduling"
_GANG: Final[dict[str, Any]] = {"gang": {}}
_BASIC: Final[dict[str, Any]] = {"basic": {}}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A group of pods. `name` None: named like the TrainJob."""

    name: str | None
    members: tuple[int, ...]  # indices of ReplicatedJobs
    block: Block  # policy and wishes, as KEP-6089 writes them; the policy is always there
    path: str  # where in the runtime it was asked for


@dataclass(frozen=True, slots=True)
class Branch:
    """A group of groups."""

    name: str | None
    block: Block
    children: tuple[Leaf | Branch, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Grouping:
    """The top of the tree (all leaves, or all branches), and what is wrong with the request."""

    roots: tuple[Leaf | Branch, ...] = ()
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaves_of(self.roots))


@dataclass(slots=True)
class _Asked:
    """What is being worked out."""

    runtime: Object
    ctx: Context
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> list[dict[str, Any]]:
        return replicated_jobs(self.runtime)


def leaves_of(nodes: Iterable[Leaf | Branch]) -> Iterator[Leaf]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from leaves_of(node.children)


def wants_groups(runtime: Object) -> bool:
    """Whether the runtime asks for groups of the Workload API."""
    spec = spec_of(runtime)
    return (spec.get("podGroupPolicy") or {}).get("workload") is not None or spec.get("scheduling") is not None


def policy_path(runtime: Object) -> str:
    asked = (spec_of(runtime).get("podGroupPolicy") or {}).get("workload")
    return POLICY_PATH if asked is not None else ALIAS_PATH


def resolve(runtime: Object, ctx: Context) -> Grouping:
    """The groups of a runtime that wants some."""
    asked = _Asked(runtime, ctx)
    spec = spec_of(runtime)
    workload = (spec.get("podGroupPolicy") or {}).get("workload")
    if workload is None:
        roots = _explicit(asked, spec.get("scheduling") or {}, ALIAS_PATH)
    elif workload.get("scheduling") is not None:
        for name in ("topologyConstraint", "disruptionMode"):
            if workload.get(name) is not None:
                asked.errors.append(
                    forbidden(at(POLICY_PATH, name), "not together with scheduling; say it there for each group")
                )
        roots = _explicit(asked, workload["scheduling"], at(POLICY_PATH, "scheduling"))
    else:
        roots = _stages(asked, workload)
    if not asked.jobs:
        asked.errors.append(required("spec.template.spec.replicatedJobs", "groups need at least one ReplicatedJob"))
    _unique(asked, roots)
    return Grouping(tuple(roots), tuple(asked.errors), tuple(asked.warnings))


# ---- one group per stage


def stage_of(job: dict[str, Any], mpi: bool) -> str:
    role = role_of(job)
    if role in (DATASET, MODEL):
        return INITIALIZER
    if role == TRAINER or (mpi and job.get("name") in (LAUNCHER, NODE)):
        return TRAINER
    return str(job.get("name"))


def _stages(asked: _Asked, workload: Block) -> list[Leaf | Branch]:
    mpi = (spec_of(asked.runtime).get("mlPolicy") or {}).get("mpi") is not None
    derived: dict[str, list[int]] = {}
    others: list[tuple[str, int]] = []
    order: list[str] = []
    for index, job in enumerate(asked.jobs):
        stage = stage_of(job, mpi)
        if role_of(job) is None and not (mpi and job.get("name") in (LAUNCHER, NODE)):
            others.append((stage, index))
        else:
            derived.setdefault(stage, []).append(index)
        if stage not in order:
            order.append(stage)
    for name, index in others:
        if name in derived:
            where = f"spec.template.spec.replicatedJobs[{index}].name"
            asked.errors.append(
                invalid(where, name, f'is the name of the stage "{name}", which this ReplicatedJob is no part of')
            )
    if TRAINER not in derived:
        asked.warnings.append(
            "spec.template.spec.replicatedJobs: none is labelled as the trainer; the label "
            "trainer.kubeflow.org/trainjob-ancestor-step belongs on the Job template, not on the Pod template"
        )
    members = {**{name: [index] for name, index in others}, **derived}
    return [_stage(stage, members[stage], workload, stage in derived) for stage in order]


def _stage(stage: str, members: list[int], workload: Block, derived: bool) -> Leaf:
    block: dict[str, Any] = {"schedulingPolicy": _BASIC if derived and stage == INITIALIZER else _GANG}
    if derived and stage == TRAINER:
        level = (workload.get("topologyConstraint") or {}).get("level")
        if level:
            block["schedulingConstraints"] = {"topology": [{"key": level}]}
        if workload.get("disruptionMode") is not None:
            block["disruptionMode"] = workload["disruptionMode"]
    return Leaf(stage, tuple(members), block, POLICY_PATH)


# ---- groups said explicitly


def _explicit(asked: _Asked, scheduling: Block, path: str) -> list[Leaf | Branch]:
    _no_minimum(asked, scheduling, path)
    entries = scheduling.get("replicatedJobs") or []
    everything = tuple(range(len(asked.jobs)))
    if not entries:
        block = _with_policy(scheduling)
        if not is_sequenced(asked.runtime):
            return [Leaf(None, everything, block, path)]
        return [Leaf(str(asked.jobs[index].get("name")), (index,), block, path) for index in everything]
    whole = has_block(scheduling)
    targeted = _targets(asked, entries, path)
    children = [
        _entry(asked, entry, members, f"{path}.replicatedJobs[{number}]", whole)
        for number, (entry, members) in enumerate(zip(entries, targeted, strict=True))
    ]
    nodes: list[Leaf | Branch] = [node for child in children for node in child]
    missed = [index for index in everything if not any(index in members for members in targeted)]
    if not whole:
        _none_missed(asked, missed, path)
        _one_sort(asked, nodes, path)
        return nodes
    if not _composite(asked, path, "a policy for the whole job together with replicatedJobs"):
        return nodes
    if scheduling.get("resourceClaims"):
        asked.errors.append(forbidden(at(path, "resourceClaims"), "claims belong to the entries of replicatedJobs"))
    # Whoever is not named still belongs to the whole job: a gang of its own beneath it.
    nodes += [Leaf(str(asked.jobs[index].get("name")), (index,), {"schedulingPolicy": _GANG}, path) for index in missed]
    return [Branch(None, _with_policy(scheduling), tuple(nodes), path)]


def has_block(block: Block) -> bool:
    return any(block.get(name) not in (None, []) for name in BLOCK_FIELDS)


def _with_policy(block: Block) -> Block:
    kept = {name: block[name] for name in BLOCK_FIELDS if block.get(name) not in (None, [])}
    return {"schedulingPolicy": _GANG, **kept}


def _targets(asked: _Asked, entries: list[Block], path: str) -> list[tuple[int, ...]]:
    """The members of each entry; names that do not exist or come twice are errors."""
    index_of = {str(job.get("name")): index for index, job in enumerate(asked.jobs)}
    seen: set[str] = set()
    found = []
    for number, entry in enumerate(entries):
        members = []
        for place, name in enumerate(entry.get("targetReplicatedJobs") or []):
            where = f"{path}.replicatedJobs[{number}].targetReplicatedJobs[{place}]"
            if name not in index_of:
                known = ", ".join(index_of) or "none"
                asked.errors.append(invalid(where, name, f"is no ReplicatedJob of the runtime; there are {known}"))
            elif name in seen:
                asked.errors.append(duplicate(where, name))
            else:
                members.append(index_of[name])
            seen.add(name)
        if not entry.get("targetReplicatedJobs"):
            where = f"{path}.replicatedJobs[{number}].targetReplicatedJobs"
            asked.errors.append(required(where, "at least one ReplicatedJob"))
        found.append(tuple(members))
    return found


def _entry(asked: _Asked, entry: Block, members: tuple[int, ...], path: str, whole: bool) -> list[Leaf | Branch]:
    _no_minimum(asked, entry, path)
    names = [str(asked.jobs[index].get("name")) for index in members]
    job = entry.get("job")
    if job is None:
        return [Leaf("-".join(names), members, _with_policy(entry), path)] if names else []
    where = at(path, "job")
    _no_minimum(asked, job, where)
    _no_replicas(asked, members, where)
    leaves = [Leaf(f"{name}-0", (index,), _with_policy(job), where) for name, index in zip(names, members, strict=True)]
    if not whole and not has_block(entry) and len(members) <= 1:
        return list(leaves)
    mixed = "job together with other fields of its entry" if has_block(entry) else "job with several targets"
    if not whole and not _composite(asked, where, mixed):
        return list(leaves)
    if entry.get("resourceClaims"):
        asked.errors.append(forbidden(at(path, "resourceClaims"), "claims belong to the job beneath"))
    return [Branch("-".join(names), _with_policy(entry), tuple(leaves), path)]


def _no_minimum(asked: _Asked, block: Block, path: str) -> None:
    gang = (block.get("schedulingPolicy") or {}).get("gang") or {}
    if gang.get("minCount") is not None:
        where = f"{path}.schedulingPolicy.gang.minCount"
        asked.errors.append(forbidden(where, "worked out from the number of pods; it may not be given"))


def _no_replicas(asked: _Asked, members: tuple[int, ...], path: str) -> None:
    """One Pod template per ReplicatedJob means one group for all its replicas (D8)."""
    for index in members:
        job = asked.jobs[index]
        replicas = job.get("replicas", 1)
        if role_of(job) is None and replicas not in (None, 1):
            asked.errors.append(
                forbidden(
                    path,
                    f'ReplicatedJob "{job.get("name")}" has {replicas} replicas; a group for each replica is only '
                    "possible with one, because all replicas share one Pod template",
                )
            )


def _composite(asked: _Asked, path: str, what: str) -> bool:
    """Whether levels may be combined."""
    if asked.ctx.on(COMPOSITE_GATE) and (not asked.ctx.release.has_composites or asked.ctx.on("CompositePodGroup")):
        return True
    gate = "CompositePodGroup" if asked.ctx.on(COMPOSITE_GATE) else COMPOSITE_GATE
    asked.errors.append(forbidden(path, f"{what} needs gate {gate}"))
    return False


def _none_missed(asked: _Asked, missed: list[int], path: str) -> None:
    if missed:
        names = ", ".join(str(asked.jobs[index].get("name")) for index in missed)
        where = at(path, "replicatedJobs")
        asked.errors.append(required(where, f"every ReplicatedJob must be in an entry; missing: {names}"))


def _one_sort(asked: _Asked, nodes: list[Leaf | Branch], path: str) -> None:
    if len({isinstance(node, Leaf) for node in nodes}) > 1:
        asked.errors.append(
            forbidden(
                at(path, "replicatedJobs"),
                "groups and groups of groups may not stand side by side; give the whole job a schedulingPolicy, too",
            )
        )


def _unique(asked: _Asked, roots: list[Leaf | Branch]) -> None:
    seen: set[str] = set()
    for node in _walk(roots):
        if node.name is not None and node.name in seen:
            asked.errors.append(duplicate(node.path, node.name))
        seen.add(node.name or "")


def _walk(nodes: Iterable[Leaf | Branch]) -> Iterator[Leaf | Branch]:
    for node in nodes:
        yield node
        if isinstance(node, Branch):
            yield from _walk(node.children)
